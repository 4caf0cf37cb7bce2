"""What labels say of a setup beyond its measures: people's rate, length, and replacing a rater."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.judges.compared import verdict_distributions
from judge_gym.analysis.judges.length import column_effect, effect_sentence
from judge_gym.analysis.judges.people import MIN_RATERS, alternative_annotator_test
from judge_gym.analysis.judges.quantities import as_quantity
from judge_gym.analysis.judges.rate import PeopleRate as PeopleEstimates
from judge_gym.analysis.judges.rate import people_rate, rate_sentence
from judge_gym.analysis.measures import Compared, LabelScale
from judge_gym.analysis.measures.confusion import UNSCORED
from judge_gym.analysis.stats.intervals import Estimate
from judge_gym.analysis.verdicts import Verdicts
from judge_gym.records.judge_table import (
    LengthEffect,
    PeopleRate,
    Quantity,
    ReplacementTest,
    TruthKind,
)
from judge_gym.studies.declarations import Epsilon


class JudgedUnits(NamedTuple):
    """All units that a setup was asked about, with its verdicts and people's labels."""

    units: IntArray
    verdict: FloatArray
    """The distribution over stages, statuses without a score, and no answer at all."""
    label: FloatArray
    """People's mean label from 0 to 1; NaN without a label."""
    scores: FloatArray
    """What each verdict stands for on the same scale; NaN for none. Of two labels, a verdict
    without a score is not positive."""
    is_rate: bool
    """Whether labels are positive or not, rather than stages."""


def judged_units(
    verdicts: Verdicts, index: int, compared: Compared, scale: LabelScale, labels: FloatArray
) -> JudgedUnits | None:
    """Puts the verdicts of a setup beside labels; None where labels have no mean.

    Of two labels the share of the positive one is meant, of ordered stages their mean. Units whose
    calls all failed have their label too.

    Args:
        verdicts: the verdicts of setups.
        index: the setup.
        compared: its verdicts on units with labels.
        scale: the scale of the labels.
        labels: the share of each label by row of the verdicts; zeros without a label.
    """
    if scale.kind == "nominal" or (scale.kind == "binary" and scale.positive is None):
        return None
    units, verdict = verdict_distributions(verdicts, index, scale.stages)
    # Labels say nothing about the items of another concept.
    concepts = np.array([verdicts.units[unit][0] for unit in units])
    labelled = {verdicts.units[unit][0] for unit in compared.units}
    about = np.isin(concepts, [*labelled])
    units, verdict = units[about], verdict[about]
    values = np.arange(scale.stages) / (scale.stages - 1)
    if scale.kind == "binary":
        values = (np.arange(2) == scale.positive).astype(float)
    own = (verdicts.setup == index) & np.isin(verdicts.unit, units)
    rows = np.flatnonzero(own & labels.any(axis=1))
    label = np.full(len(units), np.nan)
    label[np.searchsorted(units, verdicts.unit[rows])] = labels[rows, : scale.stages] @ values
    is_rate = scale.kind == "binary"
    # What cannot be read is not positive, but is no stage either.
    unscored = np.full(len(UNSCORED), 0.0 if is_rate else np.nan)
    scores = np.concatenate([values, unscored, [np.nan]])
    return JudgedUnits(units, verdict, label, scores, is_rate)


def rate_of(setup: str, judged: JudgedUnits, clusters: IntArray, scale: LabelScale) -> PeopleRate:
    """Estimates what people would say of all items that a setup was asked about."""
    rate = people_rate(
        judged.label,
        judged.verdict,
        judged.scores,
        clusters[judged.units],
        is_rate=judged.is_rate,
    )
    positive = "" if scale.positive is None else scale.names[scale.positive]
    quantity = f"{positive} rate" if positive.isalpha() else f"rate of “{positive}”"
    if not judged.is_rate:
        quantity = "mean stage (0 the lowest, 1 the highest)"
        if ends := _ends_of_numbers(scale.names):
            rate = _on_numbers(rate, *ends)
            quantity = f"mean (from {ends[0]:g} to {ends[1]:g})"
    return {
        "setup": setup,
        "quantity": quantity,
        "raw": as_quantity(rate.judge),
        "corrected": as_quantity(rate.corrected),
        "method": "prediction-powered",
        "labels": as_quantity(rate.labels_alone),
        "rogan_gladen": _known(rate.rogan_gladen),
        "labelled": rate.labels,
        "items": rate.items,
        "warning": rate.warning,
        "sentence": rate_sentence(rate, quantity[0].upper() + quantity[1:], percent=judged.is_rate),
    }


