"""Verdicts of setups beside the labels of their units, as measures of agreement read them."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import BoolArray, FloatArray, IntArray
from judge_gym.analysis.frames import NAMES_APART
from judge_gym.analysis.measures import Compared, LabelScale
from judge_gym.analysis.measures.confusion import UNSCORED, confusion_tables
from judge_gym.analysis.measures.people import rater_pair_tables
from judge_gym.analysis.measures.scales import Loss, propose_positive, scale_of
from judge_gym.analysis.verdicts import Reference, Verdicts
from judge_gym.errors import DesignError, unknown

PAIR_NAMES = ("first", "second", "tie")
"""What the stages of a pair's rubric say which response is better."""


def label_scale(
    verdicts: Verdicts, reference: Reference, positive: str | None = None
) -> LabelScale | None:
    """Describes the labels of a reference, or gives None where tasks have different scales.

    Args:
        verdicts: the verdicts of setups.
        reference: what they are compared with.
        positive: the positive one of two labels, if it is declared; else it is proposed.
    """
    rows = verdicts.rows[~np.isnan(reference.right)]
    scales = rows[["n_stages", "pair"]].drop_duplicates()
    if len(scales) != 1:
        return None
    stages, pair = int(scales["n_stages"].iloc[0]), bool(scales["pair"].iloc[0])
    ordered = bool((rows["rubric_kind"] == "ordinal").all()) and not pair
    names = _stage_names(rows["stage_names"], stages)
    if pair and stages <= len(PAIR_NAMES):
        return LabelScale("nominal", names or PAIR_NAMES[:stages], None)
    kind = scale_of(stages, ordered)
    words = names or tuple(str(stage + 1) for stage in range(stages))
    return LabelScale(kind, words, _positive(words, positive) if kind == "binary" else None)


def _stage_names(column: pd.Series, stages: int) -> tuple[str, ...]:
    """Splits the names of stages that all rows share. None if they are unknown or differ."""
    texts = [text for text in column.unique() if text]
    names = tuple(texts[0].split(NAMES_APART)) if len(texts) == 1 else ()
    return names if len(names) == stages else ()


def _positive(names: tuple[str, ...], declared: str | None) -> int | None:
    if declared is not None and declared not in names:
        raise DesignError(unknown("positive label", declared, names), choices=names)
    label = declared or propose_positive(names)
    return None if label is None else names.index(label)


def compared_setups(
    verdicts: Verdicts,
    reference: Reference,
    part: BoolArray,
    scale: LabelScale | None,
    loss: Loss | None = None,
) -> Iterator[tuple[int, Compared]]:
    """Yields the verdicts of each setup beside their labels, averaged over repeats.

    Both orders of a pair have equal weight. `part` says of each row whether it takes part.
    """
    rows = part & ~np.isnan(reference.right)
    setup, unit = verdicts.setup[rows], verdicts.unit[rows]
    flipped = verdicts.rows["flipped"].to_numpy(dtype=bool)[rows]
    cell = setup * len(verdicts.units) + unit
    mean, first = _mean_by_cell(cell, flipped), np.unique(cell, return_index=True)[1]
    reference = reference.on(rows)
    scored = verdicts.mask[rows] != 0
    right, answered = mean(reference.right), mean(scored.astype(float))
    majority = _means_of_known(reference.majority, cell, flipped)
    stages = scale.stages if scale is not None else reference.labels.shape[1]
    label = np.column_stack([mean(column) for column in reference.labels[:, :stages].T])
    verdict = np.column_stack([mean(c) for c in _verdict_columns(verdicts, rows, stages)])
    of_cell, units = setup[first], unit[first]
    for index in np.unique(of_cell):
        of_setup = of_cell == index
        yield (
            int(index),
            Compared(
                units=units[of_setup],
                right=right[of_setup],
                answered=answered[of_setup],
                majority=majority[of_setup] if reference.kind == "agreement" else None,
                verdict=verdict[of_setup],
                label=label[of_setup],
                tables=confusion_tables(verdict[of_setup], label[of_setup]),
                scale=scale,
                loss=loss,
            ),
        )


