"""Conflict k of belief functions between the judges of a panel."""

from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.disagreement import panel_conflict
from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.measures import TOO_FEW_JUDGES, Summary, note_number, of_panels
from judge_gym.analysis.measures.polarization import distance_columns
from judge_gym.analysis.stats.intervals import DIFFERENCE, DISTANCE, Estimate
from judge_gym.analysis.verdicts import (
    Dataset,
    Samples,
    Verdicts,
    mean_over_items,
    once_per_slice,
    part_of,
)

KINDS = ("pairwise", "own", "excess", "joint")


def conflict(samples: Samples) -> pd.DataFrame:
    """Returns conflict k of each panel beside the distance, on items that every judge scored.

    `k` is the mean over pairs of judges, `own` that of each judge with itself, `excess` the
    difference; `joint` is of all judges at once and grows with their number, `fan_in`.
    """
    return pd.DataFrame([_row(panel) for panel in Dataset.of(samples).panels])


@once_per_slice
def _row(panel: Verdicts) -> dict[str, Any]:
    k, self_conflict, excess, joint = (
        mean_over_items(
            panel, part_of(conflict_by_item, kind), DIFFERENCE if kind == "excess" else DISTANCE
        )
        for kind in KINDS
    )
    return {
        **panel.key,
        **k.named("k", "low", "high"),
        "own": self_conflict.value,
        **excess.columns("excess"),
        "joint": joint.value,
        "fan_in": len(panel.setups),
        **distance_columns(panel),
        "items": k.n,
        "dropped": len(panel.units) - k.n,
        **panel.rates,
    }


@once_per_slice
def conflict_by_item(panel: Verdicts) -> dict[str, FloatArray]:
    """Computes each kind of conflict by item, NaN if a judge has no score."""
    items, judges = panel.size
    conflicts = panel_conflict(panel.masses, np.repeat(np.arange(items), judges), groups=items)
    # With one verdict per cell, a judge's conflict with itself is unknown.
    repeated = panel.complete & (panel.scored.max(initial=0) > 1)
    defined_where = {"own": repeated, "excess": repeated}
    return {
        name: np.where(defined_where.get(name, panel.complete), getattr(conflicts, name), np.nan)
        for name in KINDS
    }


def _summary(data: Dataset, panel: Verdicts) -> Summary:
    row = _row(panel)
    conflict = Estimate(row["k"], row["low"], row["high"], row["items"])
    if not row["items"]:
        return Summary(conflict, TOO_FEW_JUDGES)
    note = (
        f"mean over pairs; fan-in {row['fan_in']}, joint {row['joint']:.3f}, excess over "
        f"self-conflict {note_number(row['excess'])}; squared distance "
        f"{note_number(row['distance'])}"
    )
    return Summary(conflict, note)


CONFLICT = of_panels(6, "conflict", _summary)
