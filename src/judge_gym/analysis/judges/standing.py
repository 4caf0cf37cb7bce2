"""The choice of a setup, and the quality of the chosen one, corrected for the choice."""

import numpy as np
import numpy.typing as npt

from judge_gym.analysis.stats.comparisons import compare
from judge_gym.analysis.stats.intervals import Floats, seeded

Codes = npt.NDArray[np.intp]
FOLDS = 10


def choose(values: Floats, clusters: Codes, prices: Floats, margin: float | None) -> int:
    """Returns the place of the setup with the highest mean, or of a cheaper one that is as good.

    A cheaper one is only taken if it is at most the margin worse than the best.
    """
    means = values.mean(axis=0)
    best = min(range(len(means)), key=lambda k: (-round(means[k], 12), _price(prices, k), k))
    if not margin:
        return best
    found = compare(values, np.unique(clusters, return_inverse=True)[1])
    fine = [
        place
        for place, standing in enumerate(found.standings)
        if standing == "tied" and found.at_most_worse[place] < margin
    ]
    return min([best, *fine], key=lambda k: (_price(prices, k), -means[k]))


def _price(prices: Floats, place: int) -> float:
    return float(np.inf if np.isnan(prices[place]) else prices[place])


def cross_fitted(values: Floats, clusters: Codes, prices: Floats, margin: float | None) -> Floats:
    """Returns each item's value by the setup that was chosen on the other folds of clusters."""
    groups = int(clusters.max(initial=-1)) + 1
    order = seeded("folds", groups).permutation(groups)
    fold = (order % min(FOLDS, groups))[clusters]
    found = np.full(len(values), np.nan)
    for number in np.unique(fold):
        out = fold == number
        if out.all():
            return values[:, choose(values, clusters, prices, margin)]
        found[out] = values[out, choose(values[~out], clusters[~out], prices, margin)]
    return found
