"""Uncertainty gap (plausibility minus belief) and subset size of the judges' verdicts."""

import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.measures import Summary, judge_rows, panel_measure
from judge_gym.analysis.stats.intervals import between
from judge_gym.analysis.verdicts import (
    ALL_SETUPS,
    Dataset,
    Samples,
    Verdicts,
    mean_of_cells,
    once_per_slice,
)


def uncertainty(samples: Samples) -> pd.DataFrame:
    """Estimates the uncertainty gap and the mean subset size of each judge, and of `all`.

    Columns: task, variant, judge, `gap`, `gap_low`, `gap_high`, `size`, `size_low`, `size_high`,
    items, dropped (no scored verdict), effective_n and rates.
    """
    return judge_rows(samples, _row)


def _row(panel: Verdicts, place: int) -> dict[str, float]:
    gap = mean_of_cells(panel, _gap, setup=place)
    size = mean_of_cells(panel, _size, between(1, panel.n_stages), place)
    return {
        **gap.columns("gap"),
        **size.columns("size"),
        "items": gap.n,
        "dropped": len(panel.units) - gap.n,
        **(panel.rates if place == ALL_SETUPS else panel.rates_of(place)),
    }


@panel_measure("uncertainty_gap", order=7)
def _gap_summary(data: Dataset, panel: Verdicts) -> Summary:
    gap = mean_of_cells(panel, _gap)
    return Summary(gap, "plausibility minus belief, mean over stages")


@panel_measure("subset_size", order=8)
def _size_summary(data: Dataset, panel: Verdicts) -> Summary:
    return Summary(
        mean_of_cells(panel, _size, between(1, panel.n_stages)), f"of {panel.n_stages} stages"
    )


@once_per_slice
def _gap(panel: Verdicts) -> FloatArray:
    return panel.masses.uncertainty_gap().reshape(panel.size)


@once_per_slice
def _size(panel: Verdicts) -> FloatArray:
    return panel.masses.subset_size().reshape(panel.size)
