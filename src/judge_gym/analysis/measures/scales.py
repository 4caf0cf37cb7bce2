"""Which measure fits a scale, which label is the positive one, and what a constant answer gets."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from judge_gym.analysis.measures.confusion import (
    UNSCORED,
    Rate,
    absolute_error,
    averaged_confusion,
    confusion_tables,
    expected_loss,
)

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Scale = Literal["binary", "ordinal", "nominal"]
MeasureName = Literal["exact", "balanced", "weighted", "rank", "error"]
"""The measures that can decide the standing of a setup."""
POSITIVE = (
    "pass yes true 1 good correct accept harmful positive passed accepted right valid unsafe toxic "
    "spam relevant faithful helpful supported success approve approved ok"
).split()
"""Labels that are proposed as the positive one of two, the most usual first."""
MANY_STAGES = 4
"""The number of ordered stages from which distances between them matter more than equality."""


class Loss(NamedTuple):
    """What a wrong verdict costs, by the label of people."""

    miss: float
    """The cost where people's label is positive and the verdict is not."""
    false_alarm: float


def scale_of(stages: int, ordered: bool) -> Scale:
    """Names the scale of a rubric. Two stages are binary, whether they are ordered or not."""
    if stages == 2:
        return "binary"
    return "ordinal" if ordered else "nominal"


def propose_positive(labels: Sequence[str]) -> str | None:
    """Proposes the positive one of two labels by its meaning, or None if neither is known.

    >>> propose_positive(["Fail", "Pass"])
    'Pass'
    >>> propose_positive(["A", "B"]) is None
    True
    """
    meanings = {label.strip().casefold(): label for label in labels}
    if len(labels) != 2 or ("1" in meanings and "0" not in meanings):  # 1 and 2 are two places
        return None
    return next((meanings[word] for word in POSITIVE if word in meanings), None)


def default_measure(scale: Scale, stages: int) -> MeasureName:
    """Chooses the measure that decides standing where a study declares none."""
    if scale == "binary":
        return "balanced"
    return "weighted" if scale == "ordinal" and stages >= MANY_STAGES else "exact"


def best_constant_verdicts(
    measure: MeasureName | Loss,
    label: Floats,
    *,
    positive: int = 1,
    concepts: Codes | None = None,
) -> Floats:
    """Returns the verdicts of the best judge that gives every item the same answer.

    Under `exact` the answer is the most frequent label of the item's concept, since a judge may
    know the task; under the others it is one for all items. Balanced accuracy, kappas and rank
    correlations give every constant the same, and the most frequent label stands for all of them.
    Compare these verdicts like those of a setup.

    Args:
        measure: The measure that decides standing, or the declared loss.
        label: By item, the distribution over the stages.
        positive: The index of the positive one of two labels; a loss needs it.
        concepts: The number of each item's concept; by default all items have the same.

    Returns:
        By item, the distribution over stages and statuses.
    """
    items, stages = label.shape
    labelled = np.nan_to_num(label)
    verdicts = np.zeros((items, stages + len(UNSCORED)))
    groups = concepts if measure == "exact" and concepts is not None else np.zeros(items, int)
    for group in np.unique(groups):
        members = groups == group
        answer = _best_answer(measure, labelled[members], positive)
        verdicts[members, answer] = 1
    return verdicts


def best_constant(
    measure: MeasureName | Loss,
    label: Floats,
    *,
    positive: int = 1,
    concepts: Codes | None = None,
    weights: Floats | None = None,
) -> float:
    """Returns what the best constant answer gets under a measure.

    It is 0 under weighted kappa and rank correlation, and one divided by the number of labels that
    people use under balanced accuracy. `weights` are those of items that were drawn with different
    chances.
    """
    labelled = np.nan_to_num(label)
    if weights is not None:
        labelled = labelled * weights[:, None]
    if measure == "balanced":
        return 1 / int((labelled.sum(axis=0) > 0).sum())
    if measure in ("weighted", "rank"):
        return 0.0
    verdicts = best_constant_verdicts(measure, labelled, positive=positive, concepts=concepts)
    tables = confusion_tables(verdicts, labelled)
    if weights is not None:
        tables = tables * weights[:, None, None]
    matrix = averaged_confusion(tables)
    if measure == "exact":
        return float(np.trace(matrix[: label.shape[1]]))
    return float(_cost(measure, label.shape[1], positive)(matrix))


def _best_answer(measure: MeasureName | Loss, label: Floats, positive: int) -> int:
    totals = label.sum(axis=0)
    if measure == "error" or isinstance(measure, Loss):
        stages = len(totals)
        costs = _cost(measure, stages, positive).numerator[:stages]
        return int((costs @ totals).argmin())
    return int(totals.argmax())


def _cost(measure: MeasureName | Loss, stages: int, positive: int) -> Rate:
    if isinstance(measure, Loss):
        return expected_loss(positive, measure.miss, measure.false_alarm)
    return absolute_error(stages)
