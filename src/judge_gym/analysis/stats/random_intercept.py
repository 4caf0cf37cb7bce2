"""Least squares with a random intercept per group, by restricted maximum likelihood.

With one variance beside that of the residuals all depends on sums within groups, and the search is
over one number. A library for mixed models in general goes through groups one by one, which takes
minutes on thousands of items, and longest where groups do not differ.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from judge_gym.analysis.stats.intervals import Floats

MOST = 1 - 1e-6
"""The largest share of the variance that lies between groups."""


class RandomIntercept(NamedTuple):
    """The estimates of a model, and how much of the variance is between groups."""

    params: Floats
    errors: Floats
    between: float
    """From 0 to 1; 0 where groups do not differ beyond chance."""


class _Fitted(NamedTuple):
    params: Floats
    bread: Floats
    rest: float
    """The sum of squares that the terms leave."""


def random_intercept(y: Floats, matrix: Floats, groups: np.ndarray) -> RandomIntercept:
    """Fit the terms, whose errors are alike within groups.

    Args:
        y: what is explained.
        matrix: a column per term, none a combination of the others.
        groups: the number of each row's group.
    """
    n, terms = matrix.shape
    table = np.column_stack([matrix, y])
    whole = table.T @ table
    sizes = np.bincount(groups)
    sums = np.stack([np.bincount(groups, column) for column in table.T], axis=1)

    def fitted(between: float) -> _Fitted:
        ratio = between / (1 - between)
        moments = whole - (sums * (ratio / (1 + ratio * sizes))[:, None]).T @ sums
        bread, cross = moments[:terms, :terms], moments[:terms, terms]
        params: Floats = np.linalg.solve(bread, cross).astype(np.float64)
        return _Fitted(params, bread, float(moments[terms, terms] - params @ cross))

    def criterion(between: float) -> float:
        """Twice the negative log likelihood of what the terms leave, up to a constant."""
        found = fitted(between)
        spread = np.log1p(between / (1 - between) * sizes).sum()
        volume = np.linalg.slogdet(found.bread)[1]
        return float((n - terms) * np.log(found.rest) + spread + volume)

    searched = minimize_scalar(criterion, bounds=(0.0, MOST), method="bounded")
    between = float(searched.x) if searched.fun < criterion(0.0) else 0.0
    found = fitted(between)
    covariance = np.linalg.inv(found.bread) * found.rest / (n - terms)
    return RandomIntercept(found.params, np.sqrt(np.diag(covariance)), between)
