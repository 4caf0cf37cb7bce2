"""Agreement between judges beyond chance: alpha, kappa, intraclass correlation.

A judge's rating of an item is what its replicates say together, so that replicates are no extra
raters, and judges are not held to agree because they saw one display. Measures of order take an
`OrdinalFrame`: on a nominal rubric they do not type-check.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.belief import sources
from judge_gym.analysis.frames import CELL, JUDGE, OrdinalFrame, once_per_call, only
from judge_gym.analysis.stats.intervals import (
    Estimate,
    Floats,
    Summed,
    bootstrap,
    item_values,
    undefined,
)
from judge_gym.analysis.stats.rubric_draws import left_out, over_draws, pseudo_values

Level = Literal["nominal", "ordinal"]
PANEL = ["task", "variant"]
CLOSE = 1e-9
"""What differs by less is equal: shares are sums of fractions."""


# --- what a judge says of an item ----------------------------------------------------------------


def stage_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Each judge's distribution on each item: index CELL and evidence, a column per stage.

    A subset spreads its weight equally. Verdicts under a rival's rubric are left out; items
    without a scored verdict have no row.
    """
    scored = once_per_call(frame[~frame["is_swap"] & (frame["mask"] != 0)], CELL)
    n_stages = int(frame["n_stages"].max())
    cells = scored.groupby([*CELL, "evidence"], observed=True)
    number = cells.ngroup().to_numpy().astype(np.int64)
    chosen = scored["mask"].to_numpy(np.int64)
    masses = sources(number, chosen, frame=n_stages, cells=cells.ngroups).masses
    return pd.DataFrame(masses.pignistic(), cells.size().index, range(1, n_stages + 1))


