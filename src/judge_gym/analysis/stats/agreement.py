"""Agreement between judges beyond chance: alpha, kappa, intraclass correlation.

A judge's rating of an item summarises its replicates, so that replicates are not extra raters, and
judges do not agree merely because they saw the same display. Measures that need ordered stages take
an `OrdinalFrame`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.frames import PANEL, OrdinalFrame
from judge_gym.analysis.stats.clusters import Codes
from judge_gym.analysis.stats.intervals import (
    KAPPA,
    Estimate,
    Floats,
    Statistic,
    estimate,
    jackknife_values,
    pseudo_values,
    undefined,
    widened_by_draws,
)
from judge_gym.analysis.verdicts import Dataset, Samples, Verdicts

Level = Literal["nominal", "ordinal"]
CLOSE = 1e-9
"""Values that differ by less are equal: shares are sums of fractions."""


def krippendorff_alpha(counts: Floats, level: Level, parts: Codes | None = None) -> Statistic:
    """Computes Krippendorff's alpha from counts of ratings per item and stage (in order).

    Every item has two ratings or more. `parts` has the number, from 0 on, of the part that each
    item belongs to; by default, each is a part of its own.
    """
    n_stages = counts.shape[-1]
    diagonal = np.eye(n_stages)
    pairable = counts / (counts.sum(axis=-1, keepdims=True) - 1)
    if parts is None:
        pairs = pairable[:, :, None] * (counts[:, None, :] - diagonal)
    else:
        members = [parts == part for part in range(int(parts.max()) + 1)]
        together = [pairable[some].T @ counts[some] for some in members]
        self_pairs = [diagonal * pairable[some].sum(axis=0) for some in members]
        pairs = np.stack(together) - np.stack(self_pairs)

    def alpha(sums: Floats) -> Floats:
        together = sums.reshape(*sums.shape[:-1], n_stages, n_stages)
        label_counts = together.sum(axis=-1)
        by_chance = (
            label_counts[..., None] * label_counts[..., None, :]
            - diagonal * label_counts[..., None]
        )
        by_chance = by_chance / (label_counts.sum(axis=-1) - 1)[..., None, None]
        if level == "nominal":
            distance = 1 - diagonal
        else:  # the distance of stages is the number of ratings between the middles of their ranks
            middle = label_counts.cumsum(axis=-1) - label_counts / 2
            distance = (middle[..., None] - middle[..., None, :]) ** 2
        return _beyond_chance(
            (together * distance).sum(axis=(-1, -2)), (by_chance * distance).sum(axis=(-1, -2))
        )

    return Statistic(pairs.reshape(len(pairs), n_stages**2), alpha)


def fleiss_kappa(counts: Floats) -> Statistic:
    """Computes Fleiss' kappa from ratings per item and stage, equally many per item."""
    raters = counts.sum(axis=-1)
    alike = (counts * (counts - 1)).sum(axis=-1) / (raters * (raters - 1))

    def kappa(sums: Floats) -> Floats:
        items, agreed, label_counts = sums[..., 0], sums[..., 1], sums[..., 2:]
        share = label_counts / label_counts.sum(axis=-1, keepdims=True)
        return _beyond_chance(1 - agreed / items, 1 - (share**2).sum(axis=-1))

    return Statistic(np.column_stack([np.ones(len(counts)), alike, counts]), kappa)


def cohen_kappa(rated: Floats, power: int) -> Statistic:
    """Computes Cohen's kappa by item and rater, averaged over pairs of raters (Light's).

    A disagreement is weighed by the distance between its stages, to the power 0, 1 or 2.
    """
    stages, (items, raters) = np.unique(rated), rated.shape
    apart = np.abs(stages[:, None] - stages)
    weight = (apart > 0).astype(float) if power == 0 else apart**power
    is_stage = (rated[:, :, None] == stages).reshape(items, -1)
    pairs = list(combinations(range(raters), 2))
    gaps = np.abs(np.stack([rated[:, left] - rated[:, right] for left, right in pairs], axis=1))
    weighed = (gaps > 0).astype(float) if power == 0 else gaps**power

    def kappa(sums: Floats) -> Floats:
        counts = sums[..., len(pairs) :].reshape(*sums.shape[:-1], raters, len(stages))
        total = counts[..., 0, :].sum(axis=-1)
        share = counts / total[..., None, None]
        kappas = []
        for index, (left, right) in enumerate(pairs):
            expected = ((share[..., left, :] @ weight) * share[..., right, :]).sum(axis=-1)
            kappas.append(_beyond_chance(sums[..., index] / total, expected))
        mean: Floats = np.mean(kappas, axis=0)
        return mean

    return Statistic(np.column_stack([weighed, is_stage]), kappa)


