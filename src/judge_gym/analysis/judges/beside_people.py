"""What labels say of a setup beyond its measures: people's rate, length, and replacing a rater."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.frames import own_rows
from judge_gym.analysis.judges.compared import label_scale, verdict_distributions
from judge_gym.analysis.judges.length import (
    LENGTH,
    ColumnEffect,
    column_effect,
    effect_sentence,
)
from judge_gym.analysis.judges.people import MIN_RATERS, alternative_annotator_test
from judge_gym.analysis.judges.quantities import as_quantity
from judge_gym.analysis.judges.rate import PeopleRate as PeopleEstimates
from judge_gym.analysis.judges.rate import mean_scores, people_rate, rate_sentence
from judge_gym.analysis.judges.setups import setups_of
from judge_gym.analysis.measures import Compared, LabelScale
from judge_gym.analysis.measures.confusion import UNSCORED
from judge_gym.analysis.stats.intervals import Estimate
from judge_gym.analysis.verdicts import UNIT, Verdicts, of_setups
from judge_gym.errors import DesignError
from judge_gym.records.judge_table import (
    LengthEffect,
    PeopleRate,
    Quantity,
    ReplacementTest,
    TruthKind,
)
from judge_gym.studies.declarations import Epsilon


class JudgedUnits(NamedTuple):
    """The units of labelled concepts, with the verdicts of one setup and people's labels."""

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
    verdicts: Verdicts, index: int, scale: LabelScale, labels: FloatArray
) -> JudgedUnits | None:
    """Puts the verdicts of a setup beside labels, or gives None where labels have no mean.

    Of two labels the share of the positive one is meant, of ordered stages their mean. All units of
    the labelled concepts are included: those whose calls failed, and those that only another setup
    was asked about, have their label too.

    Args:
        verdicts: the verdicts of setups.
        index: the setup.
        scale: the scale of the labels.
        labels: the share of each label by row of the verdicts; zeros without a label.
    """
    if scale.kind == "nominal" or (scale.kind == "binary" and scale.positive is None):
        return None
    labelled_rows = np.flatnonzero(labels.any(axis=1))
    labelled_units = verdicts.unit[labelled_rows]
    # Labels say nothing about the items of another concept.
    concepts = {verdicts.units[unit][0] for unit in labelled_units}
    units = np.array(
        [unit for unit in np.unique(verdicts.unit) if verdicts.units[unit][0] in concepts],
        dtype=int,
    )
    verdict = verdict_distributions(verdicts, index, units, scale.stages)
    values = np.arange(scale.stages) / (scale.stages - 1)
    if scale.kind == "binary":
        values = (np.arange(2) == scale.positive).astype(float)
    label = np.full(len(units), np.nan)
    label[np.searchsorted(units, labelled_units)] = labels[labelled_rows, : scale.stages] @ values
    is_rate = scale.kind == "binary"
    # What cannot be read is not positive, but is no stage either.
    unscored = np.full(len(UNSCORED), 0.0 if is_rate else np.nan)
    scores = np.concatenate([values, unscored, [np.nan]])
    return JudgedUnits(units, verdict, label, scores, is_rate)


def rate_of(
    setup: str,
    judged: JudgedUnits,
    clusters: IntArray,
    scale: LabelScale,
    weights: FloatArray | None = None,
) -> PeopleRate:
    """Estimates what people would say of all items.

    `weights` has the inverse of each unit's chance to be labelled, where chances differ.
    """
    rate = people_rate(
        judged.label,
        judged.verdict,
        judged.scores,
        clusters[judged.units],
        inclusion=None if weights is None else 1 / weights[judged.units],
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
        "rogan_gladen": _quantity_if_defined(rate.rogan_gladen),
        "labelled": rate.labels,
        "items": rate.items,
        "warning": rate.warning,
        "sentence": rate_sentence(rate, quantity[0].upper() + quantity[1:], percent=judged.is_rate),
    }


