"""What a measure of one setup is made of: the part that each unit has in it.

The judge table needs four things of any measure: an estimate with its interval, the value on some
of the units (where a setup is chosen on the others), the same of several setups put together, and
what each unit contributes, so that setups can be compared unit by unit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.measures.rank import (
    Correlation,
    rank_correlation,
    rank_interval,
)
from judge_gym.analysis.stats.intervals import (
    LEVEL,
    MEDIAN,
    Estimate,
    Scale,
    Statistic,
    estimate,
    jackknife_values,
    linearised,
)


class Terms(Protocol):
    """A measure of one setup, by unit."""

    @property
    def units(self) -> IntArray:
        """The unit of each row, each once."""

    @property
    def value(self) -> float:
        """The measure."""

    def estimate(self, clusters: IntArray, level: float = LEVEL) -> Estimate:
        """Estimates the measure, where `clusters` has the cluster of every unit."""

    def contributions(self, clusters: IntArray) -> FloatArray:
        """Spreads the measure over its units: their mean is the value, their spread its error."""

    def on(self, rows: Any) -> Self:
        """Selects rows."""

    def weighted(self, weights: FloatArray) -> Self | None:
        """Weights rows, of which some were more likely to be drawn, or gives None if it cannot."""

    def joined(self, others: Sequence[Self]) -> Self:
        """Puts the rows of several setups together, each unit of one of them."""


@dataclass(frozen=True, eq=False)
class Ratio:
    """A ratio of sums over units, where the denominators of a mean are 1."""

    units: IntArray
    above: FloatArray
    below: FloatArray
    """With columns, as `above` has then, the measure is the mean of a ratio per column."""
    scale: Scale

    @classmethod
    def mean(cls, units: IntArray, values: FloatArray, scale: Scale) -> "Ratio":
        """Makes the mean of a value per unit, or the median on the scale `MEDIAN`."""
        return cls(units, values, np.ones(len(values)), scale)

    @property
    def value(self) -> float:
        """The ratio."""
        if self.scale is MEDIAN:
            return float(np.median(self.above))
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.mean(self.above.sum(axis=0) / self.below.sum(axis=0)))

    def estimate(self, clusters: IntArray, level: float = LEVEL) -> Estimate:
        """Estimates the ratio with the interval of its scale."""
        codes = clusters[self.units]
        below = None if self.scale is MEDIAN else self.below
        return estimate(self.above, codes, scale=self.scale, below=below, level=level)

    def contributions(self, clusters: IntArray) -> FloatArray:
        """Linearises the ratio. Units contribute to a median by whether they are above it."""
        if self.scale is MEDIAN:
            return np.asarray(self.above > np.median(self.above), dtype=float)
        linear = linearised(self.above, self.below, self.scale)
        if linear.used.all():
            return linear.values
        values = np.full(len(self.units), linear.value)
        values[linear.used] += (linear.values - linear.value) * (len(values) / linear.used.sum())
        return values

    def on(self, rows: Any) -> "Ratio":
        """Selects rows."""
        return replace(self, units=self.units[rows], above=self.above[rows], below=self.below[rows])

    def weighted(self, weights: FloatArray) -> "Ratio | None":
        """Weights numerators and denominators. A median has no such version."""
        if self.scale is MEDIAN:
            return None
        above, below = (self.above.T * weights).T, (self.below.T * weights).T
        return replace(self, above=above, below=below)

    def joined(self, others: Sequence["Ratio"]) -> "Ratio":
        """Puts rows together."""
        parts = [self, *others]
        return replace(
            self,
            units=np.concatenate([part.units for part in parts]),
            above=np.concatenate([part.above for part in parts]),
            below=np.concatenate([part.below for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """A function of sums over units, such as a kappa."""

    units: IntArray
    rows: FloatArray
    of: Callable[[FloatArray], FloatArray]
    scale: Scale
    labels: FloatArray
    """By unit, the distribution of labels: an interval needs enough units of each used one."""

    @property
    def statistic(self) -> Statistic:
        """The function of sums, with the number of units of each used label."""
        counts = (self.labels > 0).sum(axis=0)
        return Statistic(self.rows, self.of, tuple(counts[counts > 0].tolist()))

    @property
    def value(self) -> float:
        """The function's value."""
        return self.statistic.value

    def estimate(self, clusters: IntArray, level: float = LEVEL) -> Estimate:
        """Estimates the function by the jackknife over clusters."""
        return estimate(self.statistic, clusters[self.units], scale=self.scale, level=level)

    def contributions(self, clusters: IntArray) -> FloatArray:
        """Returns jackknife pseudo-values, centred on the value."""
        values = jackknife_values(self.statistic)
        values = np.where(np.isfinite(values), values, self.value)
        centred: FloatArray = values - values.mean() + self.value
        return centred

    def on(self, rows: Any) -> "Sums":
        """Selects rows."""
        return replace(self, units=self.units[rows], rows=self.rows[rows], labels=self.labels[rows])

    def weighted(self, weights: FloatArray) -> "Sums":
        """Weights the rows that are summed."""
        return replace(self, rows=self.rows * weights[:, None])

    def joined(self, others: Sequence["Sums"]) -> "Sums":
        """Puts rows together."""
        parts = [self, *others]
        return replace(
            self,
            units=np.concatenate([part.units for part in parts]),
            rows=np.concatenate([part.rows for part in parts]),
            labels=np.concatenate([part.labels for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class Ranks:
    """The rank correlation of a setup's mean stages with people's."""

    units: IntArray
    judge: FloatArray
    """By unit, the mean stage; NaN without a score."""
    people: FloatArray
    kind: Correlation

    @property
    def value(self) -> float:
        """The correlation."""
        return rank_correlation(self.judge, self.people, kind=self.kind).jackknife.value

    def estimate(self, clusters: IntArray, level: float = LEVEL) -> Estimate:
        """Estimates the correlation by the jackknife over clusters."""
        codes = clusters[self.units]
        correlation = rank_correlation(self.judge, self.people, codes, self.kind)
        return rank_interval(correlation, level=level)

    def contributions(self, clusters: IntArray) -> FloatArray:
        """Spreads the pseudo-value of each cluster equally over its units."""
        codes = np.unique(clusters[self.units], return_inverse=True)[1]
        jackknife = rank_correlation(self.judge, self.people, codes, self.kind).jackknife
        away = jackknife.influences - jackknife.value
        away = np.where(np.isfinite(away), away, 0.0)
        sizes = np.bincount(codes)
        shares = away * (len(codes) / len(sizes)) / sizes
        values: FloatArray = jackknife.value + (shares - np.average(shares, weights=sizes))[codes]
        return values

    def on(self, rows: Any) -> "Ranks":
        """Selects rows."""
        return replace(
            self, units=self.units[rows], judge=self.judge[rows], people=self.people[rows]
        )

    def weighted(self, weights: FloatArray) -> None:
        """Ranks of a sample are no function of weighted sums."""

    def joined(self, others: Sequence["Ranks"]) -> "Ranks":
        """Puts rows together."""
        parts = [self, *others]
        return replace(
            self,
            units=np.concatenate([part.units for part in parts]),
            judge=np.concatenate([part.judge for part in parts]),
            people=np.concatenate([part.people for part in parts]),
        )
