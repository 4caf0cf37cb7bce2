"""Agreement between judges beyond chance: alpha, kappa, intraclass correlation.

A judge's rating of an item summarises its replicates, so that replicates are not extra raters, and
judges do not agree merely because they saw the same display. Measures that need ordered stages take
an `OrdinalFrame`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import grouped
from judge_gym.analysis.frames import ITEM, JUDGE, PANEL, OrdinalFrame, own_rows
from judge_gym.analysis.stats.agreement_coefficients import (
    CLOSE,
    cohen_kappa,
    fleiss_kappa,
    intraclass_correlation,
    krippendorff_alpha,
)
from judge_gym.analysis.stats.intervals import (
    Estimate,
    Floats,
    SumStatistic,
    bootstrap,
    jackknife_values,
    undefined,
)
from judge_gym.analysis.stats.rubric_draws import (
    pseudo_values,
    widened_by_draws,
    without_each_draw,
)

# --- a judge's rating of an item -----------------------------------------------------------------


def stage_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns each judge's distribution on each item, indexed by `ITEM`, with a column per stage.

    A subset is spread equally. Swaps are left out; items without a scored verdict have no row.
    """
    groups = grouped(frame, ITEM, ~frame["is_swap"] & (frame["mask"] != 0))
    shares = pd.DataFrame(groups.shares(), pd.MultiIndex.from_frame(groups.names))
    return shares.reindex(columns=range(int(frame["n_stages"].max())), fill_value=0.0).rename(
        columns=lambda stage: stage + 1
    )


def ratings(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns one row per judge and item that summarises the judge's replicates.

    Returns:
        Columns `ITEM`, `most` (the stage with the largest share, NaN if stages tie), `median` (the
        lowest stage at which half of the weight is reached) and `expected`.
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


# --- tables --------------------------------------------------------------------------------------


class _Measure(NamedTuple):
    name: str
    rating: Literal["most", "median", "expected"]
    counted: bool
    """Whether the statistic takes counts of stages instead of ratings."""
    least: int | None
    """The number of raters that an item needs; None for all of them."""
    statistic: Callable[[Floats], SumStatistic]


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


def nominal_agreement(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the agreement on the stage itself between all judges of a task and variant.

    A judge's rating is its most frequent stage, missing if stages tie. Alpha takes items that two
    judges rated, the other measures items that all did; the items left out are counted as dropped.

    Returns:
        Columns task, variant, measure (alpha_nominal, fleiss_kappa, cohen_kappa), judges, value,
        low, high, items, dropped, shared_rubric (whether all judges used the same).
    """
    return _table(frame, _NOMINAL)


def ordinal_agreement(frame: OrdinalFrame) -> pd.DataFrame:
    """Returns the agreement between all judges, weighted by the distance of stages.

    A judge's rating is its median stage; for the intraclass correlation its expected stage.

    Returns:
        As `nominal_agreement`; measures alpha_ordinal, kappa_linear, kappa_quadratic, icc.
    """
    return _table(frame, _ORDINAL)


def _table(frame: pd.DataFrame, measures: Sequence[_Measure]) -> pd.DataFrame:
    own = own_rows(frame)
    rated = ratings(frame)
    without = without_each_draw(own, PANEL, ratings).values()
    rows = []
    for group, part in own.groupby(PANEL, observed=True):
        here, *drawn = (one[(one[PANEL] == list(group)).all(axis=1)] for one in (rated, *without))
        drawn = [one for one in drawn if len(one)]
        judges = sorted(part[JUDGE].unique())
        shared = bool((part.groupby("rubric")[JUDGE].nunique() == len(judges)).all())
        for measure in measures:
            wide, *lacking = (_wide(one, measure, judges) for one in (here, *drawn))
            found = _estimate(wide, measure, [*group, *judges], lacking)
            dropped = part["evidence"].nunique() - found.n
            rows.append([*group, measure.name, len(judges), *found, dropped, shared])
    columns = ["measure", "judges", "value", "low", "high", "items", "dropped", "shared_rubric"]
    return pd.DataFrame(rows, columns=[*PANEL, *columns])


def _wide(rated: pd.DataFrame, measure: _Measure, judges: Sequence[str]) -> pd.DataFrame:
    """Returns ratings by item and judge, of the items that enough judges rated."""
    wide = rated.pivot(index="evidence", columns=JUDGE, values=measure.rating)
    wide = wide.reindex(columns=list(judges))
    return wide[wide.notna().sum(axis=1) >= (measure.least or len(judges))]


def _estimate(
    wide: pd.DataFrame, measure: _Measure, key: list[Any], without: Sequence[pd.DataFrame]
) -> Estimate:
    """Returns a measure with an interval over items and, if there are many, draws of rubrics."""
    if wide.shape[1] < 2 or len(wide) < 2:
        return undefined(len(wide))
    found = bootstrap(_statistic(wide, measure), key=[measure.name, *key])
    if without and found.known:
        whole, *lacking = (
            pd.Series(jackknife_values(_statistic(one, measure)), one.index).reindex(wide.index)
            for one in (wide, *without)
        )
        found = widened_by_draws(found, pseudo_values(whole, np.stack(lacking)))
    return found.clipped(high=1.0)


def _statistic(wide: pd.DataFrame, measure: _Measure) -> SumStatistic:
    rated = wide.to_numpy()
    if measure.counted:
        stages = np.unique(rated[~np.isnan(rated)])
        rated = (rated[:, :, None] == stages).sum(axis=1).astype(float)
    return measure.statistic(rated)
