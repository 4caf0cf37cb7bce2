"""The report of a study: findings with intervals, in the order in which readers ask.

A section is a function of a `ReportInput`, which returns None without data. The sections of
`QUESTIONS` make the page; those of `APPENDIX` are computed only for a reader who asks for one of
their tables. `page` renders a report as a page, as text, or as a folder of files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from judge_gym.analysis.frames import CELL, JUDGE, tidy, varied_knobs
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.report import (
    biases,
    disagreement,
    findings,
    purchases,
    summary,
    verdicts,
)
from judge_gym.analysis.report.judges import (
    in_numbers,
    knob_effects,
    people_rate,
    price_and_quality,
    replacement_of_raters,
    which_judge,
)
from judge_gym.analysis.report.page import (
    Appendix,
    Chart,
    Question,
    Report,
    ReportInput,
    Section,
    SectionOf,
    Table,
    scored_share,
    simulation_banner,
)
from judge_gym.analysis.report.quotes import most_disputed_items, quoted_calls, with_quotes
from judge_gym.analysis.verdicts import Dataset
from judge_gym.axes import BLUEPRINT_KNOBS, Design
from judge_gym.errors import DesignError
from judge_gym.records.judge_table import JudgeTable
from judge_gym.records.numbers import dollars, fine_percent
from judge_gym.studies.declarations import NOTHING_DECLARED, Declarations

__all__ = [
    "Chart",
    "Report",
    "ReportInput",
    "Section",
    "Table",
    "build_report",
    "quoted_calls",
    "with_quotes",
]
Watch = Callable[[str, int, int], None]
"""Is called before each step with its name, how many steps are done, and of how many."""
Sections = Sequence[SectionOf]
Questions = Mapping[str, Sections]
"""The sections that answer each question, by its title."""
WHICH = "Which judge?"
EXPECTED = "What was expected, and what was found?"
QUALITY = "Quality"
CONSISTENCY = "Consistency"
BIASES = "Bias"
COST = "Cost"
DETAILS = "Appendix"
"""Its sections are closed on the page."""
QUESTIONS: Questions = {
    WHICH: (which_judge,),
    EXPECTED: (findings.findings,),
    QUALITY: (
        people_rate,
        replacement_of_raters,
        knob_effects,
        most_disputed_items,
        findings.limitations,
    ),
    CONSISTENCY: (verdicts.conflicting_repeats,),
    BIASES: (biases.biases,),
    COST: (price_and_quality, findings.cost, purchases.what_to_buy_next),
    DETAILS: (verdicts.choices_and_verdicts, verdicts.differences_between_judges),
}
"""The questions of a reader of any study; a protocol may ask more."""
APPENDIX: Mapping[str, SectionOf] = {
    "Judges in numbers": in_numbers,
    "Statuses": verdicts.response_outcomes,
    "Expected stage": verdicts.chosen_stages,
    "Endpoints": verdicts.chosen_stages,
    "Effects of the axes": verdicts.axis_effects,
    "Contrasts of judges": verdicts.axis_effects,
    "Ranks of levels": verdicts.axis_effects,
    "Internal consistency": verdicts.consistency_across_repeats,
    "Independence of repeats": verdicts.consistency_across_repeats,
    "Shapes of verdicts": verdicts.consistency_across_repeats,
    "Position and label bias": verdicts.display_biases,
    "Polarization": disagreement.disagreement,
    "Pairs of judges": disagreement.disagreement,
    "Agreement": disagreement.disagreement,
    "Metrics": findings.metrics,
    "Variance": purchases.variance,
    "Rubric quality": findings.rubrics_and_evidence,
    "Views": findings.rubrics_and_evidence,
}
"""The sections of further tables, by the title of each table."""
_NAMES = ("study", "country", "pool", "run", "sample")
"""Columns that `task` and `tag` repeat."""


def build_report(
    title: str,
    samples: pd.DataFrame,
    usage: pd.DataFrame | None,
    *,
    views: Sequence[Mapping[str, Any]] = (),
    people: pd.DataFrame | None = None,
    judges: Iterable[str] = (),
    table: JudgeTable | None = None,
    warnings: tuple[str, ...] = (),
    questions: Questions | None = None,
    appendix: Mapping[str, SectionOf] | None = None,
    declared: Declarations = NOTHING_DECLARED,
    label_usd: float = 0.0,
    summary_only: bool = False,
    watch: Watch = lambda question, done, of: None,
) -> Report:
    """Builds a report on the samples of one or more experiments.

    Its quotes have no text yet; see `quoted_calls` and `with_quotes`.

    Args:
        title: its heading.
        samples: one row per sample, one column per knob, from `lab.experiments.samples`.
        usage: calls and cost by experiment, stage and model; None if unknown.
        views: the evidence views that judges read, with editor, status and checks.
        people: raters' stages, with columns tag, evidence, rater, stage.
        judges: all that were to judge, also those without a sample yet.
        table: the judge table of the samples; by default that without locked splits.
        warnings: messages shown above the numbers.
        questions: what is asked of the samples; by default `QUESTIONS`.
        appendix: the sections of further tables, by title; by default `APPENDIX`.
        declared: the contrasts, hypotheses and margin that the study declares, and since when.
        label_usd: what a person's label of a new item costs, for what to buy next.
        summary_only: whether only what was expected and found is reported besides the summary,
            which takes about a third of the time.
        watch: called before each question with its title, how many are done, and of how many.
    """
    if samples.empty:
        raise DesignError(f"{title} has no samples yet; run it first")
    frame = tidy(samples, source=title)
    paid = pd.DataFrame() if usage is None else usage
    # If no call was answered, no model was reported; the judge that was asked counts then.
    requested_models = {*frame[JUDGE].unique()}
    models = {*frame["reported_model"].fillna(frame[JUDGE]).unique()} | (
        {*judges} - requested_models
    )
    banner = simulation_banner(map(str, models))
    if table is None:
        table = judge_table(
            frame,
            people,
            margin=declared.margin,
            simulated=banner,
            alt_test=declared.alt_test,
        )
    report_input = ReportInput(
        data=Dataset(_needed(frame)),
        samples=frame,
        usage=paid,
        views=views,
        people=people,
        judges=table,
        declared=declared,
        confounded=confounded(frame),
        label_usd=label_usd,
    )
    every = tuple(sorted(map(str, frame[JUDGE].unique())))
    questions_to_answer = {
        title: sections
        for title, sections in (QUESTIONS if questions is None else questions).items()
        if title == EXPECTED or not summary_only
    }
    answers = tuple(_answered(questions_to_answer, report_input, every, watch))
    outcomes = [part.lead for question in answers for part in question.sections if _tested(part)]
    return Report(
        title=title,
        banner=banner,
        facts=_facts(frame, usage),
        warnings=warnings,
        questions=answers,
        judge_table=table,
        summary=replace(summary.summarize(report_input), outcomes=" ".join(outcomes)),
        judges=every,
        tags={
            (str(task), str(variant), str(judge)): str(tag)
            for task, variant, judge, tag in frame[[*CELL, "tag"]]
            .drop_duplicates()
            .drop_duplicates(CELL, keep=False)
            .itertuples(index=False, name=None)
        },
        appendix=Appendix(APPENDIX if appendix is None else appendix, report_input),
    )


def _tested(part: Section) -> bool:
    return any(table.title == "Hypotheses" for table in part.tables)


def _answered(
    asked: Questions, given: ReportInput, judges: tuple[str, ...], watch: Watch
) -> Iterator[Question]:
    """Yields the questions that the samples can answer; judges have one colour in all figures."""
    for done, (title, sections) in enumerate(asked.items()):
        watch(title, done, len(asked))
        parts = [part for part in (section(given) for section in sections) if part is not None]
        if parts:
            yield Question(
                title,
                tuple(
                    replace(
                        part,
                        charts=tuple(replace(chart, judges=judges) for chart in part.charts),
                    )
                    for part in parts
                ),
                folded=title == DETAILS,
            )


def _needed(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the columns that analyses read: selecting rows takes as long as there are columns."""
    read = {JUDGE, "rubric.author", *varied_knobs(frame), *BLUEPRINT_KNOBS}
    constant = {*Design.knobs()} - read
    return frame.drop(columns=[name for name in frame if name in constant or name in _NAMES])


