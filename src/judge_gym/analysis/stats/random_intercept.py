"""Linear regression with a random intercept per group, by restricted maximum likelihood.

With one variance component beside the residuals, everything depends on sums within groups, and the
search is over one number. General mixed-model libraries loop over groups, which takes minutes on
thousands of items, most of all where groups do not differ.
"""

from typing import NamedTuple

import numpy as np

from judge_gym.analysis.stats.intervals import Floats

MOST = 1 - 1e-6
"""The upper bound of the share of variance between groups."""


class RandomIntercept(NamedTuple):
    """The estimates of a model, and the share of variance between groups."""

    params: Floats
    errors: Floats
    between: float
    """From 0 to 1; 0 if groups do not differ beyond chance."""


class _Fit(NamedTuple):
    params: Floats
    bread: Floats
    rest: float
    """The residual sum of squares."""


def random_intercept(y: Floats, matrix: Floats, groups: np.ndarray) -> RandomIntercept:
    """Fits a linear model of y on independent columns, with errors correlated within groups."""
    from scipy.optimize import minimize_scalar

    n, terms = matrix.shape
    table = np.column_stack([matrix, y])
    whole = table.T @ table
    sizes = np.bincount(groups)
    sums = np.stack([np.bincount(groups, column) for column in table.T], axis=1)

    def fitted(between: float) -> _Fit:
        ratio = between / (1 - between)
        moments = whole - (sums * (ratio / (1 + ratio * sizes))[:, None]).T @ sums
        bread, cross = moments[:terms, :terms], moments[:terms, terms]
        params: Floats = np.linalg.solve(bread, cross).astype(np.float64)
        return _Fit(params, bread, float(moments[terms, terms] - params @ cross))

    def criterion(between: float) -> float:
        """Returns twice the negative restricted log likelihood, up to a constant."""
        found = fitted(between)
        spread = np.log1p(between / (1 - between) * sizes).sum()
        volume = np.linalg.slogdet(found.bread)[1]
        return float((n - terms) * np.log(found.rest) + spread + volume)

    searched = minimize_scalar(criterion, bounds=(0.0, MOST), method="bounded")
    between = float(searched.x) if searched.fun < criterion(0.0) else 0.0
    found = fitted(between)
    covariance = np.linalg.inv(found.bread) * found.rest / (n - terms)
    return RandomIntercept(found.params, np.sqrt(np.diag(covariance)), between)
