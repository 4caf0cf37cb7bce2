"""Sections on findings, accuracy, rubrics, evidence, cost, missing samples and limitations."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import known_answers
from judge_gym.analysis.frames import CELL, ITEM, JUDGE, once_per_call, ordinal_rows
from judge_gym.analysis.hypotheses import RULE, hypotheses
from judge_gym.analysis.judges.pair_frames import pair_table
from judge_gym.analysis.judges.pairs import PAIR_RULE
from judge_gym.analysis.judges.people import alt_test, majority_agreement, prediction_powered
from judge_gym.analysis.metrics import metric_table
from judge_gym.analysis.metrics.accuracy import ground_truth
from judge_gym.analysis.metrics.stated_agreement import probed_verdicts
from judge_gym.analysis.report.page import (
    Chart,
    ReportInput,
    Section,
    Table,
    scored_share,
    section,
)
from judge_gym.analysis.stats.intervals import MANY_DRAWS
from judge_gym.analysis.validity import validity
from judge_gym.stages.evidence import MAX_WORDS
from judge_gym.stages.fidelity import flagged

FIRST = ["hypothesis", "outcome", "value", "low", "high", "items", "p", "holm"]
MOSTLY_SCORED = 0.5
"""The share of scored verdicts below which the report warns."""
FEW_ITEMS = 12


def findings(given: ReportInput) -> Section | None:
    """Shows metrics and, of samples under the blueprint's protocol, hypotheses and checks."""
    metrics = Table(
        "Metrics",
        f"By task and variant, {_rubrics_used(given.data.own)}; n is the number of items.",
        metric_table(given.data),
    )
    contested = given.contested
    if contested is None:
        return section("Findings", _lead(given), tables=[metrics])
    tested = hypotheses(contested, given.margin)
    checks = validity(contested.frame, given.thresholds)
    names = tested["hypothesis"].str[:2].groupby(tested["outcome"], sort=False).agg(", ".join)
    outcomes = "; ".join(f"{which} {outcome}" for outcome, which in names.items())
    results = checks["result"].value_counts()
    passed, failed, lacking = (int(results.get(r, 0)) for r in ("pass", "fail", "lacks data"))
    return section(
        "Findings",
        f"{outcomes}. Validity checks: {passed} passed, {failed} failed, {lacking} lack data.",
        tables=[
            Table(
                "Hypotheses",
                f"Outcomes: {RULE}. The study declared "
                + (f"a margin of {given.margin:g}" if given.margin else "no margin")
                + f". Intervals are over {given.interval_units}.",
                tested[[*FIRST, "claim", "estimand", "note"]],
            ),
            Table(
                "Validity of the instrument",
                "A check passes if its whole interval is on the right side of its threshold.",
                checks[["check", "result", *checks.columns.drop(["check", "result"])]],
            ),
            metrics,
        ],
    )


def _lead(given: ReportInput) -> str:
    """Returns who agrees most with people or known answers; without either, how much was judged."""
    singles = given.data.without_pairs.own
    known = known_answers(singles, CELL)
    found = known.rename(columns={"mean": "value"}) if len(known) else known
    what = "accuracy"
    if given.people is not None and len(given.people):
        found, what = majority_agreement(singles, given.people), "agreement with people"
    found = found.dropna(subset="value") if len(found) else found
    if not len(found):
        judges, items = (given.frame[name].nunique() for name in (JUDGE, "evidence"))
        return f"{judges} judge{'s' * (judges != 1)} on {items} item{'s' * (items != 1)}."
    top = found.sort_values("value").iloc[-1]
    interval = "" if pd.isna(top["low"]) else f" ({top['low']:.0%} to {top['high']:.0%})"
    return (
        f"Highest {what} of {len(found)} configured judges: {top['value']:.0%}{interval} on "
        f"{int(top['items'])} items, by {top[JUDGE]} on {top['task']}, {top['variant']}."
    )


def _rubrics_used(own: pd.DataFrame) -> str:
    if (own["rubric_author"] == own[JUDGE]).all():
        return "under the judges' own rubrics"
    return "under the rubric of each design, without swaps"


