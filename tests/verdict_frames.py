"""Frames of verdicts whose truth is known, drawn from stated chances."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

Chances = Sequence[float] | np.ndarray | Mapping[str, float]
"""A chance per stage, the same on every item or a row per item; or per chosen set ("2 3")."""


def draw_verdicts(
    judges: Mapping[str, Chances],
    *,
    items: int = 12,
    replicates: int = 5,
    seed: int = 0,
    first: int = 0,
    n_stages: int = 4,
    **columns: Any,
) -> pd.DataFrame:
    """A row per judge, item and replicate; with "abstain" among the sets, some are abstentions."""
    rng = np.random.default_rng(seed)
    parts = []
    for judge, chances in judges.items():
        if isinstance(chances, Mapping):
            names, odds = list(chances), np.tile(list(chances.values()), (items, 1))
        else:
            odds = np.broadcast_to(np.asarray(chances, dtype=float), (items, n_stages))
            names = [str(stage) for stage in range(1, n_stages + 1)]
        edges = odds.cumsum(axis=1)[:, None, :]
        drawn = (rng.random((items, replicates, 1)) > edges).sum(axis=2).clip(max=len(names) - 1)
        chosen = np.array(names, dtype=object)[drawn.ravel()]
        parts.append(
            pd.DataFrame(
                {
                    "judge.model": judge,
                    "evidence": np.repeat(np.arange(first, first + items), replicates),
                    "replicate": np.tile(np.arange(replicates), items),
                    "status": np.where(chosen == "abstain", "abstained", "scored"),
                    "stages": np.where(chosen == "abstain", "", chosen),
                    "n_stages": n_stages,
                    **columns,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)
