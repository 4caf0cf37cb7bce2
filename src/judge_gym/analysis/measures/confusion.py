"""Agreement measures that are functions of the averaged confusion matrix.

Each item contributes the outer product of its verdicts and its labels: repeats share the item
equally, and so do raters, so that the reference is a random rater. Verdicts without a score
(abstained, refused, truncated, unreadable) are rows of their own, after the stages: they are never
right and never dropped. Whatever is undefined is not a number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judge_gym.analysis.stats.intervals import Statistic

Floats = npt.NDArray[np.float64]
MatrixFunction = Callable[[Floats], Floats]
"""Maps confusion matrices (..., K + 4, K), of any total, to values (...)."""
UNSCORED = ("abstained", "refused", "truncated", "parse_failed")
"""The statuses whose rows follow the K stages, in this order."""


def confusion_tables(verdict: Floats, label: Floats) -> Floats:
    """Crosses each item's verdicts with its labels.

    Args:
        verdict: By item, the distribution over the K stages and the four statuses of `UNSCORED`.
        label: By item, the distribution over the K stages; a known answer is one stage.

    Returns:
        A table of K + 4 rows and K columns for each item, which sums to 1. An item without a
        verdict or without a label has zeros, and so no influence.
    """
    stages = label.shape[1]
    if verdict.shape != (len(label), stages + len(UNSCORED)):
        raise ValueError(f"verdicts {verdict.shape} do not fit labels {label.shape}")
    tables = verdict[:, :, None] * label[:, None, :]
    total = tables.sum(axis=(1, 2))
    complete = total > 0  # comparisons with NaN are false
    shares: Floats = np.zeros_like(tables)
    shares[complete] = tables[complete] / total[complete, None, None]
    return shares


def items_by_label(label: Floats) -> Floats:
    """Counts the items that at least one rater gives each label."""
    return np.asarray((label > 0).sum(axis=0), dtype=float)


def averaged_confusion(tables: Floats) -> Floats:
    """Averages the items' tables over the items that have both verdict and label."""
    matrix: Floats = tables.sum(axis=0)
    return _divide(matrix, matrix.sum())


def statistic(tables: Floats, measure: MatrixFunction) -> Statistic:
    """Expresses a measure as a function of sums over items, for intervals and comparisons."""
    shape = tables.shape[1:]

    def of(sums: Floats) -> Floats:
        return measure(sums.reshape(*sums.shape[:-1], *shape))

    return Statistic(tables.reshape(len(tables), -1), of)


# --- measures that are ratios --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)  # arrays have no single truth of equality
class Rate:
    """A ratio of two weighted sums over the confusion matrix; callable on matrices."""

    numerator: Floats
    """The weight of each cell (K + 4, K) in the numerator."""
    denominator: Floats
    low: float = 0.0
    """The smallest possible value."""
    high: float = 1.0

    def __call__(self, matrix: Floats) -> Floats:
        """Maps confusion matrices to the ratio."""
        return _divide(_total(matrix * self.numerator), _total(matrix * self.denominator))

    def by_item(self, tables: Floats) -> tuple[Floats, Floats]:
        """Returns numerator and denominator of each item, whose sums have the rate as ratio."""
        return _total(tables * self.numerator), _total(tables * self.denominator)


def exact(stages: int) -> Rate:
    """Share of verdicts that equal the label of a random rater."""
    return Rate(_padded(np.eye(stages)), _everything(stages))


def within_one(stages: int) -> Rate:
    """Share of verdicts at most one stage from the label."""
    return Rate(_padded(np.asarray(_distances(stages) <= 1, dtype=float)), _everything(stages))


def unscored(stages: int) -> Rate:
    """Share of verdicts without a score: abstained, refused, truncated or unreadable."""
    return Rate(_everything(stages) - _scored(stages), _everything(stages))


def recall(stages: int, label: int) -> Rate:
    """Share of what people give this label that the judge gives it too.

    Of the positive label it is the sensitivity, of the other of two labels the specificity.
    """
    denominator = np.zeros((stages + len(UNSCORED), stages))
    denominator[:, label] = 1
    return Rate(_cell(stages, label), denominator)


def sensitivity(positive: int) -> Rate:
    """Share of what people label positive that the judge finds, of two labels."""
    return recall(2, positive)


def specificity(positive: int) -> Rate:
    """Share of what people label negative that the judge calls negative, of two labels."""
    return recall(2, 1 - positive)


def precision(stages: int, label: int) -> Rate:
    """Share of the judge's verdicts of this label that people agree with."""
    denominator = np.zeros((stages + len(UNSCORED), stages))
    denominator[label] = 1
    return Rate(_cell(stages, label), denominator)


def f1(stages: int, label: int) -> Rate:
    """Harmonic mean of precision and recall of a label."""
    parts = precision(stages, label).denominator + recall(stages, label).denominator
    return Rate(2 * _cell(stages, label), parts)


def absolute_error(stages: int) -> Rate:
    """Mean distance of verdict and label in stages.

    A verdict without a score has the largest error that its label allows, as in weighted kappa: a
    judge does not come closer to people by abstaining. `unscored` says how many there are.
    """
    return Rate(_with_worst(_distances(stages)), _everything(stages), 0.0, stages - 1.0)


