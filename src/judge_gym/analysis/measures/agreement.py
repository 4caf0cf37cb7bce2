"""Agreement with known answers or people: measures that fit the scale of the labels.

Two labels: how much of each label the judge finds, and kappa. Ordered stages: how far verdicts are
from labels, and whether they put items in the same order. Other labels: kappa and the mean F1.
"""

import numpy as np

from judge_gym.analysis.measures import Compared, quality
from judge_gym.analysis.measures.confusion import (
    MatrixFunction,
    MeanOfRates,
    Rate,
    absolute_error,
    balanced,
    expected_loss,
    kappa,
    macro_f1,
    sensitivity,
    signed_bias,
    specificity,
    statistic,
    weighted_kappa,
    within_one,
)
from judge_gym.analysis.measures.rank import Correlation, mean_stage
from judge_gym.analysis.measures.terms import Ranks, Ratio, Sums, Terms
from judge_gym.analysis.stats.intervals import KAPPA, SHARE, Scale, between, difference


def rate(compared: Compared, measure: Rate | MeanOfRates, scale: Scale = SHARE) -> Ratio:
    """Makes a ratio of sums over the confusion matrix, or the mean of several."""
    tables = compared.tables
    if isinstance(measure, Rate):
        return Ratio(compared.units, *measure.by_item(tables), scale)
    parts = [single.by_item(tables) for single in measure.rates]
    used = [index for index, (_, below) in enumerate(parts) if below.any()]
    above, below = (np.column_stack([parts[index][end] for index in used]) for end in (0, 1))
    return Ratio(compared.units, above, below, scale)


def sums(compared: Compared, measure: MatrixFunction, scale: Scale = KAPPA) -> Sums:
    """Makes a function of the confusion matrix that is no ratio."""
    tables = statistic(compared.tables, measure)
    return Sums(compared.units, tables.rows, tables.of, scale, compared.label)


def _positive(compared: Compared) -> int | None:
    scale = compared.scale
    return scale.positive if scale is not None and scale.kind == "binary" else None


def _kind(compared: Compared) -> str:
    return "" if compared.scale is None else compared.scale.kind


def _labels_used(compared: Compared) -> int:
    return int((compared.label.sum(axis=0) > 0).sum())


@quality(
    "sensitivity",
    "sensitivity",
    "Of what is labelled positive, the share that the judge calls positive (true-positive rate). "
    "How much of it does it find?",
    order=11,
)
def _sensitivity(compared: Compared) -> Terms | None:
    positive = _positive(compared)
    return None if positive is None else rate(compared, sensitivity(positive))


@quality(
    "specificity",
    "specificity",
    "Of what is labelled negative, the share that the judge calls negative (true-negative rate). "
    "How rarely does it raise a false alarm?",
    order=12,
)
def _specificity(compared: Compared) -> Terms | None:
    positive = _positive(compared)
    return None if positive is None else rate(compared, specificity(positive))


@quality(
    "balanced",
    "balanced accuracy",
    "The mean of the shares found of each label: sensitivity and specificity count alike, however "
    "rare one label is. Is it better than always giving one answer (1/2 with two labels)?",
    order=10,
)
def _balanced(compared: Compared) -> Terms | None:
    if _kind(compared) != "binary" or _labels_used(compared) < 2:
        return None
    return rate(compared, balanced(2))


@quality(
    "kappa",
    "kappa",
    "Cohen's kappa: exact agreement beyond that of a judge with the same habits that does not "
    "look; 0 is chance, 1 is perfect. How much does looking at the item add?",
    order=15,
    unit="coefficient",
)
def _kappa(compared: Compared) -> Terms | None:
    return sums(compared, kappa) if _kind(compared) in ("binary", "nominal") else None


@quality(
    "weighted_kappa",
    "weighted kappa",
    "Kappa with squared distances in stages: a near miss costs less than a far one. Does the judge "
    "use the scale as people do?",
    order=13,
    unit="coefficient",
)
def _weighted_kappa(compared: Compared) -> Terms | None:
    return sums(compared, weighted_kappa) if _kind(compared) == "ordinal" else None


def _rank(compared: Compared, kind: Correlation) -> Terms | None:
    scale = compared.scale
    if scale is None or scale.kind != "ordinal":
        return None
    people = compared.label @ np.arange(1.0, scale.stages + 1)
    return Ranks(compared.units, mean_stage(compared.verdict, scale.stages), people, kind)


@quality(
    "tau_b",
    "tau-b",
    "Kendall's rank correlation of the judge's mean stage with people's. Does the judge put two "
    "items in the same order as people?",
    order=16,
    unit="coefficient",
)
def _tau_b(compared: Compared) -> Terms | None:
    return _rank(compared, "tau_b")


@quality(
    "spearman",
    "Spearman",
    "Spearman's correlation of the ranks of the judge's and people's mean stages. Does the judge "
    "order all items as people do?",
    order=17,
    unit="coefficient",
    main=False,
)
def _spearman(compared: Compared) -> Terms | None:
    return _rank(compared, "spearman")


@quality(
    "within_one",
    "within one stage",
    "The share of verdicts at most one stage from the label. How often is it nearly right?",
    order=18,
    main=False,
)
def _within_one(compared: Compared) -> Terms | None:
    scale = compared.scale
    if scale is None or scale.kind != "ordinal":
        return None
    return rate(compared, within_one(scale.stages))


@quality(
    "error",
    "mean error",
    "The mean distance of verdict and label in stages; without a score, the largest that the label "
    "allows. How far off is it?",
    order=19,
    unit="stages",
    main=False,
)
def _error(compared: Compared) -> Terms | None:
    scale = compared.scale
    if scale is None or scale.kind != "ordinal":
        return None
    return rate(compared, absolute_error(scale.stages), between(0.0, scale.stages - 1.0))


@quality(
    "bias",
    "bias",
    "The mean of verdict minus label in stages, over scored verdicts. Is it stricter (below 0) or "
    "milder than people, or the other way round, as the scale has it?",
    order=20,
    unit="stages",
)
def _bias(compared: Compared) -> Terms | None:
    scale = compared.scale
    if scale is None or scale.kind != "ordinal":
        return None
    return rate(compared, signed_bias(scale.stages), difference(scale.stages - 1.0))


@quality(
    "macro_f1",
    "macro F1",
    "The mean over labels of F1, which joins the share found of a label with the share of its "
    "verdicts that are right. Is it good at every label, not only at the frequent ones?",
    order=21,
)
def _macro_f1(compared: Compared) -> Terms | None:
    scale = compared.scale
    if scale is None or scale.kind != "nominal" or _labels_used(compared) < 2:
        return None
    return rate(compared, macro_f1(scale.stages))


@quality(
    "loss",
    "expected loss",
    "The mean loss per item, with the declared costs of a miss and of a false alarm. What does a "
    "wrong verdict cost?",
    order=9,
    unit="loss",
)
def _loss(compared: Compared) -> Terms | None:
    positive = _positive(compared)
    if compared.loss is None or positive is None:
        return None
    measure = expected_loss(positive, compared.loss.miss, compared.loss.false_alarm)
    return rate(compared, measure, between(0.0, measure.high))
