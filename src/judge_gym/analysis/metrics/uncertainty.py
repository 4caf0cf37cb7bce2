"""Uncertainty gap (plausibility minus belief) and subset size of the judges' verdicts."""

from functools import cache

import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.dataset import Dataset, Samples
from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.metrics.summary import ALL, Summary, metric
from judge_gym.analysis.panels import ALL_JUDGES, Panel, mean_of_cells
from judge_gym.analysis.stats.intervals import student


def uncertainty(samples: Samples) -> pd.DataFrame:
    """Returns the uncertainty gap and the mean subset size of each judge, and of `all`.

    Columns: task, variant, judge, `gap`, `gap_low`, `gap_high`, `size`, `size_low`, `size_high`,
    items, dropped (no scored verdict), effective_n and rates.
    """
    rows = []
    for panel in Dataset.of(samples).panels:
        cells = cache(_gap), cache(_size)
        for place, judge in enumerate((ALL, *panel.judges), ALL_JUDGES):
            gaps, sizes = (mean_of_cells(panel, of, student, place) for of in cells)
            rows.append(
                {
                    **panel.key,
                    JUDGE: judge,
                    **gaps.columns("gap"),
                    **sizes.columns("size"),
                    "items": gaps.n,
                    "dropped": len(panel.evidence) - gaps.n,
                    **(panel.rates if place == ALL_JUDGES else panel.rates_of(place)),
                }
            )
    return pd.DataFrame(rows)


@metric("uncertainty_gap", order=7)
def _gap_summary(data: Dataset, panel: Panel) -> Summary:
    gap = mean_of_cells(panel, _gap, student)
    return Summary(gap, "plausibility minus belief, mean over stages")


@metric("subset_size", order=8)
def _size_summary(data: Dataset, panel: Panel) -> Summary:
    return Summary(mean_of_cells(panel, _size, student), f"of {panel.n_stages} stages")


def _gap(panel: Panel) -> FloatArray:
    return panel.masses.uncertainty_gap().reshape(panel.size)


def _size(panel: Panel) -> FloatArray:
    return panel.masses.subset_size().reshape(panel.size)