def intraclass_correlation(rated: Floats) -> Statistic:
    """Computes ICC(2,1): absolute agreement of single raters, who are a random sample."""
    raters = rated.shape[1]
    gaps = rated - rated.mean()  # centred, so that squares lose no digits
    item_squares = gaps.sum(axis=1) ** 2 / raters

    def correlation(sums: Floats) -> Floats:
        items, by_rater = sums[..., 0], sums[..., 3:]
        grand = by_rater.sum(axis=-1) ** 2 / (items * raters)
        items_apart, squares = sums[..., 1] - grand, sums[..., 2] - grand
        raters_apart = (by_rater**2).sum(axis=-1) / items - grand
        between = items_apart / (items - 1)
        error = (squares - items_apart - raters_apart) / ((items - 1) * (raters - 1))
        by_raters = raters_apart / (raters - 1)
        total = between + (raters - 1) * error + raters * (by_raters - error) / items
        return _beyond_chance(total - (between - error), total)

    columns = [np.ones(len(rated)), item_squares, (gaps**2).sum(axis=1), gaps]
    return Statistic(np.column_stack(columns), correlation)


def items_by_label(ratings: npt.ArrayLike) -> tuple[int, ...]:
    """Counts on how many items each label is used, from ratings by item and rater."""
    labels: Floats = np.asarray(ratings, dtype=float).round()
    used = np.unique(labels[~np.isnan(labels)])
    return tuple(int((labels == label).any(axis=1).sum()) for label in used)


def share_alike(ratings: npt.ArrayLike) -> float:
    """Computes the largest share of ratings that one label has."""
    labels: Floats = np.asarray(ratings, dtype=float).round()
    counts = np.unique(labels[~np.isnan(labels)], return_counts=True)[1]
    return float(counts.max() / counts.sum()) if len(counts) else 0.0


def _beyond_chance(observed: Floats, expected: Floats) -> Floats:
    """Computes 1 - observed / expected disagreement, NaN if none is expected."""
    ratios = np.full(np.shape(expected), np.nan)
    np.divide(observed, expected, out=ratios, where=expected > CLOSE)
    return 1 - ratios


# --- a judge's rating of an item -----------------------------------------------------------------

Rating = Literal["most", "median", "expected"]


def ratings(verdicts: Verdicts, kind: Rating) -> Floats:
    """Summarises the replicates of each setup on each unit, NaN without a scored verdict.

    `most` is the stage with the largest share (NaN if stages tie), `median` the lowest stage at
    which half of the weight is reached, `expected` the mean stage. A subset is spread equally.
    """
    shares = verdicts.shares
    if kind == "most":
        top = shares >= shares.max(axis=-1, keepdims=True) - CLOSE
        rated = np.where(top.sum(axis=-1) == 1, top.argmax(axis=-1) + 1, np.nan)
    elif kind == "median":
        rated = (shares.cumsum(axis=-1) >= 0.5 - CLOSE).argmax(axis=-1) + 1.0
    else:
        rated = shares @ np.arange(1, shares.shape[-1] + 1)
    return np.where(verdicts.scored > 0, rated, np.nan)


# --- tables --------------------------------------------------------------------------------------


class _Measure(NamedTuple):
    name: str
    rating: Rating
    counted: bool
    """Whether the statistic takes counts of stages instead of ratings."""
    least: int | None
    """The number of raters that an item needs; None for all of them."""
    statistic: Callable[[Floats], Statistic]


