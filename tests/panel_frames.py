"""Tidy frames for tests of the analysis, written down or simulated."""

from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import tidy

JUDGE = "judge.model"


def samples(*rows: dict[str, Any], **shared: Any) -> pd.DataFrame:
    """A tidy frame of these rows; no stages is an abstention, each row is a call of its own.

    Rows of one judge and item are numbered as replicates unless they say otherwise.
    """
    made: list[dict[str, Any]] = []
    seen: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows):
        full = {JUDGE: "a", "evidence": 1, "n_stages": 4, "call_id": number, **shared, **row}
        key = (full[JUDGE], full["evidence"], full.get("rubric_author"), full.get("series"))
        full.setdefault("replicate", seen.get(key, 0))
        seen[key] = seen.get(key, 0) + 1
        full.setdefault("status", "scored" if full.get("stages") else "abstained")
        full.setdefault("stages", "")
        full.setdefault("is_swap", False)
        made.append(full)
    return tidy(pd.DataFrame(made))


def verdicts(*rows: tuple[str, int, str], **shared: Any) -> pd.DataFrame:
    """A tidy frame of (judge, item, stages)."""
    made = ({JUDGE: judge, "evidence": item, "stages": chosen} for judge, item, chosen in rows)
    return samples(*made, **shared)


def simulated(probabilities: np.ndarray, replicates: int, rng: np.random.Generator) -> pd.DataFrame:
    """Single verdicts drawn from probabilities (..., items, judges, stages), a task per panel."""
    *panels, items, judges, n_stages = probabilities.shape
    count = int(np.prod(panels))
    edges = probabilities.reshape(count, items, judges, 1, n_stages).cumsum(axis=-1)
    drawn = rng.random((count, items, judges, replicates, 1))
    stage = (drawn > edges[..., :-1]).sum(axis=-1) + 1
    panel, item, judge, replicate = (axis.ravel() for axis in np.indices(stage.shape))
    return pd.DataFrame(
        {
            "task": panel,
            "variant": "base",
            JUDGE: np.array([f"judge {place}" for place in range(judges)])[judge],
            "evidence": panel * items + item,
            "replicate": replicate,
            "status": "scored",
            "mask": np.int64(1) << (stage.ravel() - 1),
            "n_stages": n_stages,
            "rubric_kind": "ordinal",
            "cluster": "",
            "repeats": False,
            "is_swap": False,
            "flipped": False,
            "series": "",
            "display": "",
            "rubric": 0,
            "rubric_draw": 0,
            "probe": 0.5,
            "probe_call_id": np.nan,
            "call_id": np.arange(stage.size),
        }
    )


def swapped_panel(gap: float) -> pd.DataFrame:
    """Two judges under own, rival and third party's rubrics, surer by a gap under their own."""
    rows = [
        {
            **{JUDGE: judge, "evidence": item, "replicate": replicate, "stages": "1"},
            **{"rubric_author": author, "rubric": author, "is_swap": author != judge},
            # Items pull either way, so that without a gap there is none.
            "probe": 0.5 + (gap + 0.1 * (-1) ** item if author == judge else 0.0),
        }
        for judge in "ab"
        for author in "abz"
        for item in range(12)
        for replicate in range(4)
    ]
    return samples(*rows).assign(protocol="contested-concepts")
