"""Abstention rate, and apart from it the rate of verdicts that could not be read."""

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.metrics import Summary, judge_rows, metric, shown
from judge_gym.analysis.panels import (
    ALL_JUDGES,
    Dataset,
    Panel,
    Samples,
    mean_of_cells,
    once_per_panel,
)
from judge_gym.analysis.stats.intervals import SHARE


def abstention(samples: Samples) -> pd.DataFrame:
    """Returns the rates of abstained and of unreadable verdicts, per judge and for `all`.

    Columns: task, variant, judge, abstained, abstained_low, abstained_high, unreadable,
    unreadable_low, unreadable_high, items, n, effective_n.
    """
    return judge_rows(samples, _row)


def _row(panel: Panel, place: int) -> dict[str, float]:
    row: dict[str, float] = {}
    for name, cells in RATES.items():
        found = mean_of_cells(panel, cells, SHARE, place)
        row |= found.columns(name) | {"items": found.n}
    mine = panel.judge == place if place != ALL_JUDGES else np.full(len(panel.judge), True)
    return row | {"n": int(mine.sum()), "effective_n": int((panel.mask[mine] != 0).sum())}


@metric("abstention", order=5)
def _summary(data: Dataset, panel: Panel) -> Summary:
    unreadable = mean_of_cells(panel, _unreadable, SHARE)
    abstained = mean_of_cells(panel, _abstained, SHARE)
    return Summary(abstained, f"unreadable {shown(unreadable.value)}")


@once_per_panel
def _abstained(panel: Panel) -> FloatArray:
    return panel.per_cell(panel.abstained.astype(float))


@once_per_panel
def _unreadable(panel: Panel) -> FloatArray:
    return panel.per_cell(panel.unreadable.astype(float))


RATES = {"abstained": _abstained, "unreadable": _unreadable}
"""By name, the share of such verdicts in each cell."""
