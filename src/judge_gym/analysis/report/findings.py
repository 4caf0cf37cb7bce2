"""Sections on what was expected, limitations, metrics, rubrics, evidence and cost."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from judge_gym.analysis.declared import RULE, Tested, contrast_tests, outcomes
from judge_gym.analysis.frames import ITEM, JUDGE, cluster_codes
from judge_gym.analysis.measures import Measure, panel_table
from judge_gym.analysis.report.page import (
    ReportInput,
    Section,
    Table,
    scored_share,
    section,
)
from judge_gym.analysis.stats.clusters import infers
from judge_gym.analysis.stats.intervals import MANY_DRAWS
from judge_gym.records.numbers import dollars, percent, plural
from judge_gym.stages.evidence import MAX_WORDS
from judge_gym.stages.fidelity import needs_review
from judge_gym.studies.declarations import margin_name

FIRST = ["hypothesis", "outcome", "declared", "value", "low", "high", "items", "p", "holm"]
MOSTLY_SCORED = 0.5
"""The share of scored verdicts below which the report warns."""
FEW_ITEMS = 12


def findings(given: ReportInput) -> Section | None:
    """Shows what became of the contrasts that the study declares."""
    if not given.declared.contrasts:
        return None
    lead, table = outcomes_of_tests(given, contrast_tests(given.data, given.declared.contrasts))
    return section("Findings", lead, tables=[table])


def outcomes_of_tests(given: ReportInput, tests: Sequence[Tested]) -> tuple[str, Table]:
    """Tells what became of the tests of one family, in a sentence and in a table."""
    tested = outcomes(tests, given.declared)
    note = f"Outcomes: {RULE}. {_declared_sentence(given)} Intervals are over "
    note += f"{given.interval_units}."
    columns = tested[[*FIRST, "claim", "estimand", "note"]]
    return _outcomes(tested), Table("Hypotheses", note, columns)


def metrics(given: ReportInput, more: Sequence[Measure] = ()) -> Section | None:
    """Shows every metric of each task and variant, with `more` of them."""
    return section(
        "Every metric",
        "By task and variant.",
        tables=[
            Table(
                "Metrics",
                f"By task and variant, {_rubrics_used(given.data.own)}; n is the number of items.",
                panel_table(given.data, more),
            )
        ],
    )


def _outcomes(tested: pd.DataFrame) -> str:
    """Names the hypotheses of each outcome, with what they are limited to."""
    names = tested["hypothesis"].str.replace(r"^(H\d) .*", r"\1", regex=True)
    names += (" (" + tested["scope"] + ")").where(tested["scope"] != "", "")
    by_outcome = names.groupby(tested["outcome"], sort=False).agg("; ".join)
    return " ".join(
        f"{str(outcome).capitalize()}: {which}." for outcome, which in by_outcome.items()
    )


def _declared_sentence(given: ReportInput) -> str:
    """Says what the study declared, when, and what it no longer declares."""
    declared = given.declared
    margin = "The study declares no margin."
    if declared.margin:
        name = margin_name(declared.margin)
        margin = f"The study declares a {name} (declared: {declared.when(name)})."
    withdrawn = declared.withdrawn
    if withdrawn:
        margin += f" Removed from the study after answers had come: {'; '.join(withdrawn)}."
    return margin


def _rubrics_used(own: pd.DataFrame) -> str:
    if (own["rubric_author"] == own[JUDGE]).all():
        return "under the judges' own rubrics"
    return "under the rubric of each design, without swaps"


def limitations(given: ReportInput, more: Mapping[str, Sequence[str]] = {}) -> Section | None:
    """Lists what these data cannot show, with `more` of it by task."""
    labelled = set() if given.people is None else {*given.people["tag"]}
    tasks: dict[str, list[str]] = {limit: [] for limit in given.confounded}
    names = [*map(str, given.data.own["task"].unique())]
    for task, part in given.data.own.groupby("task", observed=True):
        for limit in (*_limits(part, labelled), *more.get(str(task), ())):
            tasks.setdefault(limit, []).append(str(task))
    return section(
        "Limitations",
        "What the numbers above do not support.",
        lines=[
            limit if len(places) in (0, len(names)) else f"{', '.join(places)}: {limit}"
            for limit, places in tasks.items()
        ],
    )


def _limits(part: pd.DataFrame, labelled: Collection[str]) -> Iterator[str]:
    """Yields the limitations of the samples of one task, without swaps."""
    items, judges = part["evidence"].nunique(), part[JUDGE].nunique()
    if items < FEW_ITEMS:
        named = "1 evidence item" if items == 1 else f"{items} evidence items"
        yield f"{named}: intervals hold for evidence like {'it' if items == 1 else 'these'}"
    clusters = cluster_codes(part.drop_duplicates("evidence"))
    count = len(set(clusters.tolist()))
    if count < items and not infers(clusters):
        yield (
            f"{plural(items, 'item')} in {plural(count, 'cluster')}: nothing is said about further "
            "clusters; an interval needs five of equal size, or more"
        )
    scored = scored_share(part)
    if scored < MOSTLY_SCORED:
        yield (
            f"{percent(1 - scored)} of the verdicts abstain or cannot be read: the scored ones may "
            "not be representative"
            if scored
            else "no verdict is scored: nothing is known about stages"
        )
    if judges == 1:
        yield "one judge: properties of the evidence and of the judge cannot be separated"
    if part.groupby(ITEM, observed=True)["replicate"].nunique().max() == 1:
        yield ("no repeats: neither consistency nor disagreement above chance can be estimated")
    if (part["rubric_author"] == part[JUDGE]).any():
        draws = part["rubric_draw"].nunique()
        scope = f"with {draws} drawn per author, results hold for these rubrics"
        if draws >= MANY_DRAWS:
            scope = f"with {draws} drawn per author, intervals cover other rubrics by that author"
        yield f"each judge used its own rubrics: results without swaps mix the two; {scope}"
    unknown = part["truth"].isna().all() and part["reference"].isna().all()
    if unknown and not part["tag"].isin(labelled).any():
        yield "no known answers: agreement is not accuracy"
    if part["reported_model"].astype(str).str.startswith("sim:").any():
        yield "simulated judges say nothing about real models"


def rubrics_and_evidence(given: ReportInput) -> Section | None:
    """Shows rubric quality and evidence views."""
    return section(
        "Rubrics and evidence",
        "The rubrics, and the texts that judges read.",
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
        ],
    )


def cost(given: ReportInput) -> Section | None:
    """Shows what was paid, by stage and model."""
    paid = _cost(given.usage)
    if paid.empty:
        return None
    calls, usd = int(paid["calls"].sum()), paid["usd"].sum(min_count=1)
    price = "a price that is not known" if pd.isna(usd) else f"{dollars(float(usd))} in all"
    return section(
        "What did it cost?",
        f"{calls:,} call{' was' if calls == 1 else 's were'} paid, for {price}.",
        tables=[
            Table(
                "Cost",
                "Calls that were paid, by stage and model; reused answers cost nothing.",
                paid,
                paid.assign(
                    usd=["–" if pd.isna(value) else dollars(value) for value in paid["usd"]]
                ).rename(columns=lambda name: "cost" if name == "usd" else name.replace("_", " ")),
            )
        ],
    )


def _quality(frame: pd.DataFrame) -> pd.DataFrame:
    named = ["task", "rubric", "rubric_author", "rubric_draw", "n_stages"]
    # Rubric ids differ between labs, so they come last in the order.
    by = ["task", "rubric_author", "n_stages", "rubric_draw", "rubric"]
    qualities = frame[[*named, "observability", "discriminability"]].drop_duplicates()
    if qualities[["observability", "discriminability"]].isna().all(axis=None):
        return qualities.iloc[:0]
    return qualities.sort_values(by, ignore_index=True)


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
            row["flagged"] += needs_review(checks)
            row["too long"] += bool(checks["too_long"])
            row["numbers"] += bool(checks["numbers"])
            row["names"] += bool(checks["names"])
            ratios.setdefault(view["editor"], []).append(checks["length_ratio"])
    means = {editor: sum(values) / len(values) for editor, values in ratios.items()}
    return pd.DataFrame([{**row, "length ratio": means.get(e)} for e, row in rows.items()])
