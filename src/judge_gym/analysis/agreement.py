"""Agreement between judges beyond chance: alpha, kappa, intraclass correlation.

A judge's rating of an item is what its replicates say together, so that replicates are no extra
raters, and judges are not held to agree because they saw one display. Measures of order take an
`OrdinalFrame`: on a nominal rubric they do not type-check.
"""

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.belief import sources
from judge_gym.analysis.frames import CELL, JUDGE, OrdinalFrame, once_per_call
from judge_gym.analysis.intervals import Estimate, Floats, Statistic, bootstrap, undefined

Level = Literal["nominal", "ordinal"]
PANEL = ["task", "variant"]
CLOSE = 1e-9
"""Shares that differ by less are equal: they are sums of fractions."""


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


# --- the measures, over (..., items, columns) ----------------------------------------------------


def krippendorff_alpha(counts: Floats, level: Level) -> Floats:
    """Krippendorff's alpha from how many raters gave an item each stage; at least two per item."""
    pairable = counts / (counts.sum(axis=-1, keepdims=True) - 1)
    together = np.swapaxes(pairable, -1, -2) @ counts
    diagonal = np.eye(counts.shape[-1])
    together = together - diagonal * pairable.sum(axis=-2)[..., None]
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


def fleiss_kappa(counts: Floats) -> Floats:
    """Fleiss' kappa from how many raters gave an item each stage; equally many for each item."""
    raters = counts.sum(axis=-1)
    alike = (counts * (counts - 1)).sum(axis=-1) / (raters * (raters - 1))
    share = counts.sum(axis=-2) / raters.sum(axis=-1)[..., None]
    return _beyond_chance(1 - alike.mean(axis=-1), 1 - (share**2).sum(axis=-1))


def cohen_kappa(rated: Floats, power: int) -> Floats:
    """Cohen's kappa of stages, a column per rater, averaged over pairs of raters (Light's).

    Args:
        rated: stages, none missing.
        power: of the distance between stages that a disagreement weighs: 0, 1 or 2.
    """
    stages = np.unique(rated)
    apart = np.abs(stages[:, None] - stages)
    weight = (apart > 0).astype(float) if power == 0 else apart**power
    share = (rated[..., None] == stages).mean(axis=-3)
    found = []
    for left, right in combinations(range(rated.shape[-1]), 2):
        gap = np.abs(rated[..., left] - rated[..., right])
        observed = (gap > 0) if power == 0 else gap**power
        expected = ((share[..., left, :] @ weight) * share[..., right, :]).sum(axis=-1)
        found.append(_beyond_chance(observed.mean(axis=-1), expected))
    mean: Floats = np.mean(found, axis=0)
    return mean


def intraclass_correlation(rated: Floats) -> Floats:
    """ICC(2,1): absolute agreement of single raters, drawn from many like them."""
    items, raters = rated.shape[-2:]
    grand = rated.mean(axis=(-1, -2), keepdims=True)
    by_item = rated.mean(axis=-1, keepdims=True) - grand
    by_rater = rated.mean(axis=-2, keepdims=True) - grand
    rest = rated - grand - by_item - by_rater
    between = raters * (by_item**2).sum(axis=(-1, -2)) / (items - 1)
    raters_apart = items * (by_rater**2).sum(axis=(-1, -2)) / (raters - 1)
    error = (rest**2).sum(axis=(-1, -2)) / ((items - 1) * (raters - 1))
    whole = between + (raters - 1) * error + raters * (raters_apart - error) / items
    return _beyond_chance(whole - (between - error), whole)


def _beyond_chance(observed: Floats, expected: Floats) -> Floats:
    """1 - observed / expected disagreement; undefined where chance leaves none to expect."""
    found = np.full(np.shape(expected), np.nan)
    np.divide(observed, expected, out=found, where=expected > CLOSE**2)
    return 1 - found


# --- tables --------------------------------------------------------------------------------------


class _Measure(NamedTuple):
    name: str
    rating: Literal["most", "median", "expected"]
    counted: bool
    """Whether the statistic takes counts of stages instead of ratings."""
    least: int | None
    """Raters that an item needs; None is all of them."""
    statistic: Statistic


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
    own = frame[~frame["is_swap"]]
    rated = ratings(frame)
    rows = []
    for group, part in own.groupby(PANEL, observed=True):
        here = rated[(rated[PANEL] == list(group)).all(axis=1)]
        items = part["evidence"].nunique()
        everyone = sorted(part[JUDGE].unique())
        for judges in combinations(everyone, 2 if pairs else len(everyone)):
            used = part[part[JUDGE].isin(judges)].groupby("rubric")[JUDGE].nunique()
            for measure in measures:
                wide = here.pivot(index="evidence", columns=JUDGE, values=measure.rating)
                found = _estimate(wide.reindex(columns=list(judges)), measure, [*group, *judges])
                shared = bool((used == len(judges)).all())
                told = [measure.name, len(judges), *found, items - found.n, shared]
                rows.append([*group, *(judges if pairs else ()), *told])
    columns = ["measure", "judges", "value", "low", "high", "items", "dropped", "shared_rubric"]
    return pd.DataFrame(rows, columns=[*PANEL, *(["judge", "other"] if pairs else []), *columns])


def _estimate(wide: pd.DataFrame, measure: _Measure, key: list[Any]) -> Estimate:
    """A measure with its interval over items; a row per item, a column per judge."""
    judges = wide.shape[1]
    kept = wide[wide.notna().sum(axis=1) >= (measure.least or judges)].to_numpy()
    if judges < 2 or len(kept) < 2:
        return undefined(len(kept))
    if measure.counted:
        stages = np.unique(kept[~np.isnan(kept)])
        kept = (kept[:, :, None] == stages).sum(axis=1).astype(float)
    found = bootstrap(kept, measure.statistic, key=[measure.name, *key])
    return found._replace(high=min(found.high, 1.0)) if found.known else found