VARIED_BY_TASK = ["concept", "pool", "country", "rubric"]


def confounded(frame: pd.DataFrame) -> tuple[str, ...]:
    """Names what varies together between tasks, so that effects of one and another are mixed.

    Two of concept, pool, country and rubric vary together if each level of one occurs with one
    level of the other only. Contested and control tasks are confounded with whatever they do not
    have in common.
    """
    without_swaps = frame[~frame["is_swap"]]
    tasks = [part for _, part in without_swaps.groupby("task", observed=True)]
    levels = {
        name: [frozenset(map(str, part[name].unique())) for part in tasks]
        for name in VARIED_BY_TASK
    }
    together: dict[tuple[int, ...], list[str]] = {}
    for name, sets in levels.items():
        if len({*sets}) > 1:
            together.setdefault(tuple(map(sets.index, sets)), []).append(name)
    sentences = [
        f"{listed(names)} vary together between tasks: a difference between tasks cannot be "
        "attributed to one of them"
        for names in together.values()
        if len(names) > 1
    ]
    arms = [without_swaps[without_swaps["task_type"] == kind] for kind in ("ecc", "control")]
    levels_of = [{name: {*arm[name].unique()} for name in VARIED_BY_TASK} for arm in arms]
    apart = [name for name in VARIED_BY_TASK if not levels_of[0][name] & levels_of[1][name]]
    if apart and all(map(len, arms)):
        sentences.append(
            f"contested and control tasks have no {listed(apart, 'or')} in common: H1 and the "
            "dose-response compare all of these at once"
        )
    return tuple(sentences)


