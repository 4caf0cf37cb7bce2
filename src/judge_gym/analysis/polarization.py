"""Raw polarization: how far judges' distributions on the same item lie apart."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import JUDGE, once_per_call, stage_weights


def jensen_shannon(distributions: np.ndarray) -> float:
    """The Jensen-Shannon divergence of the rows, in bits.

    >>> round(jensen_shannon(np.array([[1.0, 0.0], [0.0, 1.0]])), 6)
    1.0
    """
    mixed = _entropy(distributions.mean(axis=0))
    return max(0.0, mixed - float(np.mean([_entropy(p) for p in distributions])))


def _entropy(p: np.ndarray) -> float:
    positive = p[p > 0]
    return float(-(positive * np.log2(positive)).sum())


def item_distributions(frame: pd.DataFrame, n_stages: int) -> pd.DataFrame:
    """Each judge's distribution on each item: index (evidence, judge), a column per stage."""
    weights = stage_weights(once_per_call(frame, [JUDGE]))
    mass = weights.pivot_table(
        index=["evidence", JUDGE], columns="stage", values="weight", aggfunc="sum"
    )
    mass = mass.reindex(columns=range(1, n_stages + 1)).fillna(0.0)
    return mass.div(mass.sum(axis=1), axis=0)


def raw_polarization(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Raw P per group: mean over items of the divergence, over log2 min(judges, stages).

    It is biased upward at few replicates: identical judges do not come out at 0. Items on which a
    judge has no scored sample are dropped and counted.
    """
    rows = []
    for group, part in frame.groupby(list(by), observed=True):
        judges = sorted(part[JUDGE].unique())
        n_stages = int(part["n_stages"].max())
        values, dropped = _per_item(part, judges, n_stages)
        bound = np.log2(min(len(judges), n_stages)) if len(judges) > 1 else np.nan
        cells = (
            once_per_call(part, [JUDGE])
            .query("status == 'scored'")
            .groupby([JUDGE, "evidence"])
            .size()
        )
        rows.append(
            {
                **dict(zip(by, group, strict=True)),
                "judges": len(judges),
                "p": float(np.mean(values)) / bound if values else None,
                "items": len(values),
                "dropped": dropped,
                "replicates": float(cells.mean()) if len(cells) else 0.0,
            }
        )
    return pd.DataFrame(rows)


def divergent_pairs(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Pairs of judges per group, the farthest apart first."""
    rows = []
    for group, part in frame.groupby(list(by), observed=True):
        n_stages = int(part["n_stages"].max())
        for pair in combinations(sorted(part[JUDGE].unique()), 2):
            values, _ = _per_item(part[part[JUDGE].isin(pair)], list(pair), n_stages)
            if values:
                named = {"judge": pair[0], "other": pair[1], "p": float(np.mean(values))}
                rows.append({**dict(zip(by, group, strict=True)), **named, "items": len(values)})
    found = pd.DataFrame(rows, columns=[*by, "judge", "other", "p", "items"])
    return found.sort_values("p", ascending=False, ignore_index=True)


def mean_divergence(pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs of judges per task, averaged over variants: opposite differences must not cancel."""
    mean = pairs.groupby(["concept", "pool", "judge", "other"])[["p"]].mean().reset_index()
    return mean.sort_values("p", ascending=False, ignore_index=True)


def _per_item(frame: pd.DataFrame, judges: Sequence[str], n_stages: int) -> tuple[list[float], int]:
    """The divergence on every item that all judges scored, and how many items were dropped."""
    if not (frame["status"] == "scored").any() or len(judges) < 2:
        return [], frame["evidence"].nunique()
    cells = item_distributions(frame, n_stages)
    values = [
        jensen_shannon(part.to_numpy())
        for _, part in cells.groupby(level=0)
        if len(part) == len(judges)
    ]
    return values, frame["evidence"].nunique() - len(values)
