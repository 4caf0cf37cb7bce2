"""Judged pairs from tidy samples, and their scores by group."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from judge_gym.analysis.judges.pairs import ORDERS, JudgedPair, Order, score_overall
from judge_gym.errors import DesignError

# The columns that distinguish observations of an item, if a frame has them.
OBSERVATION = ("run", "series", "rubric", "is_swap", "replicate")


def pairs_of(frame: pd.DataFrame) -> tuple[JudgedPair, ...]:
    """Returns the judged pairs in tidy samples, one per evidence and replicate.

    A verdict that names several options is no decision. Items without truth are left out; a column
    `category` is kept. Observations that share all their calls count once.
    """
    columns = ["evidence", *(name for name in OBSERVATION if name in frame)]
    found: dict[tuple[Any, ...], dict[Order, Mapping[Any, Any]]] = {}
    for row in frame[frame["truth"].notna()].to_dict("records"):
        order = ORDERS[bool(row["flipped"])]
        key = tuple(_value(row, name) for name in columns)
        if found.setdefault(key, {}).setdefault(order, row) is not row:
            raise DesignError(
                f"evidence {row['evidence']} has two samples in the {order} order of replicate "
                f"{row.get('replicate')}; give the samples of one judge and variant"
            )
    pairs: dict[tuple[Any, ...], JudgedPair] = {}
    for key, shown in found.items():
        orders = tuple(order for order in ORDERS if order in shown)
        calls = tuple(_value(shown[order], "call_id") for order in orders)
        first = shown[orders[0]]
        pair = JudgedPair(
            item=str(first["evidence"]),
            truth=int(first["truth"]),
            decisions=tuple(_decision(shown[order]) for order in orders),
            orders=orders,
            category=str(_value(first, "category") or ""),
            cluster=str(_value(first, "cluster") or ""),
        )
        pairs.setdefault(key if None in calls else (pair.item, orders, calls), pair)
    return tuple(pairs.values())


def _value(row: Mapping[Any, Any], name: str) -> Any:
    value = row.get(name)
    return None if pd.isna(value) else value


def _decision(row: Mapping[Any, Any]) -> int | None:
    chosen = str(row["stages"]).split() if row["status"] == "scored" else []
    return int(chosen[0]) if len(chosen) == 1 else None


def pair_table(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Returns the score of each group of samples on pairs; `low` and `high` are of accuracy.

    Replicates and intervals are as in `score_pairs`. A group without a known truth has no row.
    """
    columns = [*by, "n", "accuracy", "low", "high"]
    columns += ["both_correct", "inconsistent", "nulls", "position_bias"]
    rows = []
    for group, part in frame.groupby(list(by), observed=True, dropna=False):
        if pairs := pairs_of(part):
            score = score_overall(pairs)
            low, high = score.interval or (None, None)
            named = dict(zip(by, group, strict=True))
            rows.append({**named, **asdict(score), "low": low, "high": high})
    return pd.DataFrame(rows, columns=columns)
