"""Which of two systems is better, by people's labels of some items and a judge's verdicts on all.

The judge may favour a system, for instance one that writes longer texts: its own difference of two
rates then says more about the judge than about the systems. Labels correct it.
"""

from dataclasses import dataclass, replace

import numpy as np

from judge_gym.analysis.judges.rate import MIN_LABELS, PeopleRate, mean_scores, people_rate
from judge_gym.analysis.stats.clusters import Codes
from judge_gym.analysis.stats.intervals import (
    UNBOUNDED,
    Estimate,
    Floats,
    between,
    estimate,
    undefined,
)


@dataclass(frozen=True, slots=True)
class SystemItems:
    """The items that a system answered, with verdicts of one judge and people's labels."""

    items: Codes
    """The number of each item; what two systems answered has one number."""
    labels: Floats
    """People's mean label, from 0 to 1; NaN without a label."""
    shares: Floats
    """The share of each item's repeats in each verdict category."""
    clusters: Codes
    lengths: Floats
    """The length of the system's answer; NaN if it is unknown."""

    def on(self, rows: Codes) -> "SystemItems":
        """Selects items by their places."""
        return SystemItems(
            self.items[rows],
            self.labels[rows],
            self.shares[rows],
            self.clusters[rows],
            self.lengths[rows],
        )


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """The rate of a system minus that of another, or the difference of their mean labels."""

    judged: Estimate
    """By the judge alone."""
    corrected: Estimate
    """By labels and all verdicts; n counts the labelled items."""
    labels_alone: Estimate
    length: Estimate
    """The difference of mean lengths."""
    items: int
    """The number of items that are compared: those that both answered, or all of both systems."""
    shared: bool
    """Whether both systems answered the same items."""
    paired_labels: bool
    """Whether labels are compared item by item."""
    withheld: str
    """Why the corrected difference has no interval; empty if it has one."""


def system_difference(
    a: SystemItems, b: SystemItems, scores: Floats, *, is_rate: bool = True
) -> SystemDifference:
    """Estimates what people's labels of system A would be on average minus those of system B.

    Where both answered most items, verdicts are compared item by item, and so are labels where as
    many items have labels of both as that gains precision. Otherwise the estimates of both systems
    are independent, or positively correlated, by which the interval is only too wide.

    Args:
        a: the items of A.
        b: the items of B.
        scores: the label that each verdict category stands for, from 0 to 1; NaN for none.
        is_rate: whether labels are positive or not; else they are stages from 0 to 1.
    """
    both, in_a, in_b = np.intersect1d(a.items, b.items, return_indices=True)
    shared = 2 * len(both) >= max(len(a.items), len(b.items))
    if shared:
        a, b = a.on(in_a), b.on(in_b)
    sides = [
        people_rate(side.labels, side.shares, scores, side.clusters, is_rate=is_rate)
        for side in (a, b)
    ]
    apart = _independent(sides)
    if not shared:
        length = _minus(*(_mean_length(side.lengths, side.clusters) for side in (a, b)))
        return replace(apart, length=length, items=len(a.items) + len(b.items))
    paired = _paired(a, b, scores)
    count = int((~np.isnan(a.labels - b.labels)).sum())
    # Differences on items have about half the variance of two independent labels.
    pair_labels = count >= max(MIN_LABELS, (sides[0].labels + sides[1].labels) / 4)
    length = _mean_length(a.lengths - b.lengths, a.clusters)
    if pair_labels:
        return replace(paired, length=length)
    return replace(apart, judged=paired.judged, length=length, items=len(both), shared=True)


def _paired(a: SystemItems, b: SystemItems, scores: Floats) -> SystemDifference:
    """Estimates the mean difference on items: a pair of verdicts is a verdict on a pair."""
    pairs = (a.shares[:, :, None] * b.shares[:, None, :]).reshape(len(a.items), -1)
    gaps = (scores[:, None] - scores[None, :]).ravel()
    occurring = pairs.any(axis=0)
    rate = people_rate(
        a.labels - b.labels,
        pairs[:, occurring],
        gaps[occurring],
        a.clusters,
        scale=(-1.0, 1.0),
        is_rate=False,
    )
    # An item counts with its mean difference, also where one of several repeats has no score.
    means = mean_scores(a.shares, scores) - mean_scores(b.shares, scores)
    return SystemDifference(
        judged=estimate(means, a.clusters, scale=between(-1.0, 1.0)),
        corrected=rate.corrected,
        labels_alone=rate.labels_alone,
        length=undefined(),
        items=rate.items,
        shared=True,
        paired_labels=True,
        withheld=rate.withheld,
    )


def _independent(sides: list[PeopleRate]) -> SystemDifference:
    a, b = sides
    return SystemDifference(
        judged=_minus(a.judge, b.judge),
        corrected=_minus(a.corrected, b.corrected),
        labels_alone=_minus(a.labels_alone, b.labels_alone),
        length=undefined(),
        items=0,
        shared=False,
        paired_labels=False,
        withheld=a.withheld or b.withheld,
    )


def _minus(a: Estimate, b: Estimate) -> Estimate:
    """Subtracts independent estimates; the interval is made of theirs (MOVER, Zou and Donner 2008).

    It keeps their asymmetry at the ends of a scale, of which a common standard error knows nothing.
    """
    value, n = a.value - b.value, a.n + b.n
    if not (a.known and b.known):
        return undefined(n, value, a.withheld or b.withheld)
    low = value - np.hypot(a.value - a.low, b.high - b.value)
    high = value + np.hypot(a.high - a.value, b.value - b.low)
    return Estimate(value, float(low), float(high), n)


def _mean_length(lengths: Floats, clusters: Codes) -> Estimate:
    return estimate(lengths, clusters, scale=UNBOUNDED)
