"""The numbers of evidence items and replicates that an effect needs, from a pilot's variances.

Values vary between items and, within an item, between replicates. More replicates reduce only the
second component; more items reduce both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.endpoints import AVERAGED, sample_values
from judge_gym.analysis.frames import CELL, once_per_call, own_rows
from judge_gym.analysis.stats.contrasts import ALL, find_contrasts
from judge_gym.analysis.stats.intervals import LEVEL, Floats, t_quantile
from judge_gym.errors import DesignError, unknown

WHAT = ["task", "judge", "quantity", "knob", "level", "base", "at"]
COMPONENTS = [*WHAT, "items", "replicates", "calls", "between", "within"]
PLAN = [*WHAT, "effect", "power", "replicates", "items", "calls", "cheapest"]
MOST_ITEMS = 1 << 20
_UNIT = ["evidence", "replicate", "flipped", "rubric_draw"]


def components(frame: pd.DataFrame, endpoint: str = "stage") -> pd.DataFrame:
    """Returns the variance components of every mean and paired difference in a pilot.

    A row is a judge's mean under a design or its difference in a contrast, or the average over all
    judges: the variance `between` items, and `within` an item between single replicates. The sides
    of a difference are paired by replicate, which saw one display. `calls` is the number of calls
    per replicate and item. Components are unknown if no item has two replicates.
    """
    if endpoint not in AVERAGED:
        raise DesignError(unknown("endpoint", endpoint, AVERAGED), choices=AVERAGED)
    kept = once_per_call(own_rows(frame), CELL)
    kept = kept.assign(value=sample_values(kept)[endpoint]).dropna(subset="value")
    means = kept.groupby(["task", "variant", *_UNIT, "judge.model"])["value"].mean().unstack()
    sides = {
        (str(task), str(variant)): part.droplevel([0, 1]).dropna(axis=1, how="all")
        for (task, variant), part in means.groupby(level=[0, 1])
    }
    rows: list[dict[str, Any]] = []
    for (task, variant), values in sides.items():
        rows += _rows({"task": task, "quantity": "mean", "at": variant}, values, 1)
    for contrast in find_contrasts(kept):
        left, right = (sides[contrast.task, one] for one in (contrast.variant, contrast.against))
        differences = (left - right).dropna(axis=1, how="all")
        rows += _rows({**contrast._asdict(), "quantity": "difference"}, differences, 2)
    return pd.DataFrame(rows, columns=COMPONENTS)


def _rows(what: Mapping[str, Any], values: pd.DataFrame, sides: int) -> list[dict[str, Any]]:
    """Returns a row per judge, and one for all of them, from values by unit and judge."""
    groups = {str(judge): values[[judge]] for judge in values}
    if len(groups) > 1:
        groups = {ALL: values, **groups}
    return [
        {**what, "judge": name, "calls": sides * part.shape[1], **_one_way(part)}
        for name, part in groups.items()
    ]


def _one_way(values: pd.DataFrame) -> dict[str, float]:
    """Returns one-way variance components, from the mean over judges of complete replicates."""
    groups = values.mean(axis=1, skipna=False).dropna().groupby("evidence")
    n, means, squares = groups.size(), groups.mean(), groups.var(ddof=1) * (groups.size() - 1)
    spare = int((n - 1).sum())
    within = float(squares.sum() / spare) if spare else np.nan
    between = float(means.var(ddof=1) - within * (1 / n).mean()) if len(n) > 1 else np.nan
    return {
        "items": len(n),
        "replicates": float(n.mean()) if len(n) else np.nan,
        "between": max(0.0, between) if np.isfinite(between) else np.nan,
        "within": within,
    }


def power_of(effect: npt.ArrayLike, variance: npt.ArrayLike, items: npt.ArrayLike) -> Floats:
    """Returns the power of the two-sided t test at 5 %, from the variance of an item's value."""
    from scipy import stats

    n = np.asarray(items, dtype=float)
    shift = np.abs(np.asarray(effect, dtype=float)) * np.sqrt(n / np.asarray(variance, dtype=float))
    shift = np.minimum(shift, 100.0)  # beyond it, power is 1 and the noncentral t unstable
    limit = t_quantile(n - 1)
    # A tail too thin to compute is NaN, and adds nothing.
    other = np.nan_to_num(stats.nct.cdf(-limit, n - 1, shift), nan=0.0)
    found: Floats = stats.nct.sf(limit, n - 1, shift) + other
    return found


def needed(
    components: pd.DataFrame,
    effect: float,
    power: float | Sequence[float] = (0.8, 0.9),
    *,
    replicates: int = 10,
) -> pd.DataFrame:
    """Returns the number of items needed to detect an effect, for up to so many replicates.

    `cheapest` marks the plan with the fewest calls per row of the components and power. Items are
    unknown if the components are unknown or 0, or if more than a million would be needed.
    """
    powers = np.atleast_1d(np.asarray(power, dtype=float))
    if not (np.isfinite(effect) and effect != 0):
        raise DesignError(f"an effect of {effect}; choose a number other than 0")
    if not ((powers > 1 - LEVEL) & (powers < 1)).all():
        raise DesignError(f"a power of {power}; choose more than {1 - LEVEL:.2f} and less than 1")
    if replicates < 1:
        raise DesignError(f"{replicates} replicates; choose at least 1")
    plan = (
        components.drop(columns=["items", "replicates"])
        .merge(pd.DataFrame({"power": powers}), how="cross")
        .merge(pd.DataFrame({"replicates": np.arange(1, replicates + 1)}), how="cross")
    )
    variance = plan["between"] + plan["within"] / plan["replicates"]
    plan["effect"] = effect
    plan["items"] = _items(effect, variance.to_numpy(), plan["power"].to_numpy())
    plan["calls"] = plan["calls"] * plan["replicates"] * plan["items"]
    rows = plan.groupby([*WHAT, "power"], dropna=False, sort=False)["calls"]
    first = plan.loc[plan["calls"] == rows.transform("min")].groupby([*WHAT, "power"], dropna=False)
    plan["cheapest"] = plan.index.isin(first.head(1).index)
    return plan[PLAN]


def _items(effect: float, variance: Floats, power: Floats) -> Floats:
    """Returns the fewest items that reach the power, by bisection over all rows at once."""
    known = np.isfinite(variance) & (variance > 0)
    spread = np.where(known, variance, 1.0)
    low, high = np.full(len(spread), 1), np.full(len(spread), MOST_ITEMS)
    reached = power_of(effect, spread, high) >= power
    while (high - low > 1).any():
        middle = np.maximum((low + high) // 2, 2)
        enough = power_of(effect, spread, middle) >= power
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(known & reached, high, np.nan)