def limitations(given: ReportInput) -> Section | None:
    """Lists what these data cannot show."""
    verdicts = given.data.compute(probed_verdicts)
    probed = verdicts[verdicts["outcome"] == "probed"]
    references = probed.groupby(["task", JUDGE], observed=True)["y"].count()
    missing = references[references == 0].index
    labelled = set() if given.people is None else {*given.people["tag"]}
    rows = [
        (task, limit)
        for task, part in given.data.own.groupby("task", observed=True)
        for limit in _limits(
            part, [str(judge) for name, judge in missing if name == task], labelled
        )
    ]
    return section(
        "Limitations",
        "What the numbers above do not support.",
        tables=[
            Table(
                "Limitations by task",
                "Derived from the data.",
                pd.DataFrame(rows, columns=["task", "limitation"]),
            )
        ],
    )


def _limits(
    part: pd.DataFrame, without_reference: list[str], labelled: Collection[str]
) -> Iterator[str]:
    """Yields the limitations of the samples of one task, without swaps."""
    items, judges = part["evidence"].nunique(), part[JUDGE].nunique()
    if items < FEW_ITEMS:
        named = "1 evidence item" if items == 1 else f"{items} evidence items"
        yield f"{named}: intervals hold for evidence like {'it' if items == 1 else 'these'}"
    scored = scored_share(part)
    if scored < MOSTLY_SCORED:
        yield (
            f"{1 - scored:.0%} of the verdicts abstain or cannot be read: the scored ones may not "
            "be representative"
            if scored
            else "no verdict is scored: nothing is known about stages"
        )
    if judges == 1:
        yield "one judge: properties of the evidence and of the judge cannot be separated"
    if part.groupby(ITEM, observed=True)["replicate"].nunique().max() == 1:
        yield (
            "one verdict per cell: neither consistency nor polarization above chance can be "
            "estimated"
        )
    if without_reference:
        yield (
            f"{', '.join(without_reference)}: fewer than three verdicts of other judges on other "
            "displays, so stated agreement has no reference"
        )
    if (part["rubric_author"] == part[JUDGE]).any():
        draws = part["rubric_draw"].nunique()
        scope = f"with {draws} drawn per author, results hold for these rubrics"
        if draws >= MANY_DRAWS:
            scope = f"with {draws} drawn per author, intervals cover other rubrics by that author"
        yield f"each judge used its own rubrics: judge and rubric cannot be separated; {scope}"
    unknown = part["truth"].isna().all() and part["reference"].isna().all()
    if unknown and not part["tag"].isin(labelled).any():
        yield "no known answers: agreement is not accuracy"
    if part["reported_model"].astype(str).str.startswith("sim:").any():
        yield "simulated judges say nothing about real models"


def accuracy(given: ReportInput) -> Section | None:
    """Shows accuracy on known answers and pairs, against reference values and people."""
    own, singles = given.data.own, given.data.without_pairs.own
    pairs = pair_table(own[own["pair"]], CELL)
    known = known_answers(singles, CELL)
    truth = ground_truth(own)
    scores = _scores(pairs, known)
    people = given.people if given.people is not None and len(given.people) else None
    return section(
        "How accurate are the judges?",
        figures.accuracy_figure.finding(scores)
        if figures.accuracy_figure.has_data(scores)
        else "Against reference values and people.",
        tables=[
            Table(
                "Known answers",
                "Share of scored verdicts on the right stage; 95 % interval over items.",
                known,
            ),
            Table("Pairs with a known better response", f"Shares. {PAIR_RULE}", pairs),
            Table(
                "Reference values",
                "Absolute error of the expected stage against a reference from 0 to 1, and the "
                "share of items within half a stage of it.",
                truth[truth["measure"] != "right"],
            ),
            *(_people(singles, people) if people is not None else ()),
        ],
        charts=[
            Chart("Accuracy", figures.accuracy_figure, scores),
            Chart("Cost against accuracy", figures.cost_figure, _costs(own, scores)),
        ],
    )