def _ends_of_numbers(names: Sequence[str]) -> tuple[float, float] | None:
    """Returns the lowest and the highest label of a scale of numbers in equal steps."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return None
    steps = np.diff(numbers)
    even = len(steps) > 0 and steps[0] > 0 and bool(np.allclose(steps, steps[0]))
    return (numbers[0], numbers[-1]) if even else None


def _on_numbers(rate: PeopleEstimates, low: float, high: float) -> PeopleEstimates:
    """Writes estimates from 0 to 1 as the labels are written, such as from 1 to 5."""

    def on_labels(estimate: Estimate) -> Estimate:
        value, lower, upper = (low + (high - low) * part for part in estimate[:3])
        return estimate._replace(value=value, low=lower, high=upper)

    return replace(
        rate,
        judge=on_labels(rate.judge),
        corrected=on_labels(rate.corrected),
        labels_alone=on_labels(rate.labels_alone),
    )


def length_of(
    setup: str,
    index: int,
    verdicts: Verdicts,
    judged: JudgedUnits,
    scale: LabelScale,
    kind: TruthKind,
) -> LengthEffect | None:
    """Estimates whether a setup prefers long texts; None where lengths are not known or equal."""
    rows = verdicts.rows.loc[verdicts.setup == index, ["length", "unit"]]
    lengths = rows["length"].groupby(rows["unit"]).mean().reindex(judged.units).to_numpy(float)
    known = lengths[~np.isnan(lengths)]
    if not len(known) or np.ptp(known) == 0:
        return None
    # A rate counts what is no score as not positive; a mean stage has none.
    scores = np.nan_to_num(judged.scores) if judged.is_rate else judged.scores
    answered = judged.verdict[:, :-1].sum(axis=1)
    weights = judged.verdict * ~np.isnan(scores)
    total = answered if judged.is_rate else weights.sum(axis=1)
    outcome = np.full(len(judged.units), np.nan)
    np.divide(weights @ np.nan_to_num(scores), total, out=outcome, where=total > 0)
    effect = column_effect(
        outcome,
        lengths,
        judged.label,
        verdicts.clusters[judged.units],
        is_rate=judged.is_rate,
    )
    positive = "positive" if scale.positive is None else scale.names[scale.positive]
    return {
        "setup": setup,
        "unit": effect.unit,
        "effect": _known(effect.effect._replace(withheld=effect.withheld)),
        "failed": _known(effect.failed),
        "passed": _known(effect.passed),
        "sentence": effect_sentence(
            effect, positive, "label of people" if kind == "agreement" else "known answer"
        ),
    }


def replacement_test(
    setup: str,
    compared: Compared,
    verdicts: Verdicts,
    scale: LabelScale,
    epsilon: Epsilon,
) -> ReplacementTest | None:
    """Tests whether a setup could replace a rater; None with fewer than three raters."""
    raters = verdicts.raters.drop_duplicates(["unit", "rater"])
    if raters["rater"].nunique() < MIN_RATERS:
        return None
    wide = raters.pivot(index="unit", columns="rater", values="stage")
    stage = _usual_stages(compared.verdict[:, : scale.stages], ordered=scale.kind != "nominal")
    answered = ~np.isnan(stage)
    units = compared.units[answered]
    stages = wide.reindex(units).to_numpy(dtype=float)
    test = alternative_annotator_test(
        stages,
        stage[answered],
        verdicts.clusters[units],
        ordered=scale.kind != "nominal",
        epsilon=epsilon,
    )
    row = {
        name: None if isinstance(value, float) and np.isnan(value) else value
        for name, value in test.row().items()
    }
    return {"setup": setup, **row, "sentence": test.sentence(setup)}  # type: ignore[return-value]  # keys of `row` are not checked


def _usual_stages(shares: FloatArray, *, ordered: bool) -> FloatArray:
    """Chooses the median stage of each unit, or the most frequent; NaN where there is none."""
    total = shares.sum(axis=1)
    if ordered:
        reached = shares.cumsum(axis=1) >= total[:, None] / 2 - 1e-9
        return np.where(total > 0, reached.argmax(axis=1) + 1.0, np.nan)
    top = shares >= shares.max(axis=1, keepdims=True) - 1e-9
    alone = (top.sum(axis=1) == 1) & (total > 0)
    return np.where(alone, shares.argmax(axis=1) + 1.0, np.nan)


def _known(estimate: Estimate) -> Quantity | None:
    return None if np.isnan(estimate.value) else as_quantity(estimate)