_NOMINAL = (
    _Measure("alpha_nominal", "most", True, 2, partial(krippendorff_alpha, level="nominal")),
    _Measure("fleiss_kappa", "most", True, None, fleiss_kappa),
    _Measure("cohen_kappa", "most", False, None, partial(cohen_kappa, power=0)),
)
_ORDINAL = (
    _Measure("alpha_ordinal", "median", True, 2, partial(krippendorff_alpha, level="ordinal")),
    _Measure("kappa_linear", "median", False, None, partial(cohen_kappa, power=1)),
    _Measure("kappa_quadratic", "median", False, None, partial(cohen_kappa, power=2)),
    _Measure("icc", "expected", False, None, intraclass_correlation),
)


def nominal_agreement(samples: Samples) -> pd.DataFrame:
    """Estimates the agreement on the stage itself between all judges of each panel.

    A judge's rating is its most frequent stage, missing if stages tie. Alpha takes items that two
    judges rated, the other measures items that all did; the items left out are counted as dropped.

    Returns:
        Columns task, variant, measure (alpha_nominal, fleiss_kappa, cohen_kappa), judges, value,
        low, high, items, dropped, shared_rubric (whether all judges used the same).
    """
    return _table(samples, _NOMINAL)


def ordinal_agreement(frame: OrdinalFrame) -> pd.DataFrame:
    """Estimates the agreement between all judges, weighted by the distance of stages.

    A judge's rating is its median stage; for the intraclass correlation its expected stage. Columns
    are those of `nominal_agreement`; measures alpha_ordinal, kappa_linear, kappa_quadratic, icc.
    """
    return _table(frame, _ORDINAL)


def _table(samples: Samples, measures: Sequence[_Measure]) -> pd.DataFrame:
    rows = []
    for verdicts in Dataset.of(samples).panels:
        parts = [verdicts, *(verdicts.without_each_draw if verdicts.many_draws else ())]
        for measure in measures:
            rated, *without_draws = (ratings(part, measure.rating) for part in parts)
            agreement = _estimate(rated, without_draws, measure, verdicts.clusters)
            items, judges = verdicts.size
            counts = [items - agreement.n, not verdicts.own_rubrics]
            rows.append([*verdicts.key.values(), measure.name, judges, *agreement[:4], *counts])
    columns = ["measure", "judges", "value", "low", "high", "items", "dropped", "shared_rubric"]
    return pd.DataFrame(rows, columns=[*PANEL, *columns])


def _estimate(
    wide: Floats, without: Sequence[Floats], measure: _Measure, clusters: Codes
) -> Estimate:
    """Estimates a measure over items and, if there are many, draws of rubrics.

    Ratings are by item and judge; `without` has those without each draw.
    """
    is_rated = _rated(wide, measure)
    n = int(is_rated.sum())
    if wide.shape[1] < 2 or n < 2:
        return undefined(n)
    statistic = _statistic(wide[is_rated], measure)
    agreement = estimate(statistic, clusters[is_rated], scale=KAPPA)
    if without and agreement.known:
        values = np.full((1 + len(without), len(wide)), np.nan)
        for row, table in zip(values, (wide, *without), strict=True):
            some = _rated(table, measure)
            row[some] = jackknife_values(_statistic(table[some], measure))
        agreement = widened_by_draws(
            agreement, pseudo_values(values[0, is_rated], values[1:, is_rated])
        )
    return agreement.clipped(KAPPA.low, KAPPA.high)


def _rated(wide: Floats, measure: _Measure) -> npt.NDArray[np.bool_]:
    """Says for each item whether enough judges rated it."""
    enough: npt.NDArray[np.bool_] = (~np.isnan(wide)).sum(axis=1) >= (
        measure.least or wide.shape[1]
    )
    return enough


def _statistic(rated: Floats, measure: _Measure) -> Statistic:
    labels, alike = items_by_label(rated), share_alike(rated)
    if measure.counted:
        stages = np.unique(rated[~np.isnan(rated)])
        rated = (rated[:, :, None] == stages).sum(axis=1).astype(float)
    return measure.statistic(rated)._replace(labels=labels, alike=alike)
