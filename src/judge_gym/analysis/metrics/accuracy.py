"""Accuracy on known answers, and the error of mean stages against reference values from 0 to 1.

A reference value, such as an index of a country, is about all items together: it is compared with
the mean over items, not with each item.
"""

from typing import Any

import pandas as pd

from judge_gym.analysis.endpoints import grouped, means_over_items, positions, right_by_item
from judge_gym.analysis.frames import CELL, ITEM, PANEL, cluster_codes
from judge_gym.analysis.metrics import Summary, metric
from judge_gym.analysis.panels import Dataset, Panel
from judge_gym.analysis.stats.intervals import (
    DISTANCE,
    SHARE,
    Scale,
    estimate,
    undefined,
    without_each_draw,
)

SCALES: dict[str, Scale] = {
    "right": SHARE,
    "error": DISTANCE,
}
"""The measures, with how each is estimated over items; an error by the mean stage."""


def ground_truth(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns how each configured judge does on items with a known answer or a reference value.

    Columns: task, variant, judge, `measure`, mean, low, high, items. `right` is the share of
    verdicts on the known stage; `error` the mean normalised stage minus the reference value.
    """
    without = without_each_draw(frame, CELL, values_by_cell).values()
    parts = [
        means_over_items(
            cells, CELL, "value", SCALES[measure], [one[measure] for one in without]
        ).assign(measure=measure)
        for measure, cells in values_by_cell(frame).items()
    ]
    found = pd.concat([part for part in parts if len(part)] or parts[:1])
    references = frame.groupby(CELL, observed=True)["reference"].first()
    wrong = (found["measure"] == "error").to_numpy()
    away = references.reindex(pd.MultiIndex.from_frame(found.loc[wrong, CELL])).to_numpy()
    found.loc[wrong, ["mean", "low", "high"]] -= away[:, None]
    columns = [*CELL, "measure", "mean", "low", "high", "items"]
    columns += ["scope"] if "scope" in found else []
    return found[columns].sort_values(CELL, kind="stable", ignore_index=True)


def values_by_cell(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns the value of each cell by measure; pairs of responses have their own rules.

    Errors are computed from means over items, so that the value of a cell is its stage.
    """
    own = frame[~(frame["is_swap"] | frame["pair"]).to_numpy(dtype=bool)]
    known = own["reference"].between(0, 1) & (own["rubric_kind"] != "nominal")
    groups = grouped(own, [*ITEM, "reference"], known & (own["status"] == "scored"))
    stage = groups.mean(positions(groups.rows))
    return {"right": right_by_item(own, CELL), "error": groups.names.assign(value=stage)}


@metric("accuracy", order=4)
def _accuracy(data: Dataset, panel: Panel) -> Summary:
    return _summary(data, panel, "right", "share of verdicts on the known stage", "no known answer")


@metric("reference error", order=4)
def _reference_error(data: Dataset, panel: Panel) -> Summary:
    note = "mean stage of all judges minus the reference value"
    found = _summary(data, panel, "error", note, "no reference value")
    at = (data.frame["task"] == panel.key["task"]) & data.frame["reference"].notna()
    if not at.any():
        return found
    mean = found.estimate
    away = float(data.frame.loc[at, "reference"].iloc[0])
    error = mean._replace(value=mean.value - away, low=mean.low - away, high=mean.high - away)
    return found._replace(estimate=error)


def _summary(data: Dataset, panel: Panel, measure: str, note: str, lacking: str) -> Summary:
    """Summarises a measure over the items of a panel."""
    whole, *without = data.compute(_with_each_draw_left_out)
    key = tuple(panel.key.values())
    if key not in whole or whole[key][measure].isna().all():
        return Summary(undefined(), lacking)
    items = whole[key]
    drawn = [
        part[key].set_index("evidence")[measure].reindex(items["evidence"]).to_numpy(float)
        for part in without
        if key in part
    ]
    values = items[measure].to_numpy(float)
    return Summary(
        estimate(values, cluster_codes(items), scale=SCALES[measure], without=drawn), note
    )


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