def listed(names: Sequence[str], last: str = "and") -> str:
    """Returns names as a list in words."""
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _facts(frame: pd.DataFrame, usage: pd.DataFrame | None) -> dict[str, str]:
    swaps, probes = int(frame["is_swap"].sum()), _probes(frame)
    series = ", ".join(sorted(filter(None, map(str, frame["series"].unique()))))
    facts = {
        "experiments": str(frame["tag"].nunique()),
        "judges": ", ".join(sorted(map(str, frame[JUDGE].unique()))),
        "tasks": ", ".join(sorted(frame["task"].unique())),
        "varied": ", ".join(_varied(frame)) or "nothing",
        "series": series,
        "evidence items": f"{frame['evidence'].nunique():,}",
        "samples": f"{len(frame):,}" + f" ({swaps:,} under another author's rubric)" * (swaps > 0),
        "scored": fine_percent(scored_share(frame)),
        "probes": f"{probes:,}" if probes else "",
        **({} if usage is None else {"calls paid": _calls(usage), "cost": _cost(usage)}),
    }
    return {name: text for name, text in facts.items() if text}


def _probes(frame: pd.DataFrame) -> int:
    probed = frame[frame["probe"].notna()]
    has_call = probed["probe_call_id"].notna()
    return int(probed.loc[has_call, "probe_call_id"].nunique() + (~has_call).sum())


def _varied(frame: pd.DataFrame) -> list[str]:
    """Returns the knobs that vary within any task."""
    parts = [varied_knobs(part) for _, part in frame.groupby("task")]
    return list(dict.fromkeys(knob for knobs in parts for knob in knobs))


def _calls(usage: pd.DataFrame) -> str:
    """Returns the number of calls, and how many of them were imported from another lab."""
    if usage.empty:
        return "0"
    imported = int(usage.loc[usage["imported"], "calls"].sum())
    calls = f"{int(usage['calls'].sum()):,}"
    return f"{calls} ({imported:,} of them imported)" if imported else calls


def _cost(usage: pd.DataFrame) -> str:
    """Returns the cost of the calls whose price is known."""
    usage = usage[usage["calls"] > 0] if len(usage) else usage  # a failed call has no price
    unknown = int(usage["usd"].isna().sum()) if len(usage) else 0
    if unknown and unknown == len(usage):
        return "– (no known price)"
    total = dollars(float(usage["usd"].sum()) if len(usage) else 0.0)
    return f"at least {total} (some prices are unknown)" if unknown else total
