"""Swap sensitivity: whether a judge thinks experts agree more when the rubric is its own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import CELL, JUDGE
from judge_gym.analysis.stats.intervals import Estimate, student, undefined
from judge_gym.analysis.stats.rubric_draws import estimated, left_out

PAIRED = [*CELL, "evidence", "replicate", "series", "flipped", "n_stages", "rubric_draw"]
"""What both sides of a pair have in common; another scale has another shuffle."""
ROLES = ("rival", "third party")


def swap_pairs(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per probed verdict under another's rubric and its partner under the own rubric.

    Columns: those of `PAIRED`, `rubric_author`, `role` (a rival judges the same task, a third party
    does not), `own` and `other`, the stated probabilities, and `own_call` and `other_call`, which
    stated them. A verdict without a partner is out, so both sides have equal numbers.
    """
    probed = frame[frame["probe"].notna().to_numpy()]
    columns = [*PAIRED, "rubric_author", "probe", "probe_call_id"]
    swapped = probed["is_swap"].to_numpy(dtype=bool)
    other = probed.loc[swapped, columns].drop_duplicates([*PAIRED, "rubric_author"])
    own = probed.loc[~swapped, [*PAIRED, "probe", "probe_call_id"]].drop_duplicates(PAIRED)
    pairs = other.rename(columns={"probe": "other", "probe_call_id": "other_call"}).merge(
        own.rename(columns={"probe": "own", "probe_call_id": "own_call"}), on=PAIRED
    )
    panel = frame[["task", JUDGE]].drop_duplicates()
    judging = pd.MultiIndex.from_frame(panel)
    rival = pd.MultiIndex.from_frame(pairs[["task", "rubric_author"]]).isin(judging)
    return pairs.assign(role=np.where(rival, *ROLES))


def swap_sensitivity(frame: pd.DataFrame, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Expert probability under the own rubric minus that under another's, per judge and author.

    Columns: task, variant, judge, `rubric_author`, `role`, the paired difference (`mean`, `low`,
    `high` over `items`), `pairs` on each side, `own` and `other` (their means), and `unpaired`,
    the probed verdicts under that rubric that found no partner. A third party is the control.

    Args:
        frame: the samples.
        pairs: their `swap_pairs`, where these are at hand.
    """
    by = [*CELL, "rubric_author", "role"]
    pairs = swap_pairs(frame) if pairs is None else pairs
    rows = []
    asked = frame[frame["is_swap"].to_numpy(dtype=bool) & frame["probe"].notna().to_numpy()]
    probed = asked.groupby([*CELL, "rubric_author"], observed=True).size()
    for key, part in pairs.groupby(by, observed=True):
        group: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)
        items = part.groupby("evidence")[["own", "other"]].mean()
        found = _difference(part.assign(gap=part["own"] - part["other"]))
        rows.append(
            {
                **dict(zip(by, group, strict=True)),
                "mean": found.value,
                "low": found.low,
                "high": found.high,
                "items": found.n,
                "pairs": len(part),
                "own": float(items["own"].mean()),
                "other": float(items["other"].mean()),
                "unpaired": int(probed.loc[group[:-1]]) - len(part),
            }
        )
    columns = [*by, "mean", "low", "high", "items", "pairs", "own", "other", "unpaired"]
    return pd.DataFrame(rows, columns=columns)


def panel_swap(pairs: pd.DataFrame, role: str) -> Estimate:
    """The difference over all judges and authors in a role, each with equal weight on an item."""
    wanted = pairs[(pairs["role"] == role).to_numpy()]
    if wanted.empty:
        return undefined()
    gaps = wanted.assign(gap=wanted["own"] - wanted["other"])
    return _difference(gaps, [JUDGE, "rubric_author"])


def _difference(gaps: pd.DataFrame, sides: Sequence[str] = ()) -> Estimate:
    """The mean gap over items; sides have equal weight, and many draws are allowed for."""

    def by_item(of: pd.DataFrame) -> pd.Series:
        each = of.groupby(["evidence", *sides], observed=True)["gap"].mean()
        return each.groupby("evidence").mean()

    whole = by_item(gaps)
    without = left_out(gaps, [JUDGE], by_item, others=True).values()
    drawn = [one.reindex(whole.index).to_numpy(float) for one in without]
    return estimated(student, whole.to_numpy(float), drawn)
