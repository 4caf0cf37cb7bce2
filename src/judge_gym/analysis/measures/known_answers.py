"""Accuracy on known answers, and other means over the items of groups of samples and of panels."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.frames import CELL, PANEL
from judge_gym.analysis.judges.setups import groups_as_setups
from judge_gym.analysis.measures import Summary, panel_measure
from judge_gym.analysis.stats.clusters import scope
from judge_gym.analysis.stats.intervals import SHARE, Estimate, Scale, undefined
from judge_gym.analysis.verdicts import Dataset, Verdicts, mean_over_items, of_setups, row_means

RowValues = Callable[[Verdicts], FloatArray]
"""Computes a value of each verdict; NaN if it has none."""


def known_answers(frame: pd.DataFrame, by: Sequence[str] = CELL) -> pd.DataFrame:
    """Computes how often each group of samples is right, by the measure `exact`.

    The interval is wider where there are many draws of rubrics. A group without a known answer has
    no row; one whose calls all failed has a row without a mean.

    Returns:
        Columns `by`, n (verdicts asked about items with a known answer), scored, mean, low, high,
        items, and scope if some group holds for its clusters alone.
    """
    answered = frame[pd.to_numeric(frame["truth"], errors="coerce").notna()]
    return means_by_group(answered, by, right_verdicts, SHARE)


def right_verdicts(verdicts: Verdicts) -> FloatArray:
    """Says by row how right a verdict is, which one without a score never is."""
    reference = verdicts.references.get("accuracy")
    return np.full(len(verdicts.rows), np.nan) if reference is None else reference.right


def own_singles(frame: pd.DataFrame) -> pd.DataFrame:
    """Selects verdicts on single items under the rubric of the design."""
    return frame[~(frame["is_swap"] | frame["pair"]).to_numpy(dtype=bool)]


def means_by_group(
    frame: pd.DataFrame, by: Sequence[str], values: RowValues, scale: Scale
) -> pd.DataFrame:
    """Averages a value of verdicts over the items of each group."""
    rows = []
    for key, verdicts in _groups(frame, by):
        numbers = values(verdicts)
        counted = ~np.isnan(numbers)
        mean, scored = _mean(verdicts, values, scale), counted & (verdicts.mask != 0)
        limits = scope(verdicts.per_cell(numbers)[:, 0], verdicts.clusters)
        rows.append((*key, int(counted.sum()), int(scored.sum()), *mean[:4], limits))
    columns = [*by, "n", "scored", "mean", "low", "high", "items", "scope"]
    table = pd.DataFrame(rows, columns=columns)
    return table if table["scope"].any() else table.drop(columns="scope")


def panel_mean(
    data: Dataset, panel: Verdicts, values: RowValues, scale: Scale, column: str
) -> Estimate:
    """Averages a value of verdicts over the judges of a panel, then over items with a column."""
    verdicts, setups = data.derive(_judges_of_panels, column)
    judges = setups.get(tuple(panel.key[name] for name in PANEL))
    return _mean(verdicts.of(*judges), values, scale) if judges else undefined()


def _judges_of_panels(data: Dataset, column: str) -> tuple[Verdicts, dict[Any, list[int]]]:
    """Takes the judges of all panels on single items with a value in a column as setups.

    Returns their verdicts, and the numbers of the setups of each panel.
    """
    samples = own_singles(data.frame)
    rows = samples[samples[column].notna()]
    groups = groups_as_setups(rows, CELL)
    of_panel: dict[Any, list[int]] = {}
    for number, (key, _) in enumerate(groups):
        of_panel.setdefault(key[: len(PANEL)], []).append(number)
    return of_setups(rows, [setup for _, setup in groups]), of_panel


def _groups(frame: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Verdicts]]:
    """Yields the verdicts of each group, as those of one setup."""
    if groups := groups_as_setups(frame, by):
        verdicts = of_setups(frame, [setup for _, setup in groups])
        for number, (key, _) in enumerate(groups):
            yield key, verdicts.of(number)


def _mean(verdicts: Verdicts, values: RowValues, scale: Scale) -> Estimate:
    def by_unit(part: Verdicts) -> FloatArray:
        return row_means(part.per_cell(values(part)))

    return mean_over_items(verdicts, by_unit, scale, mean_over_draws=True)


@panel_measure("accuracy", order=4)
def _summary(data: Dataset, panel: Verdicts) -> Summary:
    mean = panel_mean(data, panel, right_verdicts, SHARE, "truth")
    return Summary(mean, "share of verdicts that are right" if mean.n else "no known answer")
