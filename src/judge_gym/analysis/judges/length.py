"""Whether verdicts depend on what should not matter: the length of a text, or any named number.

Better texts may be longer, so that length is judged at equal label of people: without labels it
cannot be told from quality.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from judge_gym.analysis.stats.clusters import MIN_FREEDOM, Codes, cluster_robust
from judge_gym.analysis.stats.intervals import Estimate, Floats, seeded, t_quantile, undefined
from judge_gym.records.numbers import points, signed_points

LENGTH = "length"
MIN_ITEMS = 20
"""The number of labelled items, or of items with one label, below which nothing is estimated."""
MIN_EXCEPTIONS = 5
"""The number of verdicts unlike most at the same label, below which an effect has no interval: at
60 items with 3 of them, intervals cover 90 %."""
ENOUGH_LABELS = 60
"""The number of labels that is asked for where there are too few."""
COUNTED_FROM = 4
"""The ratio of the largest to the smallest number from which whole numbers count by doublings."""
JACKKNIFE_GROUPS = 250
MAX_STEPS = 100
LARGEST_BATCH = 1 << 20
"""The number of items in all fits of a batch together."""
Unit = Literal["doubling", "standard deviation"]


@dataclass(frozen=True, slots=True)
class ColumnEffect:
    """How verdicts change with a number of the item, at equal label of people."""

    column: str
    unit: Unit
    effect: Estimate
    """The change of the share of positive verdicts, or of the mean stage from 0 to 1, per unit."""
    failed: Estimate
    """The effect on items that people failed; undefined with fewer than 20, and for stages."""
    passed: Estimate
    items: int
    """The number of items with a label, a number and a verdict."""
    left_out: int
    """The number of labelled items without a number or a verdict that counts."""
    is_rate: bool
    withheld: str
    """Why there is no interval; empty if there is one."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.effect.known and not self.effect.low <= 0 <= self.effect.high


def column_effect(
    positive: Floats,
    numbers: Floats,
    labels: Floats,
    clusters: Codes,
    *,
    column: str = LENGTH,
    is_rate: bool = True,
) -> ColumnEffect:
    """Estimates how verdicts depend on a number of each item, with people's label as covariate.

    The share of positive verdicts is modelled by a logistic regression, mean stages by a linear
    one, whose coefficient is the effect. Labels are taken as they are: what raters got wrong is
    not corrected, and leaves a part of the quality that goes with the number.

    Args:
        positive: the share of each item's verdicts that are positive, or its mean stage from 0 to
            1; NaN for an item that has none.
        numbers: the number of each item, such as the length of its text; NaN if it is missing.
        labels: people's mean label, from 0 to 1; NaN for an item without a label.
        clusters: the number of each item's cluster.
        column: the name of the numbers.
        is_rate: whether verdicts are positive or not, rather than stages.
    """
    unit = _unit(numbers[~np.isnan(numbers)], always_doubling=column == LENGTH)
    usable = ~np.isnan(positive) & ~np.isnan(labels) & ~np.isnan(numbers)
    if unit == "doubling":
        usable &= np.nan_to_num(numbers) > 0
    x = np.log2(numbers[usable]) if unit == "doubling" else numbers[usable]
    if unit != "doubling" and len(x) > 1 and np.ptp(x) > 0:
        x = (x - x.mean()) / x.std(ddof=1)
    data = _Data(positive[usable], x, labels[usable], clusters[usable])
    estimate = _logistic if is_rate else _linear
    failed, passed = (data.part(data.label < 0.5), data.part(data.label > 0.5))
    withheld = data.shortage(is_rate)
    effect = undefined(len(x)) if withheld else estimate(data)
    if not withheld and not effect.known:
        withheld = "the numbers differ between too few clusters"
    return ColumnEffect(
        column=column,
        unit=unit,
        effect=effect,
        failed=_logistic(failed) if is_rate and not failed.shortage(is_rate) else undefined(),
        passed=_logistic(passed) if is_rate and not passed.shortage(is_rate) else undefined(),
        items=len(x),
        left_out=int((~np.isnan(labels)).sum()) - len(x),
        is_rate=is_rate,
        withheld=withheld,
    )


def effect_sentence(
    effect: ColumnEffect, positive: str = "positive", label: str = "label of people"
) -> str:
    """Says how verdicts depend on the column, with the word of the positive label.

    For example: 'Length: verdicts are “pass” 8 points [3, 13] more often per doubling, at equal
    label of people.'

    Args:
        effect: the effect.
        positive: the word of the positive one of two labels.
        label: what verdicts are compared with at equal values of it.
    """
    name = effect.column.capitalize()
    if effect.items + effect.left_out < MIN_ITEMS:
        return f"{name}: cannot be told from quality: label {ENOUGH_LABELS} items."
    if effect.withheld:
        return f"{name}: no interval: {effect.withheld}."
    value, low, high = effect.effect[:3]
    per = f"per {effect.unit}, at equal {label}"
    if not effect.is_clear:
        number, *ends = map(signed_points, (value, low, high))
        unit = "point" if number in ("+1", "-1") else "points"
        return f"{name}: not clear yet, {number} {unit} [{ends[0]}, {ends[1]}] {per}."
    ends = [points(abs(end)).split()[0] for end in sorted((low, high), key=abs)]
    size = f"{points(abs(value))} [{ends[0]}, {ends[1]}]"
    more = "more" if value > 0 else "less"
    if effect.is_rate:
        return f"{name}: verdicts are “{positive}” {size} {more} often {per}."
    direction = "higher" if value > 0 else "lower"
    return f"{name}: verdicts are {size} of the scale {direction} {per}."


