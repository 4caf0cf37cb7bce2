"""What the study decides, what it cannot, and where more samples would help."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import CELL, JUDGE, only
from judge_gym.analysis.hypotheses import RULE, hypotheses
from judge_gym.analysis.metrics import nine_metrics
from judge_gym.analysis.report.material import Material
from judge_gym.analysis.report.page import Section, Table, sampled, scored_share, section
from judge_gym.analysis.stats.intervals import student
from judge_gym.analysis.stats.rubric_draws import DRAWS_FOR_BLOCKS
from judge_gym.analysis.validity import Thresholds, validity

LED = ["hypothesis", "verdict", "value", "low", "high", "items", "p", "holm"]
RESULT = ("check", "result")
MOST = 0.5
"""The share of scored verdicts below which the report says so."""
WIDE = 0.1
"""Half an interval of the expected stage, from which more evidence is asked for."""


def verdict_of_the_study(made: Material, thresholds: Thresholds) -> Section | None:
    """Hypotheses, checks on the instrument, and the nine metrics."""
    frame = made.frame
    tested = hypotheses(frame, made.verdicts, made.swaps, made.panels, made.verdicts_without_draws)
    checks = validity(frame, thresholds)
    supported = [name[:2] for name in tested.loc[tested["verdict"] == "supported", "hypothesis"]]
    passed = int((checks["result"] == "pass").sum())
    said = ", ".join(supported) or "none of the hypotheses"
    return section(
        "What was found",
        f"Supported: {said}. Of five checks on the instrument, {passed} pass, "
        f"{int((checks['result'] == 'fail').sum())} fail, the others lack data.",
        tables=[
            Table(
                "Hypotheses",
                f"The rule was fixed before the data: {RULE}. Intervals are over {sampled(frame)}.",
                tested[[*LED, "claim", "estimand", "note"]],
            ),
            Table(
                "Validity of the instrument",
                "A check passes where its whole interval is on the right side of its threshold.",
                checks[["check", "result", *(name for name in checks if name not in RESULT)]],
            ),
            Table(
                "Nine metrics",
                f"By task and variant, {_under(frame)}; n is the number of items.",
                nine_metrics(frame, made.panels, made.consistency, made.swaps),
            ),
        ],
    )


def _under(frame: pd.DataFrame) -> str:
    own = only(frame, ~frame["is_swap"])
    if (own["rubric_author"] == own[JUDGE]).all():
        return "under the judges' own rubrics"
    return "under the rubric of each design, swaps left out"


def what_needs_more(made: Material) -> Section | None:
    """Judges whose cells are too thin or whose interval is too wide to rely on."""
    cells = made.cells
    rows = []
    for group, part in cells.groupby(CELL, observed=True):
        found = student(part["stage"])
        half = (found.high - found.low) / 2
        thin = int((part["effective_n"] < 2).sum())
        if thin or half > WIDE:
            rows.append(
                {
                    **dict(zip(CELL, group, strict=True)),
                    "items": len(part),
                    "items with under two scored": thin,
                    "half interval": half,
                    "items for ±0.1": int(np.ceil(found.n * (half / WIDE) ** 2))
                    if half > WIDE
                    else None,
                }
            )
    return section(
        "Where more samples would help",
        f"{len(rows)} of {cells.groupby(CELL, observed=True).ngroups} configured judges have thin "
        "cells or a wide interval.",
        tables=[
            Table(
                "Cells that need more samples",
                "Fewer than two scored verdicts on an item leave it out of every distance; an "
                "interval of the expected stage wider than ±0.1 asks for more items.",
                pd.DataFrame(rows),
            )
        ],
    )


def limits(made: Material) -> Section | None:
    """What these data cannot tell, said from the data."""
    own = only(made.frame, ~made.frame["is_swap"])
    probed = made.verdicts[made.verdicts["outcome"] == "probed"]
    lost = probed.groupby(["task", JUDGE], observed=True)["y"].count()
    lost = lost[lost == 0]
    rows = [
        (task, said)
        for task, part in own.groupby("task", observed=True)
        for said in _limits(part, [str(judge) for name, judge in lost.index if name == task])
    ]
    return section(
        "Limits of the evidence",
        "What the numbers above cannot carry.",
        tables=[
            Table(
                "Limits", "From the data themselves.", pd.DataFrame(rows, columns=["task", "limit"])
            )
        ],
    )


def _limits(part: pd.DataFrame, without_reference: list[str]) -> Iterator[str]:
    """What the samples of one task under the rubrics of their designs cannot tell."""
    items, judges = part["evidence"].nunique(), part[JUDGE].nunique()
    if items < 12:
        named = "1 evidence item" if items == 1 else f"{items} evidence items"
        yield f"{named}: intervals hold for evidence like {'it' if items == 1 else 'these'}"
    scored = scored_share(part)
    if scored < MOST:
        yield (
            f"{1 - scored:.0%} of the verdicts abstain or cannot be read: those that are scored "
            "need not be like them"
            if scored
            else "no verdict is scored: nothing is known of stages"
        )
    if judges == 1:
        yield "one judge: what it finds cannot be told from how it judges"
    if part.groupby([*CELL, "evidence"], observed=True)["replicate"].nunique().max() == 1:
        yield "one verdict a cell: neither steadiness nor polarization above chance can be told"
    if without_reference:
        yield (
            f"{', '.join(without_reference)}: fewer than three verdicts of others on other "
            "displays, so what is said of experts has no reference"
        )
    if (part["rubric_author"] == part[JUDGE]).any():
        draws = part["rubric_draw"].nunique()
        said = "each judge under rubrics of its own: judge and rubric cannot be told apart"
        yield (
            f"{said}; {draws} drawn per author, so they are taken as given"
            if draws < DRAWS_FOR_BLOCKS
            else f"{said}; of {draws} drawn per author intervals hold for others by that author"
        )
    if part["truth"].isna().all() and part["reference"].isna().all():
        yield "nothing is known to be right: agreement is not accuracy"
    if part["reported_model"].astype(str).str.startswith("sim:").any():
        yield "simulated judges say nothing of real models"
