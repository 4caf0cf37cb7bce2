"""Intervals of rates whose denominators differ between items, and of averages of such rates."""

import numpy as np
import numpy.typing as npt

from judge_gym.analysis.measures.confusion import MeanOfRates, Rate, statistic
from judge_gym.analysis.measures.jackknife import (
    Jackknife,
    Measured,
    jackknife_sums,
    withheld_reason,
)
from judge_gym.analysis.stats.clusters import grouped_codes
from judge_gym.analysis.stats.intervals import LEVEL, Bounded, Estimate, signed, undefined

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


def rate_interval(
    tables: Floats, rate: Rate, clusters: Codes | None = None, *, level: float = LEVEL
) -> Measured:
    """Estimates a rate by linearising the ratio, with the interval of a bounded mean.

    Items outside the denominator, such as those that people did not label positive, neither add to
    the rate nor to its error; they are left out. The linearised value of an item reaches beyond the
    scale of the rate if its denominator is above the mean: the bounded interval gets this real
    scale, and ends are clipped, never values. A quantity on both sides of 0 has Student's interval
    unless most items are 0.
    """
    numerator, denominator = rate.by_item(tables)
    counted = denominator > 1e-12
    items = int(counted.sum())
    if not items:
        return Measured(undefined(), "no item to base it on")
    numerator, denominator = numerator[counted], denominator[counted]
    codes = grouped_codes(clusters, counted)
    mean = float(denominator.mean())
    value, stretch = float(numerator.mean()) / mean, float(denominator.max()) / mean
    if np.ptp(denominator) < 1e-12:  # a plain mean, whose ends of the scale stay exact
        linear, (low, high) = numerator / mean, (rate.low, rate.high)
    else:
        linear = value + (numerator - value * denominator) / mean
        low, high = value + (rate.low - value) * stretch, value + (rate.high - value) * stretch
        linear = np.clip(linear, low, high)  # against rounding
    if rate.low < 0:
        estimate = signed(linear, codes, reach=max(-low, high), level=level)
    else:
        estimate = Bounded(low, high, level=level)(linear, codes)
    estimate = estimate._replace(value=value, n=items).clipped(rate.low, rate.high)
    return Measured(estimate, "" if estimate.known else _missing_reason(items, codes))


def _missing_reason(items: int, codes: Codes | None) -> str:
    if codes is not None:
        return f"{len(np.unique(codes))} clusters are too few to infer beyond them"
    return "1 item" if items == 1 else "without variance its error is not known"


def mean_of_rates_interval(
    tables: Floats,
    mean: MeanOfRates,
    clusters: Codes | None = None,
    label_items: npt.ArrayLike | None = None,
    *,
    level: float = LEVEL,
) -> Measured:
    """Estimates a mean of rates, with an interval composed of those of the rates.

    Distances from each rate to the ends of its interval add like errors, with the correlation of
    the rates over clusters (Zou and Donner's MOVER 2008): a rate without any observed mistake still
    adds its uncertainty, which the jackknife would not see.
    """
    whole = jackknife_sums(statistic(tables, mean), clusters)
    items = int(whole.sizes.sum())
    nothing = undefined(items, whole.value)
    reason = withheld_reason(whole.sizes, label_items)
    if reason or np.isnan(whole.value):
        return Measured(nothing, reason or "not defined: people use a single label")
    parts = [rate_interval(tables, rate, clusters, level=level) for rate in mean.rates]
    defined = [
        (rate, part.estimate)
        for rate, part in zip(mean.rates, parts, strict=True)
        if not np.isnan(part.estimate.value)
    ]
    if not all(part.known for _, part in defined):
        return Measured(nothing, "one of its rates has no interval")
    influences = [jackknife_sums(statistic(tables, rate), clusters) for rate, _ in defined]
    related = _correlations(influences)
    below = np.array([part.value - part.low for _, part in defined])
    above = np.array([part.high - part.value for _, part in defined])
    low = whole.value - float(np.sqrt(max(0.0, below @ related @ below))) / len(defined)
    high = whole.value + float(np.sqrt(max(0.0, above @ related @ above))) / len(defined)
    return Measured(Estimate(whole.value, low, high, items).clipped(0.0, 1.0))


def _correlations(parts: list[Jackknife]) -> Floats:
    """Returns how rates move together over clusters; rates without variance with none."""
    moves = np.nan_to_num(np.stack([part.without - part.value for part in parts]))
    moves -= moves.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(moves, axis=1, keepdims=True)
    units = np.where(lengths > 1e-12, moves / np.maximum(lengths, 1e-12), 0.0)
    correlations: Floats = units @ units.T
    np.fill_diagonal(correlations, 1.0)
    return correlations
