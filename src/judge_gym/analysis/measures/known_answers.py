"""Accuracy on known answers, and means over items of a panel and of its judges."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from judge_gym.analysis.endpoints import means_over_items, right_by_item
from judge_gym.analysis.frames import CELL, PANEL, cluster_codes
from judge_gym.analysis.measures import Summary, panel_measure
from judge_gym.analysis.stats.intervals import (
    SHARE,
    Estimate,
    Scale,
    estimate,
    undefined,
    without_each_draw,
)
from judge_gym.analysis.verdicts import Dataset, Verdicts

ValuesByItem = Callable[[pd.DataFrame], pd.DataFrame]
"""Computes the `value` of each configured judge on each item."""
ItemsByPanel = dict[Any, pd.DataFrame]


def ground_truth(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns how often each configured judge is right on items with a known answer.

    Columns: task, variant, judge, `measure`, mean, low, high, items. `right` is the share of
    verdicts on the known stage.
    """
    found = judge_means(frame, right_verdicts, SHARE)
    found.insert(len(CELL), "measure", "right")
    return found


def judge_means(frame: pd.DataFrame, values: ValuesByItem, scale: Scale) -> pd.DataFrame:
    """Averages values over the items of each configured judge: mean, low, high, items."""
    without = without_each_draw(frame, CELL, values).values()
    means = means_over_items(values(frame), CELL, "value", scale, without)
    return means.sort_values(CELL, kind="stable", ignore_index=True)


def right_verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """Computes the share of right verdicts by item; pairs of responses have their own rules."""
    return right_by_item(own_singles(frame), CELL)


def own_singles(frame: pd.DataFrame) -> pd.DataFrame:
    """Selects verdicts on single items under the rubric of the design."""
    return frame[~(frame["is_swap"] | frame["pair"]).to_numpy(dtype=bool)]


@panel_measure("accuracy", order=4)
def _summary(data: Dataset, panel: Verdicts) -> Summary:
    found = panel_mean(data.compute(_right_without_each_draw), panel, SHARE)
    if not found.n:
        return Summary(found, "no known answer")
    return Summary(found, "share of verdicts on the known stage")


def _right_without_each_draw(frame: pd.DataFrame) -> list[ItemsByPanel]:
    return values_without_each_draw(frame, right_verdicts)


def values_without_each_draw(frame: pd.DataFrame, values: ValuesByItem) -> list[ItemsByPanel]:
    """Averages values over the judges of each panel: of all samples, then without each draw."""

    def by_panel(samples: pd.DataFrame) -> ItemsByPanel:
        by_item = values(samples).groupby([*PANEL, "evidence", "cluster"], observed=True)
        return dict(list(by_item["value"].mean().reset_index().groupby(PANEL, observed=True)))

    return [by_panel(frame), *without_each_draw(frame, CELL, by_panel).values()]


def panel_mean(parts: Sequence[ItemsByPanel], panel: Verdicts, scale: Scale) -> Estimate:
    """Averages the values of `values_without_each_draw` over the items of a panel."""
    key, (whole, *without) = tuple(panel.key.values()), parts
    if key not in whole or whole[key]["value"].isna().all():
        return undefined()
    items = whole[key]
    drawn = [
        part[key].set_index("evidence")["value"].reindex(items["evidence"]).to_numpy(float)
        for part in without
        if key in part
    ]
    return estimate(
        items["value"].to_numpy(float), cluster_codes(items), scale=scale, without=drawn
    )
