"""The report of a study: what was found, with error bars, in the order in which one asks.

- `material`: what several sections read, worked out once.
- `page`: what a report is made of, and how it is set as a page, as text, or as files.
- `findings`: hypotheses, validity, the nine metrics, what the evidence cannot tell.
- `verdicts`: what judges chose, how steadily, and how answers ended.
- `disagreement`: how far judges lie apart, by belief functions too.
- `experts`: what judges say of experts, and under whose rubric.
- `effects`: what each axis does.
- `answers`: how right judges are, by known answers and by people, at what cost.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from judge_gym.analysis.frames import JUDGE, tidy, varied_knobs
from judge_gym.analysis.report import answers, disagreement, effects, experts, findings, verdicts
from judge_gym.analysis.report.material import Material
from judge_gym.analysis.report.page import (
    PARTLY_SIMULATED,
    SIMULATED,
    Chart,
    Report,
    Section,
    Table,
    scored_share,
)
from judge_gym.analysis.validity import DEFAULTS, Thresholds
from judge_gym.errors import DesignError

__all__ = [
    "PARTLY_SIMULATED",
    "SIMULATED",
    "Chart",
    "Report",
    "Section",
    "Table",
    "build_report",
]


def build_report(
    title: str,
    samples: pd.DataFrame,
    usage: pd.DataFrame | None,
    *,
    views: Sequence[Mapping[str, Any]] = (),
    people: pd.DataFrame | None = None,
    warnings: tuple[str, ...] = (),
    thresholds: Thresholds = DEFAULTS,
) -> Report:
    """A report on samples of one or more experiments.

    Args:
        title: its heading.
        samples: a row per sample and a column per knob, as `Lab.experiments.samples` gives them.
        usage: what was paid, by experiment, stage and model; None where nobody knows.
        views: the views that judges read, with editor, status and checks.
        people: raters' stages, with columns tag, evidence, rater, stage.
        warnings: what the reader should know beside the numbers.
        thresholds: where the validity checks pass.
    """
    if samples.empty:
        raise DesignError(f"{title} has no samples yet; run it first")
    frame = tidy(samples, source=title)
    made = Material(frame)
    parts = (
        findings.verdict_of_the_study(made, thresholds),
        verdicts.how_answers_ended(frame),
        verdicts.where_judges_place_it(made),
        disagreement.how_far_apart(made),
        disagreement.what_is_believed(made),
        experts.what_judges_say_of_experts(made),
        experts.whose_rubric(made),
        effects.what_each_axis_does(made),
        answers.how_right(frame, people),
        verdicts.how_steady(made),
        findings.what_needs_more(made),
        answers.what_it_rests_on(frame, pd.DataFrame() if usage is None else usage, views),
        findings.limits(made),
    )
    return Report(
        title=title,
        banner=_banner(frame),
        facts=_facts(frame, usage),
        warnings=warnings,
        sections=tuple(part for part in parts if part is not None),
    )


def _banner(frame: pd.DataFrame) -> str:
    # Where no call was answered, no model was reported: the judge that was asked must do.
    models = frame["reported_model"].astype(object).fillna(frame[JUDGE]).unique()
    simulated = sorted(model for model in models if str(model).startswith("sim:"))
    if not simulated:
        return ""
    every = len(simulated) == len(models)
    return SIMULATED if every else PARTLY_SIMULATED.format(models=", ".join(simulated))


def _facts(frame: pd.DataFrame, usage: pd.DataFrame | None) -> dict[str, str]:
    swaps = int(frame["is_swap"].sum())
    paid = {} if usage is None else {"calls paid": _paid(usage), "cost": _spent(usage)}
    return {
        "experiments": str(frame["tag"].nunique()),
        "judges": ", ".join(sorted(map(str, frame[JUDGE].unique()))),
        "tasks": ", ".join(sorted(frame["task"].unique())),
        "varied": ", ".join(_varied(frame)) or "nothing",
        "series": ", ".join(sorted(map(str, frame["series"].unique()))),
        "evidence items": str(frame["evidence"].nunique()),
        "samples": f"{len(frame):,} ({swaps:,} under another's rubric)",
        "scored": f"{scored_share(frame):.1%}",
        "probes": f"{_probes(frame):,}",
        **paid,
    }


def _probes(frame: pd.DataFrame) -> int:
    told = frame[frame["probe"].notna()]
    known = told["probe_call_id"].notna()
    return int(told.loc[known, "probe_call_id"].nunique() + (~known).sum())


def _varied(frame: pd.DataFrame) -> list[str]:
    """What varies within any task."""
    parts = [varied_knobs(part) for _, part in frame.groupby("task")]
    return list(dict.fromkeys(knob for knobs in parts for knob in knobs))


def _paid(usage: pd.DataFrame) -> str:
    """How many calls a study took, and how many of them another lab paid for."""
    if usage.empty:
        return "0"
    imported = int(usage.loc[usage["imported"], "calls"].sum())
    paid = f"{int(usage['calls'].sum()):,}"
    return f"{paid} ({imported:,} of them elsewhere, and imported)" if imported else paid


def _spent(usage: pd.DataFrame) -> str:
    """The cost, as far as prices are known."""
    usage = usage[usage["calls"] > 0] if len(usage) else usage  # a failed call has no price
    unknown = int(usage["usd"].isna().sum()) if len(usage) else 0
    if unknown and unknown == len(usage):
        return "– (no price is known)"
    known = f"{float(usage['usd'].sum()) if len(usage) else 0.0:.4f} USD"
    return f"at least {known} (some prices are unknown)" if unknown else known
