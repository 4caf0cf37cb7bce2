"""Which setup to choose, and how each item was judged by a choice that it took no part in."""

import numpy as np

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.stats.comparisons import compare
from judge_gym.analysis.stats.intervals import seeded

FOLDS = 10


def choose(values: FloatArray, clusters: IntArray, prices: FloatArray, margin: float | None) -> int:
    """Chooses the setup with the highest mean, or a cheaper one that is as good.

    A cheaper one is only taken if it is at most the margin worse than the best.

    Args:
        values: what each item contributes to the measure, by setup.
        clusters: the cluster of each item.
        prices: the price of each setup; NaN if it is unknown.
        margin: the difference below which two setups are equally good.
    """
    means = values.mean(axis=0)
    best = min(range(len(means)), key=lambda k: (-round(means[k], 12), _price(prices, k), k))
    if not margin:
        return best
    comparison = compare(values, clusters)
    as_good = [
        setup
        for setup, standing in enumerate(comparison.standings)
        if standing == "tied" and comparison.at_most_worse[setup] < margin
    ]
    return min([best, *as_good], key=lambda k: (_price(prices, k), -means[k]))


def _price(prices: FloatArray, setup: int) -> float:
    return float(np.inf if np.isnan(prices[setup]) else prices[setup])


def cross_fitted(
    values: FloatArray, clusters: IntArray, prices: FloatArray, margin: float | None
) -> IntArray:
    """Says which setup is chosen for each item on the other folds of clusters.

    The measure of each item's chosen setup is then not inflated by the choice.
    """
    groups = int(clusters.max(initial=-1)) + 1
    order = seeded("folds", groups).permutation(groups)
    fold = (order % min(FOLDS, groups))[clusters]
    choices = np.zeros(len(values), dtype=np.int64)
    for number in np.unique(fold):
        out = fold == number
        rest = np.full(len(values), True) if out.all() else ~out
        choices[out] = choose(values[rest], clusters[rest], prices, margin)
    return choices
