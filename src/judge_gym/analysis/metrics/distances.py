"""How far judges lie apart on each item, by the distance that is tested.

The squared Jousselme distance, estimated without bias over distinct replicates, so that judges who
are alike come out at 0 on average, however few their replicates.
"""

from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.panels import panels
from judge_gym.analysis.stats.rubric_draws import DRAWS_FOR_BLOCKS


def item_distances(
    frame: pd.DataFrame, by: Sequence[str], without: int | None = None
) -> pd.DataFrame:
    """The distance of every two judges on every item, under one rubric or each under its own.

    Args:
        frame: a tidy frame; within a group, a judge's verdicts on an item are pooled, those under
            rivals' rubrics too.
        by: what a group is, such as task and variant.
        without: a draw of rubrics that groups with many are to lack.

    Returns:
        A row per group, pair of judges and item: by, judge, other, evidence, distance; not a
        number where a judge has fewer than two replicates with a score.
    """
    parts = []
    for panel in panels(frame.assign(is_swap=False), by):
        if without is not None:
            panel = panel.without(without)
        for place, (judge, other) in enumerate(combinations(panel.judges, 2)):
            named = {**panel.key, "judge": judge, "other": other}
            values = {"evidence": panel.evidence, "distance": panel.distances[:, place]}
            parts.append(pd.DataFrame(values).assign(**named))
    columns = [*by, "judge", "other", "evidence", "distance"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def distances_without_draws(frame: pd.DataFrame, by: Sequence[str]) -> list[pd.DataFrame]:
    """The same without each draw of rubrics in turn; nothing where draws are few."""
    draws = frame["rubric_draw"].unique()
    if len(draws) < DRAWS_FOR_BLOCKS:
        return []
    return [item_distances(frame, by, without=int(draw)) for draw in sorted(draws)]


def common_rubrics(frame: pd.DataFrame) -> pd.DataFrame:
    """The samples under a rubric that no judge of the panel wrote."""
    return frame[~frame["rubric_author"].isin(frame[JUDGE].unique())]


def per_item(distances: pd.DataFrame, by: Sequence[str] = ()) -> pd.Series:
    """The mean distance on each item, over pairs of judges and whatever `by` does not name."""
    known = distances.dropna(subset=["distance"])
    return known.groupby([*by, "evidence"], observed=True)["distance"].mean()