def _ends_of_numbers(names: Sequence[str]) -> tuple[float, float] | None:
    """Finds the lowest and the highest label of a scale of numbers in equal steps."""
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
    """Estimates whether a setup prefers long texts. None where lengths are unknown or equal."""
    rows = verdicts.rows.loc[verdicts.setup == index, [LENGTH, "unit"]]
    lengths = rows[LENGTH].groupby(rows["unit"]).mean().reindex(judged.units).to_numpy(float)
    finite_lengths = lengths[~np.isnan(lengths)]
    if not len(finite_lengths) or np.ptp(finite_lengths) == 0:
        return None
    effect = _column_effect(judged, lengths, verdicts.clusters, LENGTH)
    positive = "positive" if scale.positive is None else scale.names[scale.positive]
    return {
        "setup": setup,
        "unit": effect.unit,
        "effect": _quantity_if_defined(effect.effect._replace(withheld=effect.withheld)),
        "failed": _quantity_if_defined(effect.failed),
        "passed": _quantity_if_defined(effect.passed),
        "sentence": effect_sentence(
            effect, positive, "label of people" if kind == "agreement" else "known answer"
        ),
    }


def column_effects(
    frame: pd.DataFrame,
    people: pd.DataFrame,
    *,
    column: str = LENGTH,
    positive: str | None = None,
) -> dict[str, ColumnEffect]:
    """Estimates how each setup's verdicts depend on a numeric column of its items.

    Pairs are left out: what counts there is the difference of two responses, which a frame does not
    have. A number that differs between the rows of an item, as of views, is averaged.

    Args:
        frame: a tidy frame with the column.
        people: people's stages of some items.
        column: the name of the column.
        positive: the positive one of two labels; by default one is proposed by its meaning.
    """
    if column not in frame:
        raise DesignError(f"samples have no column {column!r}")
    if not is_numeric_dtype(frame[column]):
        raise DesignError(f"the column {column!r} is not of numbers")
    samples = own_rows(frame[~frame["pair"].to_numpy(dtype=bool)])
    setups = setups_of(samples) if len(samples) else []
    verdicts = of_setups(samples, setups, people)
    reference = verdicts.references.get("agreement")
    scale = None if reference is None else label_scale(verdicts, reference, positive)
    if reference is None or scale is None:
        return {}
    by_unit = samples.groupby(UNIT, observed=True)[column].mean()
    effects = {}
    for index, setup in enumerate(setups):
        judged = judged_units(verdicts, index, scale, reference.labels)
        if judged is not None:
            names = pd.MultiIndex.from_tuples([verdicts.units[unit] for unit in judged.units])
            numbers = by_unit.reindex(names).to_numpy(float)
            effects[setup.name] = _column_effect(judged, numbers, verdicts.clusters, column)
    return effects


def _column_effect(
    judged: JudgedUnits, numbers: FloatArray, clusters: IntArray, column: str
) -> ColumnEffect:
    return column_effect(
        mean_scores(judged.verdict, judged.scores),
        numbers,
        judged.label,
        clusters[judged.units],
        column=column,
        is_rate=judged.is_rate,
    )


def replacement_test(
    setup: str,
    compared: Compared,
    verdicts: Verdicts,
    scale: LabelScale,
    epsilon: Epsilon,
) -> ReplacementTest | None:
    """Tests whether a setup could replace a rater. None with fewer than three raters."""
    raters = verdicts.raters.drop_duplicates(["unit", "rater"])
    if raters["rater"].nunique() < MIN_RATERS:
        return None
    by_rater = raters.pivot(index="unit", columns="rater", values="stage")
    test = alternative_annotator_test(
        by_rater.reindex(compared.units).to_numpy(dtype=float),
        compared.verdict[:, : scale.stages],
        verdicts.clusters[compared.units],
        ordered=scale.kind != "nominal",
        epsilon=epsilon,
    )
    row = {
        name: None if isinstance(value, float) and np.isnan(value) else value
        for name, value in test.row().items()
    }
    return {"setup": setup, **row, "sentence": test.sentence(setup)}  # type: ignore[return-value]  # keys of `row` are not checked


def _quantity_if_defined(estimate: Estimate) -> Quantity | None:
    return None if np.isnan(estimate.value) else as_quantity(estimate)
