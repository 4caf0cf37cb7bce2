"""Swap sensitivity: whether a judge states more expert agreement under its own rubric."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import CELL, JUDGE, PANEL, cluster_codes, first_rows
from judge_gym.analysis.measures import Summary, of_panels
from judge_gym.analysis.stats.intervals import (
    DIFFERENCE,
    Estimate,
    estimate,
    undefined,
    without_each_draw,
)
from judge_gym.analysis.verdicts import Dataset, Samples, Verdicts

PAIRED = [*CELL, "evidence", "cluster", "replicate", "series", "flipped", "n_stages", "rubric_draw"]
"""The columns that both sides of a pair share; another scale has another shuffle."""
READ = ["evidence", "cluster", "rubric_draw", "own", "other", "gap"]
"""The columns of pairs from which differences are computed."""
ROLES = ("rival", "third party")


def swap_pairs(frame: pd.DataFrame) -> pd.DataFrame:
    """Pairs each probed verdict under another author's rubric with its own-rubric counterpart.

    Columns: those of `PAIRED`, `rubric_author`, `role` (a rival judges the same task, a third party
    does not), `own` and `other`, the stated probabilities, their `gap`, and their calls, `own_call`
    and `other_call`. Verdicts without a counterpart are left out, so both sides have equal numbers.
    """
    probed = frame[frame["probe"].notna().to_numpy()]
    columns = [*PAIRED, "rubric_author", "probe", "probe_call_id"]
    swapped = probed["is_swap"].to_numpy(dtype=bool)
    other = probed.loc[swapped, columns].drop_duplicates([*PAIRED, "rubric_author"])
    own_probes = probed.loc[~swapped, [*PAIRED, "probe", "probe_call_id"]].drop_duplicates(PAIRED)
    pairs = other.rename(columns={"probe": "other", "probe_call_id": "other_call"}).merge(
        own_probes.rename(columns={"probe": "own", "probe_call_id": "own_call"}), on=PAIRED
    )
    panel = frame[["task", JUDGE]].drop_duplicates()
    judging = pd.MultiIndex.from_frame(panel)
    rival = pd.MultiIndex.from_frame(pairs[["task", "rubric_author"]]).isin(judging)
    return pairs.assign(role=np.where(rival, *ROLES), gap=pairs["own"] - pairs["other"])


def swap_sensitivity(samples: Samples) -> pd.DataFrame:
    """Returns the stated probability under the own rubric minus that under another author's.

    Columns: task, variant, judge, `rubric_author`, `role`, the paired difference (`mean`, `low`,
    `high` over `items`), `pairs` on each side, `own` and `other` (their means), and `unpaired`,
    the probed verdicts under that rubric without a counterpart. A third party is the control.
    """
    by = [*CELL, "rubric_author", "role"]
    data = Dataset.of(samples)
    frame, pairs = data.frame, data.compute(swap_pairs)
    rows = []
    swapped_probes = frame[
        frame["is_swap"].to_numpy(dtype=bool) & frame["probe"].notna().to_numpy()
    ]
    probed = swapped_probes.groupby([*CELL, "rubric_author"], observed=True).size()
    for key, part in pairs[[*by, *READ]].groupby(by, observed=True):
        group: tuple[Any, ...] = key
        own_mean, other = part.groupby("evidence")[["own", "other"]].mean().mean()
        rows.append(
            {
                **dict(zip(by, group, strict=True)),
                **_difference(part).named("mean", "low", "high", "items"),
                "pairs": len(part),
                "own": float(own_mean),
                "other": float(other),
                "unpaired": int(probed.loc[group[:-1]]) - len(part),
            }
        )
    columns = [*by, "mean", "low", "high", "items", "pairs", "own", "other", "unpaired"]
    return pd.DataFrame(rows, columns=columns)


def _summary(data: Dataset, panel: Verdicts) -> Summary:
    pairs = data.derive(_pairs_by_panel).get(tuple(panel.key.values()))
    if pairs is None:
        return Summary(undefined(), "no probed verdict under another author's rubric")
    rival, control = (_panel_difference(pairs, role) for role in ROLES)
    third = f"; own minus a third party's {control.value:.3f}" if control.n else ""
    return Summary(rival, f"own minus rival rubric, {len(pairs)} pairs{third}")


def _pairs_by_panel(data: Dataset) -> dict[Any, pd.DataFrame]:
    return dict(list(data.compute(swap_pairs).groupby(PANEL, observed=True)))


def _panel_difference(pairs: pd.DataFrame, role: str) -> Estimate:
    """Returns the difference over all judges and authors in a role, with equal weight per item."""
    selected = pairs[(pairs["role"] == role).to_numpy()]
    if selected.empty:
        return undefined()
    return _difference(selected, [JUDGE, "rubric_author"])


def _difference(gaps: pd.DataFrame, sides: Sequence[str] = ()) -> Estimate:
    """Returns the mean gap over items, with equal weight of sides and an interval over draws."""

    def by_item(of: pd.DataFrame) -> pd.Series:
        each = of.groupby(["evidence", *sides], observed=True)["gap"].mean()
        return each.groupby("evidence").mean() if sides else each

    gap_by_item = by_item(gaps)
    without = without_each_draw(gaps, [JUDGE], by_item, keep_others=True).values()
    draw_gaps = [gap.reindex(gap_by_item.index).to_numpy(float) for gap in without]
    items = first_rows(pd.factorize(gaps["evidence"], sort=True)[0])
    clusters = cluster_codes(gaps[["evidence", "cluster"]].iloc[items])
    return estimate(gap_by_item.to_numpy(float), clusters, scale=DIFFERENCE, without=draw_gaps)


SWAP_SENSITIVITY = of_panels(3, "swap_sensitivity", _summary)