def _mean_by_cell(cell: IntArray, flipped: BoolArray) -> Callable[[FloatArray], FloatArray]:
    """Makes a function that averages rows by cell, in which each order has equal weight.

    Sums are divided by counts: weights that sum to 1 but for rounding would not give a judge that
    is always right exactly 1, for which intervals have a closed form.
    """
    code = np.unique(cell, return_inverse=True)[1] * 2 + flipped
    size = 2 * (int(code.max(initial=-1)) // 2 + 1)
    count = np.bincount(code, minlength=size).reshape(-1, 2)
    orders = (count > 0).sum(axis=1)

    def mean(values: FloatArray) -> FloatArray:
        sums = np.bincount(code, values, size).reshape(-1, 2)
        means: FloatArray = (sums / np.maximum(count, 1)).sum(axis=1) / orders
        return means

    return mean


def _means_of_known(values: FloatArray, cell: IntArray, flipped: BoolArray) -> FloatArray:
    """Averages the values that are not missing. A cell without any has no mean."""
    has_value = ~np.isnan(values)
    means: FloatArray = np.full(len(np.unique(cell)), np.nan)
    if has_value.any():
        averages = _mean_by_cell(cell[has_value], flipped[has_value])(values[has_value])
        means[np.isin(np.unique(cell), cell[has_value])] = averages
    return means


def _verdict_columns(verdicts: Verdicts, rows: BoolArray, stages: int) -> Iterator[FloatArray]:
    """Yields by row the weight of each stage, then whether it has each status without a score."""
    masks = verdicts.mask[rows]
    size = np.maximum(np.bitwise_count(masks), 1)
    for stage in range(stages):
        yield (masks >> stage & 1) / size
    status = verdicts.rows["status"].to_numpy()[rows]
    for name in UNSCORED:
        yield (status == name).astype(float)


def verdict_distributions(
    verdicts: Verdicts, index: int, units: IntArray, stages: int
) -> FloatArray:
    """Computes the distribution of a setup's verdicts on each of some units, which are in order.

    Columns are the stages, the statuses without a score, and one for units without an answer: all
    calls failed, or none was made.
    """
    answered_rows = (verdicts.setup == index) & verdicts.rows["asked"].to_numpy()
    answered_rows &= np.isin(verdicts.unit, units)
    cell = np.searchsorted(units, verdicts.unit[answered_rows])
    mean = _mean_by_cell(cell, verdicts.rows["flipped"].to_numpy(dtype=bool)[answered_rows])
    answered = np.unique(cell)
    table = np.zeros((len(units), stages + len(UNSCORED) + 1))
    table[:, -1] = 1.0
    table[answered, -1] = 0.0
    for column, values in enumerate(_verdict_columns(verdicts, answered_rows, stages)):
        table[answered, column] = mean(values)
    return table


def people_with_each_other(
    verdicts: Verdicts, units: IntArray, scale: LabelScale | None
) -> Compared | None:
    """Puts each rater of a unit in the judge's place, beside the other raters of the unit."""
    labels = verdicts.raters
    labels = labels[labels["unit"].isin(units)].drop_duplicates(["unit", "rater"])
    if labels.empty or labels.groupby("unit").size().max() < 2:
        return None
    counts = pd.crosstab(labels["unit"], labels["stage"])
    stages = scale.stages if scale is not None else verdicts.n_stages
    counts = counts.reindex(columns=range(1, stages + 1), fill_value=0)
    counts = counts[counts.sum(axis=1) > 1]
    tables = rater_pair_tables(counts.to_numpy(dtype=float))
    label = counts.to_numpy(dtype=float) / counts.sum(axis=1).to_numpy()[:, None]
    equal = tables[:, :stages].trace(axis1=1, axis2=2)
    return Compared(
        units=counts.index.to_numpy(dtype=np.int64),
        right=equal,
        answered=np.ones(len(counts)),
        majority=None,
        verdict=tables.sum(axis=2),
        label=label,
        tables=tables,
        scale=scale,
    )
