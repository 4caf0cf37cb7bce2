"""What a verdict costs, in money and in time, where both orders of a pair are one verdict."""

from collections.abc import Mapping

import pandas as pd

from judge_gym.analysis.measures import column
from judge_gym.analysis.measures.means import split
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.stats.intervals import MEDIAN
from judge_gym.analysis.verdicts import Verdicts


@column(
    "usd_per_1000",
    "$ per 1,000",
    "The median price of 1,000 verdicts, with views and rubrics in full. What does it cost?",
    order=30,
    unit="dollars",
)
def usd_per_1000(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Sums prices over the orders of a pair, averages over repeats."""
    return dict(split(_sums_over_orders(verdicts, "usd") * 1000, scale=MEDIAN))


@column(
    "seconds",
    "seconds",
    "The median time of a verdict, with views and rubrics in full. How long does it take?",
    order=70,
    unit="seconds",
)
def seconds(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Sums times over the orders of a pair, averages over repeats."""
    return dict(split(_sums_over_orders(verdicts, "seconds"), scale=MEDIAN))


def _sums_over_orders(verdicts: Verdicts, name: str) -> pd.Series:
    """Sums a unit's price or time over both orders, with what prepares it, by setup and unit.

    A view is made once for each item, a rubric once for all items of the setup.
    """
    rows = verdicts.rows.assign(setup=verdicts.setup)
    priced = rows[rows["asked"] & rows[name].notna()]
    unit = [priced["setup"], priced["unit"]]
    by_order = priced[name].groupby([*unit, priced["flipped"]]).mean()
    sums = by_order.groupby(level=[0, 1]).sum()
    sums = sums + priced[f"view_{name}"].groupby(unit).mean()
    once = priced.drop_duplicates(["setup", "rubric"])
    rubrics = once.groupby("setup")[f"rubric_{name}"].sum()
    units = sums.groupby(level=0).transform("size")
    shared = rubrics.reindex(sums.index.get_level_values(0)).to_numpy()
    price: pd.Series = (sums + shared / units).dropna()
    return price
