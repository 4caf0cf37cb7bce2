"""Coefficients of agreement as functions of sums over items: alpha, kappa, ICC."""

from itertools import combinations
from typing import Literal

import numpy as np

from judge_gym.analysis.stats.intervals import Floats, SumStatistic

Level = Literal["nominal", "ordinal"]
CLOSE = 1e-9
"""Values that differ by less are equal: shares are sums of fractions."""


def krippendorff_alpha(counts: Floats, level: Level, parts: int | None = None) -> SumStatistic:
    """Returns Krippendorff's alpha from counts of ratings per item and stage (in order).

    Every item has two ratings or more. Items form `parts` clusters, by default one each.
    """
    n_stages = counts.shape[-1]
    diagonal = np.eye(n_stages)
    pairable = counts / (counts.sum(axis=-1, keepdims=True) - 1)
    if parts is None:
        pairs = pairable[:, :, None] * (counts[:, None, :] - diagonal)
    else:
        clusters = [slice(part, None, parts) for part in range(parts)]
        together = [pairable[some].T @ counts[some] for some in clusters]
        own = [diagonal * pairable[some].sum(axis=0) for some in clusters]
        pairs = np.stack(together) - np.stack(own)

    def alpha(sums: Floats) -> Floats:
        together = sums.reshape(*sums.shape[:-1], n_stages, n_stages)
        given = together.sum(axis=-1)
        by_chance = given[..., None] * given[..., None, :] - diagonal * given[..., None]
        by_chance = by_chance / (given.sum(axis=-1) - 1)[..., None, None]
        if level == "nominal":
            distance = 1 - diagonal
        else:  # the distance of stages is the number of ratings between the middles of their ranks
            middle = given.cumsum(axis=-1) - given / 2
            distance = (middle[..., None] - middle[..., None, :]) ** 2
        return _beyond_chance(
            (together * distance).sum(axis=(-1, -2)), (by_chance * distance).sum(axis=(-1, -2))
        )

    return SumStatistic(pairs.reshape(len(pairs), n_stages**2), alpha)


def fleiss_kappa(counts: Floats) -> SumStatistic:
    """Returns Fleiss' kappa from counts of ratings per item and stage, equally many per item."""
    raters = counts.sum(axis=-1)
    alike = (counts * (counts - 1)).sum(axis=-1) / (raters * (raters - 1))

    def kappa(sums: Floats) -> Floats:
        items, agreed, given = sums[..., 0], sums[..., 1], sums[..., 2:]
        share = given / given.sum(axis=-1, keepdims=True)
        return _beyond_chance(1 - agreed / items, 1 - (share**2).sum(axis=-1))

    return SumStatistic(np.column_stack([np.ones(len(counts)), alike, counts]), kappa)


def cohen_kappa(rated: Floats, power: int) -> SumStatistic:
    """Returns Cohen's kappa of stages by item and rater, averaged over pairs of raters (Light's).

    A disagreement is weighed by the distance between its stages, to the power 0, 1 or 2.
    """
    stages, (items, raters) = np.unique(rated), rated.shape
    apart = np.abs(stages[:, None] - stages)
    weight = (apart > 0).astype(float) if power == 0 else apart**power
    given = (rated[:, :, None] == stages).reshape(items, -1)
    pairs = list(combinations(range(raters), 2))
    gaps = np.abs(np.stack([rated[:, left] - rated[:, right] for left, right in pairs], axis=1))
    weighed = (gaps > 0).astype(float) if power == 0 else gaps**power

    def kappa(sums: Floats) -> Floats:
        counts = sums[..., len(pairs) :].reshape(*sums.shape[:-1], raters, len(stages))
        total = counts[..., 0, :].sum(axis=-1)
        share = counts / total[..., None, None]
        found = []
        for place, (left, right) in enumerate(pairs):
            expected = ((share[..., left, :] @ weight) * share[..., right, :]).sum(axis=-1)
            found.append(_beyond_chance(sums[..., place] / total, expected))
        mean: Floats = np.mean(found, axis=0)
        return mean

    return SumStatistic(np.column_stack([weighed, given]), kappa)


def intraclass_correlation(rated: Floats) -> SumStatistic:
    """Returns ICC(2,1): absolute agreement of single raters, who are a random sample."""
    raters = rated.shape[1]
    gaps = rated - rated.mean()  # centred, so that squares lose no digits
    whole = gaps.sum(axis=1) ** 2 / raters

    def correlation(sums: Floats) -> Floats:
        items, by_rater = sums[..., 0], sums[..., 3:]
        grand = by_rater.sum(axis=-1) ** 2 / (items * raters)
        items_apart, squares = sums[..., 1] - grand, sums[..., 2] - grand
        raters_apart = (by_rater**2).sum(axis=-1) / items - grand
        between = items_apart / (items - 1)
        error = (squares - items_apart - raters_apart) / ((items - 1) * (raters - 1))
        by_raters = raters_apart / (raters - 1)
        total = between + (raters - 1) * error + raters * (by_raters - error) / items
        return _beyond_chance(total - (between - error), total)

    columns = [np.ones(len(rated)), whole, (gaps**2).sum(axis=1), gaps]
    return SumStatistic(np.column_stack(columns), correlation)


def _beyond_chance(observed: Floats, expected: Floats) -> Floats:
    """Returns 1 - observed / expected disagreement; NaN if no disagreement is expected."""
    found = np.full(np.shape(expected), np.nan)
    np.divide(observed, expected, out=found, where=expected > CLOSE)
    return 1 - found
