"""Accuracy against known answers, and against reference values from 0 to 1."""

from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import grouped, means_over_items, positions, right_by_item
from judge_gym.analysis.frames import CELL, ITEM, PANEL, cluster_codes
from judge_gym.analysis.metrics import Summary, metric
from judge_gym.analysis.panels import Dataset, Panel
from judge_gym.analysis.stats.intervals import (
    Estimator,
    bounded,
    estimate_over_items,
    skewed,
    undefined,
    without_each_draw,
)

ESTIMATES: dict[str, Estimator] = {
    "right": bounded,
    "absolute_error": skewed,
    "within_half_stage": bounded,
}
"""The measures, with how each is estimated over items."""


def ground_truth(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns how accurate each configured judge is on items with a known answer or reference.

    Columns: task, variant, judge, `measure`, mean, low, high, items. `right` is the share of
    verdicts on the known stage. Against a reference value, `absolute_error` is that of the
    normalised expected stage, and `within_half_stage` the share of items that close to it.
    """
    without = without_each_draw(frame, CELL, values_by_cell).values()
    parts = [
        means_over_items(
            cells, CELL, "value", ESTIMATES[measure], [one[measure] for one in without]
        ).assign(measure=measure)
        for measure, cells in values_by_cell(frame).items()
    ]
    found = pd.concat([part for part in parts if len(part)] or parts[:1])
    columns = [*CELL, "measure", "mean", "low", "high", "items"]
    columns += ["scope"] if "scope" in found else []
    return found[columns].sort_values(CELL, kind="stable", ignore_index=True)


def values_by_cell(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns the value of each cell by measure; pairs of responses have their own rules."""
    own = frame[~(frame["is_swap"] | frame["pair"]).to_numpy(dtype=bool)]
    known = own["reference"].between(0, 1) & (own["rubric_kind"] != "nominal")
    groups = grouped(own, [*ITEM, "reference"], known & (own["status"] == "scored"))
    error = np.abs(groups.mean(positions(groups.rows)) - groups.names["reference"].to_numpy())
    half = groups.mean(0.5 / (groups.rows["n_stages"].to_numpy() - 1))
    # A reference on the edge of a stage agrees with it, whatever rounding does to the edge.
    near = (error <= half + 1e-12).astype(float)
    return {
        "right": right_by_item(own, CELL),
        "absolute_error": groups.names.assign(value=error),
        "within_half_stage": groups.names.assign(value=near),
    }


@metric("accuracy", order=4)
def _summary(data: Dataset, panel: Panel) -> Summary:
    """Summarises the first measure that is known, with the others in the note."""
    whole, *without = data.compute(_with_each_draw_left_out)
    key = tuple(panel.key.values())
    if key not in whole:
        return Summary(undefined(), "no known answer or reference")
    items = whole[key]
    drawn = [
        part[key].set_index("evidence").reindex(items["evidence"])
        for part in without
        if key in part
    ]
    found = {
        measure: estimate_over_items(
            estimate,
            items[measure].to_numpy(float),
            [one[measure].to_numpy(float) for one in drawn],
            cluster_codes(items),
        )
        for measure, estimate in ESTIMATES.items()
        if items[measure].notna().any()
    }
    first, *others = found
    notes = [first, *(f"{name} {found[name].value:.3f}" for name in others)]
    return Summary(found[first], "; ".join(notes).replace("_", " "))


_ByPanel = dict[Any, pd.DataFrame]


def _with_each_draw_left_out(frame: pd.DataFrame) -> list[_ByPanel]:
    """Returns the values by panel and item, first of all samples, then without each draw."""
    return [_by_panel(frame), *without_each_draw(frame, CELL, _by_panel).values()]


def _by_panel(frame: pd.DataFrame) -> _ByPanel:
    """Returns each item's value on each measure by panel, with equal weight of judges."""
    means = [
        cells.groupby([*PANEL, "evidence", "cluster"], observed=True)["value"]
        .mean()
        .rename(measure)
        for measure, cells in values_by_cell(frame).items()
    ]
    items = pd.concat(means, axis=1).reset_index()
    return dict(list(items.groupby(PANEL, observed=True)))
