"""Errors that respect clusters: items of one outlet, conversation or event are not independent.

Least squares with CR2 errors and Satterthwaite's degrees of freedom (Bell and McCaffrey 2002;
Pustejovsky and Tipton 2018); a mean is a model with an intercept alone. Where each item is a
cluster of its own, the mean has Student's error with n - 1 degrees of freedom.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
"""The number of each item's cluster; numbers need not be consecutive."""
MIN_FREEDOM = 4 - 1e-9
"""The degrees of freedom below which nothing is inferred about further clusters."""


class ErrorPart(NamedTuple):
    """A component of a standard error, with its degrees of freedom."""

    error: float
    freedom: float


class ClusteredFit(NamedTuple):
    """The estimates of a linear model, with errors that are robust to clusters."""

    params: Floats
    bse: Floats
    """The standard errors."""
    freedoms: Floats
    """Satterthwaite's degrees of freedom of each term."""

    def conf_int(self) -> Floats:
        """Computes the lower and upper ends of the intervals."""
        half = special.stdtrit(self.freedoms, 0.975) * self.bse
        return np.column_stack([self.params - half, self.params + half])

    @property
    def pvalues(self) -> Floats:
        """The two-sided p-value of each term."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.abs(self.params / self.bse)
        return 2 * np.asarray(special.stdtr(self.freedoms, -t))


def cluster_robust(y: Floats, matrix: Floats, *groupings: Codes) -> ClusteredFit:
    """Fits least squares with CR2 errors, where columns are linearly independent.

    With two groupings errors are clustered both ways, and the fewer degrees of freedom count.
    """
    q, r = np.linalg.qr(matrix)
    params = np.linalg.solve(r, q.T @ y)
    residuals = y - matrix @ params
    rows = np.linalg.inv(r)  # a row per term, in the coordinates of q
    parts = [_cr2(q, residuals, rows, codes) for codes in groupings]
    variances = sum(variance for variance, _ in parts)
    if len(groupings) == 2:
        both = np.unique(np.stack(groupings), axis=1, return_inverse=True)[1].ravel()
        variances = variances - _cr2(q, residuals, rows, both)[0]
    with np.errstate(invalid="ignore"):  # a variance of 0 may round to a negative one
        errors = np.sqrt(variances)
    return ClusteredFit(params, errors, np.min([freedoms for _, freedoms in parts], axis=0))


def _cr2(q: Floats, residuals: Floats, rows: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """Computes the variance and the degrees of freedom of each term.

    `q` is an orthonormal basis of the model, so that the hat matrix of a cluster is q_g q_g'. Its
    inverse square root acts on the scores q_g' e through the eigenvectors of q_g' q_g.
    """
    group = np.unique(codes, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    scores = np.add.reduceat((q * residuals[:, None])[order], starts)
    hats = np.add.reduceat((q[:, :, None] * q[:, None, :])[order], starts)
    shares, vectors = np.linalg.eigh(hats)
    # A cluster that alone identifies a combination of terms has no residual along it.
    left = np.where(shares < 1 - 1e-9, 1 - shares, np.inf)
    roots = (vectors / np.sqrt(left)[:, None, :]) @ vectors.transpose(0, 2, 1)
    adjusted = np.einsum("gij,gj->gi", roots, scores)
    variances = ((adjusted @ rows.T) ** 2).sum(axis=0)
    freedoms = []
    for row in rows:
        moved = roots @ row
        along = np.einsum("gij,gj->gi", hats, moved)
        lengths = np.einsum("gi,gi->g", moved, along)
        diagonal = lengths - (along**2).sum(axis=1)
        total = (lengths**2).sum() - 2 * (lengths * (along**2).sum(axis=1)).sum()
        total += ((along.T @ along) ** 2).sum()
        freedoms.append(diagonal.sum() ** 2 / total if total > 0 else 0.0)
    return variances, np.array(freedoms)


def grouped_codes(codes: Codes | None, kept: npt.NDArray[np.bool_]) -> Codes | None:
    """Renumbers the clusters of the kept items, or None if each item is its own cluster."""
    if codes is None:
        return None
    here = codes[kept]
    return here if len({*here.tolist()}) < len(here) else None  # np.unique is slower on few


def mean_error(values: Floats, codes: Codes) -> ErrorPart:
    """Computes the error of a mean over items in clusters."""
    fit = cluster_robust(values, np.ones((len(values), 1)), codes)
    return ErrorPart(float(fit.bse[0]), float(fit.freedoms[0]))


def infers(codes: Codes) -> bool:
    """Whether there are enough clusters to infer beyond them."""
    return mean_error(np.zeros(len(codes)), codes).freedom >= MIN_FREEDOM


def cluster_sums(rows: Floats, codes: Codes) -> Floats:
    """Adds up rows by cluster."""
    group = np.unique(codes, return_inverse=True)[1]
    sums = np.zeros((int(group.max(initial=-1)) + 1, *rows.shape[1:]))
    np.add.at(sums, group, rows)
    return sums


def scope(values: npt.ArrayLike, codes: Codes | None) -> str:
    """Says that a mean holds for its clusters alone, with its error within them.

    >>> scope([1, 2, 2, 4], np.array([0, 0, 1, 1]))
    'for these 2 clusters, ± 2.41 within them'
    """
    numbers = np.asarray(values, dtype=float)
    has_value = ~np.isnan(numbers)
    here = grouped_codes(codes, has_value)
    if here is None or infers(here):
        return ""
    within = _within(numbers[has_value], here)
    half = special.stdtrit(within.freedom, 0.975) * within.error
    what = f"for {_these(len(np.unique(here)))}"
    return f"{what}, ± {half:.3g} within them" if np.isfinite(half) else what


def _these(clusters: int) -> str:
    return "this cluster" if clusters == 1 else f"these {clusters} clusters"


def _within(values: Floats, codes: Codes) -> ErrorPart:
    """Computes the error of a mean over items drawn anew from the same clusters."""
    group, sizes = np.unique(codes, return_inverse=True, return_counts=True)[1:]
    freedom = len(values) - len(sizes)
    if not freedom or (sizes < 2).any():
        return ErrorPart(np.nan, np.nan)
    means = np.bincount(group, values) / sizes
    pooled = float(((values - means[group]) ** 2).sum()) / freedom
    return ErrorPart(float(np.sqrt(pooled / len(values))), freedom)
