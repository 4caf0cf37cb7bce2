"""The published measures of JudgeBench (Tan et al. 2024) on pairs with a known better response.

They are shown where the benchmark's own rule applies. Elsewhere a tie counts as in exact agreement.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import IntArray
from judge_gym.analysis.measures import published
from judge_gym.analysis.measures.means import split
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.verdicts import Verdicts, once_per_slice
from judge_gym.errors import DesignError

BENCHMARK = "judgebench"
OBSERVATION = ["setup", "unit", "tag", "series", "rubric", "is_swap", "replicate"]
"""The columns that both orders of one observation of a pair share."""


def decisions(verdicts: Verdicts) -> IntArray:
    """Lists by row the better response: 1, 2, or 3 for a tie; 0 if none or several are named."""
    single = np.bitwise_count(verdicts.mask) == 1
    stage = np.log2(np.maximum(verdicts.mask, 1)).astype(np.int64) + 1
    return np.where(single, stage, 0)


@once_per_slice
def observations(verdicts: Verdicts) -> pd.DataFrame:
    """Puts the orders of each observation of a pair together: sum, right, decisions and orders."""
    reference = verdicts.references.get("accuracy")
    labels = np.zeros((len(verdicts.rows), 1)) if reference is None else reference.labels
    has_label = labels.sum(axis=1) > 0
    truth, decision = labels.argmax(axis=1) + 1, decisions(verdicts)
    rows = verdicts.rows.assign(
        setup=verdicts.setup,
        right=decision == truth,
        # A true tie has no opposite.
        balance=1 * (decision == truth) - 1 * ((decision == 3 - truth) & (decision > 0)),
        decision=decision,
    )[has_label]
    groups = rows.groupby(OBSERVATION, observed=True, dropna=False)
    table: pd.DataFrame = groups.agg(
        balance=("balance", "sum"),
        all_right=("right", "all"),
        decisions=("decision", "nunique"),
        orders=("flipped", "nunique"),
        size=("flipped", "size"),
    )
    if len(twice := table.index[table["size"] > table["orders"]]):
        _, evidence = verdicts.units[twice.get_level_values("unit")[0]]
        raise DesignError(
            f"pair {evidence!r} has two samples in the same order of replicate "
            f"{twice.get_level_values('replicate')[0]}; give the samples of one judge and variant"
        )
    return table


@published(
    BENCHMARK,
    "pair_accuracy",
    "accuracy by JudgeBench's rule",
    "The share of pairs whose orders sum to above 0: +1 for the better response, -1 for the other, "
    "0 for a tie or no answer. What would the benchmark report?",
    order=1,
)
def pair_accuracy(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Averages over repeats, then over pairs."""
    return _over_pairs(observations(verdicts).assign(value=lambda rows: rows["balance"] > 0))


@published(
    BENCHMARK,
    "both_correct",
    "right in both orders",
    "The share of pairs that are decided correctly in both orders. How much of accuracy does not "
    "depend on the order?",
    order=2,
)
def both_correct(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Averages over repeats, then over pairs, where every pair was shown in both orders."""
    return _over_pairs(_in_both_orders(verdicts).assign(value=lambda rows: rows["all_right"]))


@published(
    BENCHMARK,
    "inconsistent",
    "differs between orders",
    "The share of pairs whose two decisions differ; no decision differs from any other. How often "
    "does the order change the answer?",
    order=3,
)
def inconsistent(verdicts: Verdicts) -> Mapping[int, Terms]:
    """Averages over repeats, then over pairs, where every pair was shown in both orders."""
    return _over_pairs(_in_both_orders(verdicts).assign(value=lambda rows: rows["decisions"] > 1))


def shown_in_both_orders(verdicts: Verdicts) -> set[int]:
    """Lists the setups that saw every pair in both orders."""
    orders = observations(verdicts)["orders"].groupby(level="setup").min()
    return {int(setup) for setup in orders.index[orders == 2]}


def _in_both_orders(verdicts: Verdicts) -> pd.DataFrame:
    rows = observations(verdicts)
    return rows[rows.index.get_level_values("setup").isin([*shown_in_both_orders(verdicts)])]


def _over_pairs(rows: pd.DataFrame) -> dict[int, Terms]:
    if rows.empty:
        return {}
    return dict(split(rows["value"].astype(float).groupby(level=["setup", "unit"]).mean()))