def _scores(pairs: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Returns the accuracy of each configured judge, on pairs and on single items alike."""
    columns = [*CELL, "accuracy", "low", "high", "n"]
    renamed = known.rename(columns={"mean": "accuracy"})
    parts = [part[columns] for part in (pairs, renamed) if len(part)]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return figures.panels(found)


def _costs(own: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean cost of a verdict of each judge, beside its accuracy."""
    price = once_per_call(own, CELL).groupby(CELL, observed=True)["usd"].mean().reset_index()
    found = scores.merge(price, on=CELL)
    return found[found["usd"] > 0]


def _people(own: pd.DataFrame, people: pd.DataFrame) -> list[Table]:
    """Returns the tables that compare judges with raters."""
    stages = ordinal_rows(own)
    agreement = majority_agreement(own, people)
    return [
        Table(
            "Agreement with people",
            "The share of a judge's weight on the stage that most raters gave; items on which "
            "raters tie are left out.",
            agreement[agreement["items"] > 0],
        ),
        Table(
            "Can a judge replace a rater?",
            "The alternative annotator test: each rater is left out in turn; a judge passes if it "
            "represents the others at least as well as half of the raters do.",
            alt_test(own, people),
        ),
        Table(
            "People's mean stage",
            "From few labels and many verdicts, prediction-powered.",
            prediction_powered(stages, people) if len(stages) else pd.DataFrame(),
        ),
    ]


def rubrics_evidence_cost(given: ReportInput) -> Section | None:
    """Shows rubric quality, evidence views and cost."""
    return section(
        "Rubrics, evidence and cost",
        "The rubrics, the texts that judges read, and the calls that were paid.",
        tables=[
            Table(
                "Rubric quality",
                "A critic's scores; null if the rubric was given or the critic gave none.",
                _quality(given.frame),
            ),
            Table(
                "Views",
                "Summaries that judges read in place of the text. Flagged: longer than "
                f"{MAX_WORDS} words, or with a number or name that is not in the source; inspect "
                "them with judge-gym evidence show.",
                views_table(given.views),
            ),
            Table(
                "Cost",
                "Calls that were paid, by stage and model; reused answers cost nothing.",
                _cost(given.usage),
            ),
        ],
    )


def _quality(frame: pd.DataFrame) -> pd.DataFrame:
    named = ["task", "rubric", "rubric_author", "rubric_draw", "n_stages"]
    # Rubric ids differ between labs, so they come last in the order.
    by = ["task", "rubric_author", "n_stages", "rubric_draw", "rubric"]
    found = frame[[*named, "observability", "discriminability"]].drop_duplicates()
    if found[["observability", "discriminability"]].isna().all(axis=None):
        return found.iloc[:0]
    return found.sort_values(by, ignore_index=True)


def _cost(usage: pd.DataFrame) -> pd.DataFrame:
    if usage.empty:
        return usage
    numbers = ["calls", "input_tokens", "output_tokens", "usd"]
    return usage.groupby(["stage", "model"], as_index=False)[numbers].sum(min_count=1)


def views_table(views: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Counts the views of each editor, and those that should be checked, by reason."""
    rows: dict[str, dict[str, Any]] = {}
    ratios: dict[str, list[float]] = {}
    for view in views:
        counts = dict.fromkeys(["views", "failed", "flagged", "too long", "numbers", "names"], 0)
        row = rows.setdefault(view["editor"], {"editor": view["editor"], **counts})
        checks = view["checks"]
        row["views"] += 1
        row["failed"] += view["status"] != "scored"
        if checks is not None:
            row["flagged"] += flagged(checks)
            row["too long"] += bool(checks["too_long"])
            row["numbers"] += bool(checks["numbers"])
            row["names"] += bool(checks["names"])
            ratios.setdefault(view["editor"], []).append(checks["length_ratio"])
    means = {editor: sum(values) / len(values) for editor, values in ratios.items()}
    return pd.DataFrame([{**row, "length ratio": means.get(e)} for e, row in rows.items()])
