"""Verdicts of setups beside the labels of their units, as measures of agreement read them."""

from collections.abc import Iterator

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
    """Describes the labels of a reference; None where tasks have different scales.

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
    """Splits the names of stages that all rows share; none if they are unknown or differ."""
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
    cell, weight = _weights(setup * len(verdicts.units) + unit, flipped)
    reference, count = reference.on(rows), int(cell.max(initial=-1)) + 1
    first = np.unique(cell, return_index=True)[1]

    def mean(values: FloatArray) -> FloatArray:
        return np.bincount(cell, weight * values, count).astype(float)

    scored = verdicts.mask[rows] != 0
    right, answered = mean(reference.right), mean(scored.astype(float))
    majority = _means_of_known(reference.majority, cell, flipped, count)
    stages = scale.stages if scale is not None else reference.labels.shape[1]
    label = np.column_stack([mean(column) for column in reference.labels[:, :stages].T])
    verdict = np.column_stack([mean(c) for c in _verdict_columns(verdicts, rows, stages)])
    of_cell, units = setup[first], unit[first]
    for index in np.unique(of_cell):
        own = of_cell == index
        yield (
            int(index),
            Compared(
                units=units[own],
                right=right[own],
                answered=answered[own],
                majority=majority[own] if reference.kind == "agreement" else None,
                verdict=verdict[own],
                label=label[own],
                tables=confusion_tables(verdict[own], label[own]),
                scale=scale,
                loss=loss,
            ),
        )


def _weights(cell: IntArray, flipped: BoolArray) -> tuple[IntArray, FloatArray]:
    """Numbers cells, and weighs rows so that each order of a cell has equal weight, in sum 1."""
    code = np.unique(cell, return_inverse=True)[1]
    count = np.bincount(code * 2 + flipped, minlength=2 * (int(code.max(initial=-1)) + 1))
    orders = (count.reshape(-1, 2) > 0).sum(axis=1)
    return code, 1.0 / (count[code * 2 + flipped] * orders[code])


def _means_of_known(
    values: FloatArray, cell: IntArray, flipped: BoolArray, count: int
) -> FloatArray:
    known = ~np.isnan(values)
    means: FloatArray = np.full(count, np.nan)
    if known.any():
        code, weight = _weights(cell[known], flipped[known])
        means[np.unique(cell[known])] = np.bincount(code, weight * values[known])
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
    verdicts: Verdicts, index: int, stages: int
) -> tuple[IntArray, FloatArray]:
    """Lists the units of a setup, with the distribution of its verdicts.

    Columns are the stages, the statuses without a score, and one for units whose calls all failed.
    """
    own = verdicts.setup == index
    asked = own & verdicts.rows["asked"].to_numpy()
    units = np.unique(verdicts.unit[own])
    cell = np.searchsorted(units, verdicts.unit[asked])
    flipped = verdicts.rows["flipped"].to_numpy(dtype=bool)[asked]
    numbers, weight = _weights(cell, flipped)
    answered = np.unique(cell)
    table = np.zeros((len(units), stages + len(UNSCORED) + 1))
    table[:, -1] = 1.0
    table[answered, -1] = 0.0
    for column, values in enumerate(_verdict_columns(verdicts, asked, stages)):
        table[answered, column] = np.bincount(numbers, weight * values, len(answered))
    return units, table


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
