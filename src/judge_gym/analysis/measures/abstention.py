"""Abstention rate, and apart from it the rate of verdicts that could not be read."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.measures import Summary, column, judge_rows, note_number, panel_measure
from judge_gym.analysis.measures.means import mean_by_setup
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.stats.intervals import SHARE
from judge_gym.analysis.verdicts import (
    ALL_SETUPS,
    Dataset,
    Samples,
    Verdicts,
    mean_of_cells,
    once_per_slice,
)


def abstention(samples: Samples) -> pd.DataFrame:
    """Returns the rates of abstained and of unreadable verdicts, per judge and for `all`.

    Columns: task, variant, judge, abstained, abstained_low, abstained_high, unreadable,
    unreadable_low, unreadable_high, items, n, effective_n.
    """
    return judge_rows(samples, _row)


def _row(panel: Verdicts, place: int) -> dict[str, float]:
    row: dict[str, float] = {}
    for name, cells in RATES.items():
        mean = mean_of_cells(panel, cells, SHARE, place)
        row |= mean.columns(name) | {"items": mean.n}
    mine = panel.setup == place if place != ALL_SETUPS else np.full(len(panel.setup), True)
    return row | {"n": int(mine.sum()), "effective_n": int((panel.mask[mine] != 0).sum())}


@panel_measure("abstention", order=5)
def _summary(data: Dataset, panel: Verdicts) -> Summary:
    unreadable = mean_of_cells(panel, _unreadable, SHARE)
    abstained = mean_of_cells(panel, _abstained, SHARE)
    return Summary(abstained, f"unreadable {note_number(unreadable.value)}")


@once_per_slice
def _abstained(panel: Verdicts) -> FloatArray:
    return panel.per_cell(panel.abstained.astype(float))


@once_per_slice
def _unreadable(panel: Verdicts) -> FloatArray:
    return panel.per_cell(panel.unreadable.astype(float))


RATES = {"abstained": _abstained, "unreadable": _unreadable}
"""By name, the share of such verdicts in each cell."""


@column(
    "abstained",
    "abstained",
    "The share of verdicts that abstain. How often does it say that it cannot tell?",
    order=60,
)
def abstained_column(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Averages abstentions over repeats, then over units."""
    return mean_by_setup(verdicts, verdicts.rows["abstained"])


@column(
    "unreadable",
    "unreadable",
    "The share of answers that were refused, cut off or cannot be read. How often is it paid for "
    "nothing?",
    order=61,
)
def unreadable_column(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Averages unreadable answers over repeats, then over units."""
    return mean_by_setup(verdicts, verdicts.rows["unreadable"])
