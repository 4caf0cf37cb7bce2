"""Sections on the findings of the study, on where more samples would help, and on limitations."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import cell_endpoints
from judge_gym.analysis.frames import CELL, ITEM, JUDGE
from judge_gym.analysis.hypotheses import RULE, hypotheses
from judge_gym.analysis.metrics import metric_table
from judge_gym.analysis.metrics.stated_agreement import probed_verdicts
from judge_gym.analysis.report.page import Section, Table, section
from judge_gym.analysis.report.sections import ReportInput, report_section, scored_share
from judge_gym.analysis.stats.intervals import student
from judge_gym.analysis.stats.rubric_draws import MANY_DRAWS
from judge_gym.analysis.validity import validity

FIRST = ["hypothesis", "verdict", "value", "low", "high", "items", "p", "holm"]
MOSTLY_SCORED = 0.5
"""The share of scored verdicts below which the report warns."""
WIDE = 0.1
"""The half width of the expected stage's interval above which more evidence is suggested."""
FEW_ITEMS = 12


@report_section(order=1)
def findings(given: ReportInput) -> Section | None:
    """Shows hypotheses, validity checks and metrics."""
    tested, checks = hypotheses(given.data), validity(given.frame, given.thresholds)
    supported = [name[:2] for name in tested.loc[tested["verdict"] == "supported", "hypothesis"]]
    results = checks["result"].value_counts()
    passed, failed, lacking = (int(results.get(r, 0)) for r in ("pass", "fail", "lacks data"))
    return section(
        "Findings",
        f"Supported: {', '.join(supported) or 'none of the hypotheses'}. Validity checks: {passed} "
        f"passed, {failed} failed, {lacking} lack data.",
        tables=[
            Table(
                "Hypotheses",
                f"The rule was fixed before the data: {RULE}. Intervals are over "
                f"{given.interval_units}.",
                tested[[*FIRST, "claim", "estimand", "note"]],
            ),
            Table(
                "Validity of the instrument",
                "A check passes if its whole interval is on the right side of its threshold.",
                checks[["check", "result", *checks.columns.drop(["check", "result"])]],
            ),
            Table(
                "Metrics",
                f"By task and variant, {_rubrics_used(given.data.own)}; n is the number of items.",
                metric_table(given.data),
            ),
        ],
    )


def _rubrics_used(own: pd.DataFrame) -> str:
    if (own["rubric_author"] == own[JUDGE]).all():
        return "under the judges' own rubrics"
    return "under the rubric of each design, without swaps"


@report_section(order=11)
def more_samples(given: ReportInput) -> Section | None:
    """Shows judges with too few scores per item, or too wide an interval."""
    cells = given.data.compute(cell_endpoints).groupby(CELL, observed=True)
    rows = []
    for group, part in cells:
        found = student(part["stage"])
        half = (found.high - found.low) / 2
        thin = int((part["effective_n"] < 2).sum())
        if thin or half > WIDE:
            needed = int(np.ceil(found.n * (half / WIDE) ** 2)) if half > WIDE else None
            rows.append(
                {
                    **dict(zip(CELL, group, strict=True)),
                    "items": len(part),
                    "items with fewer than two scores": thin,
                    "half width": half,
                    "items for ±0.1": needed,
                }
            )
    return section(
        "Where more samples would help",
        f"{len(rows)} of {cells.ngroups} configured judges have too few scores per item or a wide "
        "interval.",
        tables=[
            Table(
                "Cells that need more samples",
                "An item with fewer than two scored verdicts is left out of every distance; an "
                "interval of the expected stage wider than ±0.1 needs more items.",
                pd.DataFrame(rows),
            )
        ],
    )


@report_section(order=13)
def limitations(given: ReportInput) -> Section | None:
    """Lists what these data cannot show."""
    verdicts = given.data.compute(probed_verdicts)
    probed = verdicts[verdicts["outcome"] == "probed"]
    references = probed.groupby(["task", JUDGE], observed=True)["y"].count()
    missing = references[references == 0].index
    rows = [
        (task, limit)
        for task, part in given.data.own.groupby("task", observed=True)
        for limit in _limits(part, [str(judge) for name, judge in missing if name == task])
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


def _limits(part: pd.DataFrame, without_reference: list[str]) -> Iterator[str]:
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
    if part["truth"].isna().all() and part["reference"].isna().all():
        yield "no known answers: agreement is not accuracy"
    if part["reported_model"].astype(str).str.startswith("sim:").any():
        yield "simulated judges say nothing about real models"
