"""What the study decides, what it cannot, and where more samples would help."""

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import CELL, JUDGE, only
from judge_gym.analysis.hypotheses import RULE, hypotheses
from judge_gym.analysis.intervals import student
from judge_gym.analysis.metrics import nine_metrics
from judge_gym.analysis.report.material import Material
from judge_gym.analysis.report.page import Section, Table, section
from judge_gym.analysis.validity import Thresholds, validity

LED = ["hypothesis", "verdict", "value", "low", "high", "items", "p", "holm"]
RESULT = ("check", "result")
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
                f"The rule was fixed before the data: {RULE}. Intervals are over evidence items.",
                tested[[*LED, "claim", "estimand", "note"]],
            ),
            Table(
                "Validity of the instrument",
                "A check passes where its whole interval is on the right side of its threshold.",
                checks[["check", "result", *(name for name in checks if name not in RESULT)]],
            ),
            Table(
                "Nine metrics",
                "By task and variant, under the judges' own rubrics; n is the number of items.",
                nine_metrics(frame, made.panels, made.consistency, made.swaps),
            ),
        ],
    )


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


def limits(frame: pd.DataFrame) -> Section | None:
    """What these data cannot tell, said from the data."""
    own = only(frame, ~frame["is_swap"])
    rows = []
    for task, part in own.groupby("task", observed=True):
        items = part["evidence"].nunique()
        if items < 12:
            rows.append((task, f"{items} evidence items: intervals hold for evidence like these"))
        if (part["rubric_author"] == part[JUDGE]).any():
            draws = part["rubric_draw"].nunique()
            if draws < 5:
                said = "each judge under rubrics of its own: judge and rubric cannot be told apart"
                rows.append((task, f"{said}; {draws} drawn per author, so they are taken as given"))
        if part["truth"].isna().all() and part["reference"].isna().all():
            rows.append((task, "nothing is known to be right: agreement is not accuracy"))
        simulated = part["reported_model"].astype(str).str.startswith("sim:")
        if simulated.any():
            rows.append((task, "simulated judges say nothing of real models"))
    return section(
        "Limits of the evidence",
        "What the numbers above cannot carry.",
        tables=[
            Table(
                "Limits", "From the data themselves.", pd.DataFrame(rows, columns=["task", "limit"])
            )
        ],
    )