def squared_error(stages: int) -> Rate:
    """Mean squared distance in stages, whose root is the RMSE; without a score, the largest."""
    return Rate(_with_worst(_distances(stages) ** 2), _everything(stages), 0.0, (stages - 1.0) ** 2)


def signed_bias(stages: int) -> Rate:
    """Mean of verdict minus label in stages: above 0, the judge gives higher stages than people.

    Verdicts without a score have no direction and are left out; `unscored` says how many.
    """
    position = np.arange(stages, dtype=float)
    shift = _padded(position[:, None] - position)
    return Rate(shift, _scored(stages), 1.0 - stages, stages - 1.0)


def expected_loss(positive: int, miss: float, false_alarm: float) -> Rate:
    """Mean loss per item where people's positives and negatives cost differently, of two labels.

    A verdict without a score is never right: it costs a miss if people label the item positive,
    and a false alarm otherwise.
    """
    cost = np.zeros((2 + len(UNSCORED), 2))
    cost[:, positive], cost[:, 1 - positive] = miss, false_alarm
    cost[positive, positive] = cost[1 - positive, 1 - positive] = 0
    return Rate(cost, _everything(2), 0.0, float(max(miss, false_alarm)))


# --- averages of ratios --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MeanOfRates:
    """The mean of several rates; those whose denominator is 0 are left out."""

    rates: Sequence[Rate]
    least: int
    """The number of defined rates that the mean needs."""

    def __call__(self, matrix: Floats) -> Floats:
        """Maps confusion matrices to the mean of the rates."""
        values = np.stack([rate(matrix) for rate in self.rates])
        defined = ~np.isnan(values)
        count = defined.sum(axis=0)
        mean = _divide(np.where(defined, values, 0.0).sum(axis=0), count)
        return np.where(count >= self.least, mean, np.nan)


def balanced(stages: int) -> MeanOfRates:
    """Mean recall over the labels that people use: balanced accuracy.

    Undefined where people use a single label, since any constant answer would then be perfect.
    """
    return MeanOfRates([recall(stages, label) for label in range(stages)], least=2)


def macro_f1(stages: int) -> MeanOfRates:
    """Mean F1 over the labels that people or the judge use; undefined if that is one label."""
    return MeanOfRates([f1(stages, label) for label in range(stages)], least=2)


# --- beyond chance -------------------------------------------------------------------------------


def kappa(matrix: Floats) -> Floats:
    """Cohen's kappa: exact agreement beyond that of independent verdicts with the same margins.

    Verdicts without a score agree with no label, by chance neither, so that a judge that never
    answers has 0. Undefined where both sides use one and the same label only.
    """
    return _beyond_chance(matrix, _with_worst(1 - np.eye(matrix.shape[-1])))


def weighted_kappa(matrix: Floats) -> Floats:
    """Quadratic-weighted kappa: squared distances in stages instead of exact agreement.

    A verdict without a score has the largest distance that its label allows.
    """
    return _beyond_chance(matrix, _with_worst(_distances(matrix.shape[-1]) ** 2))


def _beyond_chance(matrix: Floats, weight: Floats) -> Floats:
    """Returns 1 - observed / expected disagreement."""
    total = _total(matrix)
    rows, columns = matrix.sum(axis=-1), matrix.sum(axis=-2)
    expected = ((rows @ weight) * columns).sum(axis=-1)
    # Rounding leaves tiny expectations where there is no chance disagreement at all.
    possible = expected > 1e-12 * np.maximum(total, 1e-300) ** 2
    ratio = _divide(_total(matrix * weight) * total, np.where(possible, expected, 0.0))
    value: Floats = 1 - ratio
    return value


# --- weights of cells ----------------------------------------------------------------------------


def _distances(stages: int) -> Floats:
    position = np.arange(stages, dtype=float)
    return np.abs(position[:, None] - position)


def _padded(weights: Floats) -> Floats:
    """Adds rows of zeros for verdicts without a score."""
    return np.vstack([weights, np.zeros((len(UNSCORED), weights.shape[1]))])


def _with_worst(weights: Floats) -> Floats:
    """Adds rows for verdicts without a score, which have the largest weight of each label."""
    return np.vstack([weights, np.tile(weights.max(axis=0), (len(UNSCORED), 1))])


def _everything(stages: int) -> Floats:
    return np.ones((stages + len(UNSCORED), stages))


def _scored(stages: int) -> Floats:
    return _padded(np.ones((stages, stages)))


def _cell(stages: int, label: int) -> Floats:
    weights = np.zeros((stages + len(UNSCORED), stages))
    weights[label, label] = 1
    return weights


def _total(matrix: Floats) -> Floats:
    total: Floats = matrix.sum(axis=(-1, -2))
    return total


def _divide(numerator: Floats, denominator: npt.ArrayLike) -> Floats:
    """Returns a ratio that is not a number where the denominator is 0 but for rounding."""
    below = np.asarray(denominator, dtype=float)
    ratio: Floats = np.full(np.broadcast_shapes(np.shape(numerator), below.shape), np.nan)
    np.divide(numerator, below, out=ratio, where=below > 1e-12)
    return ratio