def _unit(numbers: Floats, *, always_doubling: bool) -> Unit:
    """Chooses doublings for lengths and for counts: whole numbers of two orders of magnitude."""
    if not len(numbers) or (numbers < 1).any() or (numbers % 1 != 0).any():
        return "standard deviation"
    if always_doubling or numbers.max() >= COUNTED_FROM * numbers.min():
        return "doubling"
    return "standard deviation"


@dataclass(frozen=True, slots=True)
class _Data:
    """The items of a regression."""

    positive: Floats
    x: Floats
    label: Floats
    codes: Codes

    def part(self, rows: npt.NDArray[np.bool_]) -> "_Data":
        return _Data(self.positive[rows], self.x[rows], self.label[rows], self.codes[rows])

    def shortage(self, is_rate: bool) -> str:
        """Says why there is no effect to estimate, or nothing if there is."""
        if len(self.x) < MIN_ITEMS:
            return f"needs {MIN_ITEMS} labelled items with a number; there are {len(self.x)}"
        if np.ptp(self.x) == 0:
            return "all items have the same number"
        # Where all items with one label have the same verdict, nothing else can matter.
        groups = (self.positive[self.label < 0.5], self.positive[self.label >= 0.5])
        if is_rate and sum(min(y.sum(), (1 - y).sum()) for y in groups) < MIN_EXCEPTIONS:
            return f"fewer than {MIN_EXCEPTIONS} verdicts differ from what is usual at their label"
        return ""

    @property
    def matrix(self) -> Floats:
        columns = [np.ones(len(self.x)), self.x - self.x.mean()]
        if np.ptp(self.label) > 0:
            columns.append(self.label - self.label.mean())
        return np.column_stack(columns)

    @property
    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom of the effect, of the linear model."""
        return float(cluster_robust(self.positive, self.matrix, self.codes).freedoms[1])


def _linear(data: _Data) -> Estimate:
    fit = cluster_robust(data.positive, data.matrix, data.codes)
    return _interval(float(fit.params[1]), float(fit.bse[1]), float(fit.freedoms[1]), len(data.x))


def _interval(value: float, error: float, freedom: float, items: int) -> Estimate:
    if freedom < MIN_FREEDOM or not error > 0:
        return undefined(items, value)
    half = float(t_quantile(freedom)) * error
    return Estimate(value, value - half, value + half, items)


# --- the logistic regression ---------------------------------------------------------------------


def _logistic(data: _Data) -> Estimate:
    """Estimates the marginal effect averaged over items, with a jackknife over clusters.

    With many clusters, groups of them are left out, which costs no accuracy and bounds the time.
    """
    group = np.unique(data.codes, return_inverse=True)[1]
    clusters = int(group.max()) + 1
    if clusters > JACKKNIFE_GROUPS:
        order = seeded("column effect", len(data.x), clusters).permutation(clusters)
        group = order[group] % JACKKNIFE_GROUPS
    groups = int(group.max()) + 1
    effect = _marginal_effects(data, np.ones((1, len(group))))
    # A row per group left out, in parts that fit in memory.
    size = max(1, LARGEST_BATCH // len(group))
    parts = [np.arange(start, min(start + size, groups)) for start in range(0, groups, size)]
    without = [_marginal_effects(data, (part[:, None] != group).astype(float)) for part in parts]
    error = np.sqrt((groups - 1) * np.concatenate(without).var())
    return _interval(float(effect[0]), float(error), data.freedom, len(data.x))


def _marginal_effects(data: _Data, keep: Floats) -> Floats:
    """Averages the effect over items, for each row of `keep`: 1 for the items that it has."""
    matrix = data.matrix
    coefficients = firth(data.positive, matrix, keep)
    chance = special.expit(coefficients @ matrix.T)
    slopes = keep * chance * (1 - chance) * coefficients[:, 1:2]
    effects: Floats = slopes.sum(axis=1) / keep.sum(axis=1)
    return effects


def firth(y: Floats, matrix: Floats, keep: Floats) -> Floats:
    """Fits logistic regressions with Firth's (1993) penalty, each without some rows.

    The penalty keeps estimates finite where a judge follows the label without exception, needs no
    scale to be chosen, and removes the bias of small samples. Not statsmodels: it has no such
    penalty, and one fit a cluster takes a second there; here all fits are one batch.

    Args:
        y: the share of each item, from 0 to 1.
        matrix: a row per item, a column per term.
        keep: a row per fit, with 1 for the items that it has.

    Returns:
        A row of coefficients per fit.
    """
    terms = matrix.shape[1]
    products = (matrix[:, :, None] * matrix[:, None, :]).reshape(-1, terms**2)
    coefficients = np.zeros((len(keep), terms))
    if not keep.all():  # fits without a few items begin close to their end
        coefficients += firth(y, matrix, np.ones((1, len(y))))
    for _ in range(MAX_STEPS):
        chance = special.expit(coefficients @ matrix.T)
        weight = keep * chance * (1 - chance)
        information = (weight @ products).reshape(-1, terms, terms)
        inverse = np.linalg.pinv(information, hermitian=True)
        leverage = weight * (inverse.reshape(-1, terms**2) @ products.T)
        score = (keep * (y - chance) + leverage * (0.5 - chance)) @ matrix
        step = (inverse @ score[:, :, None])[:, :, 0]
        largest = np.abs(step).max(axis=1, keepdims=True)
        coefficients += step / np.maximum(1.0, largest)
        if largest.max() < 1e-8:
            break
    return coefficients
