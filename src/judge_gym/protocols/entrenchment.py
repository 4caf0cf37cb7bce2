"""Entrenchment E: how far a judge lies from the others, times how sure it is that experts agree."""

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.metrics import Metric, Summary, judge_rows
from judge_gym.analysis.metrics.polarization import excess_by_item, panel_null
from judge_gym.analysis.panels import ALL_JUDGES, Dataset, Panel, Samples, mean_over_items
from judge_gym.analysis.stats.intervals import ABOVE_CHANCE, Estimate


def entrenchment(samples: Samples) -> pd.DataFrame:
    """Returns E of each judge: its divergence above chance, times its stated probability.

    The row of judge `all` is the mean over judges. Items count if every judge has a scored verdict
    and a stated probability; the others are `dropped`.
    """
    return judge_rows(samples, _row)


def _row(panel: Panel, place: int) -> dict[str, float]:
    found = _entrenchment(panel, place)
    dropped = len(panel.evidence) - found.n
    return {**found.named("mean", "low", "high", "items"), "dropped": dropped, **panel.rates}


def _summary(data: Dataset, panel: Panel) -> Summary:
    return Summary(_entrenchment(panel), "mean over judges")


def _entrenchment(panel: Panel, place: int = ALL_JUDGES) -> Estimate:
    def values(of: Panel) -> FloatArray:
        """Returns by item the divergence above chance times the mean probability."""
        sure = of.per_cell(of.rows["probe"].to_numpy(dtype=float))
        each = excess_by_item(of, panel_null(of), "lone") * sure
        mean: FloatArray = each.mean(axis=1)  # NaN unless every judge has a value
        return mean if place == ALL_JUDGES else np.where(np.isnan(mean), np.nan, each[:, place])

    return mean_over_items(panel, values, ABOVE_CHANCE)


ENTRENCHMENT = Metric(2, "entrenchment", _summary)
