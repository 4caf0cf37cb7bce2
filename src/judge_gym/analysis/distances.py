"""How far judges lie apart on each item, by the distance that is tested.

The squared Jousselme distance, estimated without bias over distinct replicates, so that judges who
are alike come out at 0 on average, however few their replicates.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from judge_gym.analysis.belief import Verdicts, squared_distance
from judge_gym.analysis.frames import JUDGE, once_per_call

PAIR = ["judge", "other"]


def item_distances(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The distance of every two judges on every item, under one rubric or each under its own.

    Args:
        frame: a tidy frame; within a group, a judge's verdicts on an item are pooled.
        by: what a group is, such as task and variant.

    Returns:
        A row per group, pair of judges and item: by, judge, other, evidence, distance; not a
        number where a judge has fewer than two replicates with a score.
    """
    parts = []
    for group, part in frame.groupby(list(by), observed=True):
        once = once_per_call(part, [JUDGE])
        item, items = pd.factorize(once["evidence"], sort=True)
        shown = once.groupby(["replicate", "flipped"], observed=True).ngroup().to_numpy()
        judges = sorted(once[JUDGE].unique())
        mine = {judge: np.flatnonzero(once[JUDGE] == judge) for judge in judges}
        mask = once["mask"].to_numpy()
        verdicts = {judge: Verdicts(item[at], shown[at], mask[at]) for judge, at in mine.items()}
        for judge, other in combinations(judges, 2):
            found = squared_distance(verdicts[judge], verdicts[other], items=len(items))
            both = np.intersect1d(item[mine[judge]], item[mine[other]])
            named = dict(zip(by, group if isinstance(group, tuple) else (group,), strict=True))
            columns = {**named, "judge": judge, "other": other}
            values = {"evidence": items[both], "distance": found[both]}
            parts.append(pd.DataFrame({**values, **columns}))
    columns = [*by, *PAIR, "evidence", "distance"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def common_rubrics(frame: pd.DataFrame) -> pd.DataFrame:
    """The samples under a rubric that no judge of the panel wrote."""
    return frame[~frame["rubric_author"].isin(frame[JUDGE].unique())]


def per_item(distances: pd.DataFrame, by: Sequence[str] = ()) -> pd.Series:
    """The mean distance on each item, over pairs of judges and whatever `by` does not name."""
    known = distances.dropna(subset=["distance"])
    return known.groupby([*by, "evidence"], observed=True)["distance"].mean()
