"""The distance of judges on each item, which hypotheses and checks are tested on.

It is the squared Jousselme distance, estimated without bias over distinct replicates, so that
identical judges have distance 0 on average, however few their replicates.
"""

from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.panels import panels
from judge_gym.analysis.stats.rubric_draws import MANY_DRAWS


def item_distances(
    frame: pd.DataFrame, by: Sequence[str], without: int | None = None
) -> pd.DataFrame:
    """Returns the distance of every two judges on every item: by, judge, other, evidence, distance.

    Within a group, a judge's verdicts on an item are pooled, swaps included. The distance is NaN
    if a judge has fewer than two scored replicates. A draw of rubrics can be left out of groups
    with many draws.
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
    """Returns `item_distances` without each draw of rubrics in turn; empty if draws are few."""
    draws = frame["rubric_draw"].unique()
    if len(draws) < MANY_DRAWS:
        return []
    return [item_distances(frame, by, without=int(draw)) for draw in sorted(draws)]


def common_rubrics(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the samples under a rubric that no judge of the panel wrote."""
    return frame[~frame["rubric_author"].isin(frame[JUDGE].unique())]


def per_item(distances: pd.DataFrame, by: Sequence[str] = ()) -> pd.Series:
    """Returns the mean distance on each item, over pairs of judges and everything not in `by`."""
    known = distances.dropna(subset=["distance"])
    return known.groupby([*by, "evidence"], observed=True)["distance"].mean()