def ratings(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per judge and item: what its replicates say together.

    Returns:
        Columns CELL, evidence, `most` (the stage with the largest share, not a number where
        stages tie), `median` (the lowest stage at which half is reached) and `expected`.
    """
    shares = stage_shares(frame)
    p = shares.to_numpy()
    stages = np.arange(1, p.shape[1] + 1)
    top = p >= p.max(axis=1, keepdims=True) - CLOSE
    return shares.index.to_frame(index=False).assign(
        most=np.where(top.sum(axis=1) == 1, top.argmax(axis=1) + 1, np.nan),
        median=(p.cumsum(axis=1) >= 0.5 - CLOSE).argmax(axis=1) + 1.0,
        expected=p @ stages,
    )


# --- the measures, as functions of sums over items -----------------------------------------------


def krippendorff_alpha(counts: Floats, level: Level, parts: int | None = None) -> Summed:
    """Krippendorff's alpha from how many raters gave an item each stage; at least two per item.

    Args:
        counts: a row per item, a column per stage, in their order.
        level: whether the order counts.
        parts: into how many clusters items are dealt; left out, each is its own.
    """
    n_stages = counts.shape[-1]
    diagonal = np.eye(n_stages)
    pairable = counts / (counts.sum(axis=-1, keepdims=True) - 1)
    if parts is None:
        pairs = pairable[:, :, None] * (counts[:, None, :] - diagonal)
    else:
        dealt = [slice(part, None, parts) for part in range(parts)]
        together = [pairable[some].T @ counts[some] for some in dealt]
        own = [diagonal * pairable[some].sum(axis=0) for some in dealt]
        pairs = np.stack(together) - np.stack(own)

    def alpha(sums: Floats) -> Floats:
        together = sums.reshape(*sums.shape[:-1], n_stages, n_stages)
        given = together.sum(axis=-1)
        by_chance = given[..., None] * given[..., None, :] - diagonal * given[..., None]
        by_chance = by_chance / (given.sum(axis=-1) - 1)[..., None, None]
        if level == "nominal":
            distance = 1 - diagonal
        else:  # stages lie as far apart as the ratings between the middles of their ranks
            middle = given.cumsum(axis=-1) - given / 2
            distance = (middle[..., None] - middle[..., None, :]) ** 2
        return _beyond_chance(
            (together * distance).sum(axis=(-1, -2)), (by_chance * distance).sum(axis=(-1, -2))
        )

    return Summed(pairs.reshape(len(pairs), -1), alpha)


def fleiss_kappa(counts: Floats) -> Summed:
    """Fleiss' kappa from how many raters gave an item each stage; equally many for each item."""
    raters = counts.sum(axis=-1)
    alike = (counts * (counts - 1)).sum(axis=-1) / (raters * (raters - 1))

    def kappa(sums: Floats) -> Floats:
        items, agreed, given = sums[..., 0], sums[..., 1], sums[..., 2:]
        share = given / given.sum(axis=-1, keepdims=True)
        return _beyond_chance(1 - agreed / items, 1 - (share**2).sum(axis=-1))

    return Summed(np.column_stack([np.ones(len(counts)), alike, counts]), kappa)


def cohen_kappa(rated: Floats, power: int) -> Summed:
    """Cohen's kappa of stages, a column per rater, averaged over pairs of raters (Light's).

    Args:
        rated: stages, none missing.
        power: of the distance between stages that a disagreement weighs: 0, 1 or 2.
    """
    stages, (items, raters) = np.unique(rated), rated.shape
    apart = np.abs(stages[:, None] - stages)
    weight = (apart > 0).astype(float) if power == 0 else apart**power
    given = (rated[:, :, None] == stages).reshape(items, -1)
    pairs = list(combinations(range(raters), 2))
    gaps = np.abs(np.stack([rated[:, left] - rated[:, right] for left, right in pairs], axis=1))
    weighed = (gaps > 0).astype(float) if power == 0 else gaps**power

    def kappa(sums: Floats) -> Floats:
        counts = sums[..., len(pairs) :].reshape(*sums.shape[:-1], raters, len(stages))
        total = counts[..., 0, :].sum(axis=-1)
        share = counts / total[..., None, None]
        found = []
        for place, (left, right) in enumerate(pairs):
            expected = ((share[..., left, :] @ weight) * share[..., right, :]).sum(axis=-1)
            found.append(_beyond_chance(sums[..., place] / total, expected))
        mean: Floats = np.mean(found, axis=0)
        return mean

    return Summed(np.column_stack([weighed, given]), kappa)


def intraclass_correlation(rated: Floats) -> Summed:
    """ICC(2,1): absolute agreement of single raters, drawn from many like them."""
    raters = rated.shape[1]
    gaps = rated - rated.mean()  # small numbers, so that squares lose no digits
    whole = gaps.sum(axis=1) ** 2 / raters

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

    columns = [np.ones(len(rated)), whole, (gaps**2).sum(axis=1), gaps]
    return Summed(np.column_stack(columns), correlation)


def _beyond_chance(observed: Floats, expected: Floats) -> Floats:
    """1 - observed / expected disagreement; undefined where chance leaves none to expect."""
    found = np.full(np.shape(expected), np.nan)
    np.divide(observed, expected, out=found, where=expected > CLOSE)
    return 1 - found


# --- tables --------------------------------------------------------------------------------------


class _Measure(NamedTuple):
    name: str
    rating: Literal["most", "median", "expected"]
    counted: bool
    """Whether the statistic takes counts of stages instead of ratings."""
    least: int | None
    """Raters that an item needs; None is all of them."""
    statistic: Callable[[Floats], Summed]


_NOMINAL = (
    _Measure("alpha_nominal", "most", True, 2, partial(krippendorff_alpha, level="nominal")),
    _Measure("fleiss_kappa", "most", True, None, fleiss_kappa),
    _Measure("cohen_kappa", "most", False, None, partial(cohen_kappa, power=0)),
)
_KAPPAS = (
    _Measure("kappa_linear", "median", False, None, partial(cohen_kappa, power=1)),
    _Measure("kappa_quadratic", "median", False, None, partial(cohen_kappa, power=2)),
)
_ORDINAL = (
    _Measure("alpha_ordinal", "median", True, 2, partial(krippendorff_alpha, level="ordinal")),
    *_KAPPAS,
    _Measure("icc", "expected", False, None, intraclass_correlation),
)


def nominal_agreement(frame: pd.DataFrame) -> pd.DataFrame:
    """Agreement on the stage itself, between all judges of a task and variant.

    Each judge's rating is its most frequent stage, missing where stages tie. Alpha takes items that
    two judges rated, the others items that all did; what is left out is counted as dropped.

    Returns:
        Columns task, variant, measure (alpha_nominal, fleiss_kappa, cohen_kappa), judges, value,
        low, high, items, dropped, shared_rubric (whether all judges used the same).
    """
    return _table(frame, _NOMINAL)


def ordinal_agreement(frame: OrdinalFrame) -> pd.DataFrame:
    """Agreement that weighs how far apart stages are, between all judges of a task and variant.

    Each judge's rating is its median stage; for the intraclass correlation its expected stage.

    Returns:
        As `nominal_agreement`; measures alpha_ordinal, kappa_linear, kappa_quadratic, icc.
    """
    return _table(frame, _ORDINAL)


def pairwise_kappa(frame: OrdinalFrame) -> pd.DataFrame:
    """Weighted kappa of each pair of judges: as `ordinal_agreement`, with both judges' names."""
    return _table(frame, _KAPPAS, pairs=True)


def _table(
    frame: pd.DataFrame, measures: Sequence[_Measure], *, pairs: bool = False
) -> pd.DataFrame:
    own = only(frame, ~frame["is_swap"])
    rated = ratings(frame)
    without = left_out(own, PANEL, ratings).values()
    rows = []
    for group, part in own.groupby(PANEL, observed=True):
        here, *drawn = (one[(one[PANEL] == list(group)).all(axis=1)] for one in (rated, *without))
        drawn = [one for one in drawn if len(one)]
        items = part["evidence"].nunique()
        everyone = sorted(part[JUDGE].unique())
        for judges in combinations(everyone, 2 if pairs else len(everyone)):
            used = part[part[JUDGE].isin(judges)].groupby("rubric")[JUDGE].nunique()
            for measure in measures:
                wide, *lacking = (_wide(one, measure, judges) for one in (here, *drawn))
                found = _estimate(wide, measure, [*group, *judges], lacking)
                shared = bool((used == len(judges)).all())
                told = [measure.name, len(judges), *found, items - found.n, shared]
                rows.append([*group, *(judges if pairs else ()), *told])
    columns = ["measure", "judges", "value", "low", "high", "items", "dropped", "shared_rubric"]
    return pd.DataFrame(rows, columns=[*PANEL, *(["judge", "other"] if pairs else []), *columns])


def _wide(rated: pd.DataFrame, measure: _Measure, judges: Sequence[str]) -> pd.DataFrame:
    """The ratings that a measure takes: a row per item that enough rated, a column per judge."""
    wide = rated.pivot(index="evidence", columns=JUDGE, values=measure.rating)
    wide = wide.reindex(columns=list(judges))
    return wide[wide.notna().sum(axis=1) >= (measure.least or len(judges))]


def _estimate(
    wide: pd.DataFrame, measure: _Measure, key: list[Any], without: Sequence[pd.DataFrame]
) -> Estimate:
    """A measure with its interval over items, and over draws where there are many."""
    if wide.shape[1] < 2 or len(wide) < 2:
        return undefined(len(wide))
    found = bootstrap(_statistic(wide, measure), key=[measure.name, *key])
    if without and found.known:
        whole, *lacking = (
            pd.Series(item_values(_statistic(one, measure)), one.index).reindex(wide.index)
            for one in (wide, *without)
        )
        found = over_draws(found, pseudo_values(whole, np.stack(lacking)))
    return found._replace(high=min(found.high, 1.0)) if found.known else found


def _statistic(wide: pd.DataFrame, measure: _Measure) -> Summed:
    rated = wide.to_numpy()
    if measure.counted:
        stages = np.unique(rated[~np.isnan(rated)])
        rated = (rated[:, :, None] == stages).sum(axis=1).astype(float)
    return measure.statistic(rated)
