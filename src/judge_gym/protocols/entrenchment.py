"""Entrenchment E: how far a judge lies from the others, times how sure it is that experts agree."""

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.measures import Summary, judge_rows, of_panels
from judge_gym.analysis.measures.polarization import excess_by_item, panel_null
from judge_gym.analysis.stats.intervals import ABOVE_CHANCE, Estimate
from judge_gym.analysis.verdicts import ALL_SETUPS, Dataset, Samples, Verdicts, mean_over_items


def entrenchment(samples: Samples) -> pd.DataFrame:
    """Returns E of each judge: its divergence above chance, times its stated probability.

    The row of judge `all` is the mean over judges. Items count if every judge has a scored verdict
    and a stated probability; the others are `dropped`.
    """
    return judge_rows(samples, _row)


def _row(panel: Verdicts, place: int) -> dict[str, float]:
    difference = _entrenchment(panel, place)
    dropped = len(panel.units) - difference.n
    return {**difference.named("mean", "low", "high", "items"), "dropped": dropped, **panel.rates}


def _summary(data: Dataset, panel: Verdicts) -> Summary:
    return Summary(_entrenchment(panel), "mean over judges")


def _entrenchment(panel: Verdicts, place: int = ALL_SETUPS) -> Estimate:
    def values(of: Verdicts) -> FloatArray:
        """Returns by item the divergence above chance times the mean probability."""
        sure = of.per_cell(of.rows["probe"].to_numpy(dtype=float))
        each = excess_by_item(of, panel_null(of), "lone") * sure
        mean: FloatArray = each.mean(axis=1)  # NaN unless every judge has a value
        return mean if place == ALL_SETUPS else np.where(np.isnan(mean), np.nan, each[:, place])

    return mean_over_items(panel, values, ABOVE_CHANCE)


ENTRENCHMENT = of_panels(2, "entrenchment", _summary)
