"""Means and ratios over units, which several measures share."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from judge_gym.analysis.measures.terms import Ratio, Terms
from judge_gym.analysis.stats.intervals import SHARE, Scale
from judge_gym.analysis.verdicts import Verdicts


def mean_by_setup(verdicts: Verdicts, values: pd.Series, scale: Scale = SHARE) -> dict[int, Terms]:
    """Averages a value of answers over repeats, with equal weight of a pair's orders."""
    rows = verdicts.rows
    has_value = rows["asked"].to_numpy() & values.notna().to_numpy()
    by = [verdicts.setup[has_value], rows["unit"][has_value], rows["flipped"][has_value]]
    by_order = values[has_value].astype(float).groupby(by).mean()
    return dict(split(by_order.groupby(level=[0, 1]).mean(), scale=scale))


def split(
    above: pd.Series, below: pd.Series | None = None, scale: Scale = SHARE
) -> Iterator[tuple[int, Terms]]:
    """Yields the ratio of each setup; series are indexed by setup and unit, `below` alike."""
    tops = above.to_numpy(dtype=float)
    bottoms = np.ones(len(above)) if below is None else below.to_numpy(dtype=float)
    setup, unit = (above.index.get_level_values(level).to_numpy() for level in (0, 1))
    for index in np.unique(setup):
        of_setup = setup == index
        if bottoms[of_setup].any():
            yield int(index), Ratio(unit[of_setup], tops[of_setup], bottoms[of_setup], scale)
