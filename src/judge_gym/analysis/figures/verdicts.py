"""Verdicts: stages, outcomes and shapes."""

from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import (
    BLUE,
    GREY,
    INK,
    MAX_ROWS,
    ORANGE,
    OUTLINE,
    RED,
    SHARE,
    SKY,
    alt,
)
from judge_gym.analysis.frames import CELL, JUDGE
from judge_gym.records.numbers import percent

SHAPES = ("abstain", "singleton", "adjacent", "non-adjacent", "broad")
_SHAPE_COLOURS = [GREY, BLUE, SKY, RED, ORANGE]


def _distribution_finding(data: pd.DataFrame) -> str:
    """States which stage judges choose most often, or in how many panels they agree on it."""
    parts = [part for _, part in data.groupby("panel", observed=True)]
    if len(parts) > 1:
        agreeing = sum(_modes(part).nunique() == 1 for part in parts)
        return f"All judges choose the same stage most often in {agreeing} of {len(parts)} panels"
    modes = _modes(data)
    if len(modes) == 1:
        return f"{modes.index[0]} chooses stage {modes.iloc[0]} most often"
    counts = modes.value_counts().sort_index(kind="stable").sort_values(ascending=False)
    stage, most = counts.index[0], int(counts.iloc[0])
    if most == len(modes):
        return f"All {most} judges choose stage {stage} most often"
    others = ", ".join(f"{n} stage {other}" for other, n in counts.iloc[1:].items())
    return f"{most} of {len(modes)} judges choose stage {stage} most often, {others}"


def _modes(distributions: pd.DataFrame) -> pd.Series:
    """Returns the stage that each judge chooses most often."""
    mass = distributions.groupby([JUDGE, "stage"], observed=True)["share"].sum()
    return mass.unstack(fill_value=0).idxmax(axis=1)


@drawing.figure([*CELL, "stage", "share"], known=["share"], finding=_distribution_finding)
def distribution_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows the share of each stage, a bar per judge, a panel per task and variant."""
    shown, more = drawing.fitting_rows(data)
    stages = range(1, int(data["stage"].max()) + 1)
    bars = _share_bars(shown, "share of scored verdicts").encode(
        color=drawing.ordinal_colours("stage", "stage", stages),
        order=alt.Order("stage:Q"),
        tooltip=[
            alt.Tooltip(f"{drawing.field(JUDGE)}:N"),
            alt.Tooltip("stage:O"),
            alt.Tooltip("share:Q", format=".1%"),
        ],
    )
    return drawing.faceted(bars, "panel", list(shown["panel"])), [more]


def _share_bars(shown: pd.DataFrame, title: str) -> Any:
    """Returns stacked bars of shares, a row per judge."""
    axis = drawing.percent_axis(5)
    return (
        alt.Chart(shown[shown["share"] > 0])  # the outline of an empty bar would look like a share
        .mark_bar(**OUTLINE)
        .encode(
            x=alt.X("share:Q", title=title, axis=axis, scale=SHARE),
            y=drawing.row_names(JUDGE, shown[JUDGE]),
        )
        .properties(width=drawing.WIDTH, height=alt.Step(22))
    )


def _heat_finding(cells: pd.DataFrame) -> str:
    """States on which item judges disagree most; with one judge, which item is highest."""
    table = cells.groupby(["task", "item", JUDGE])["mean"].mean().unstack()
    spread = table.max(axis=1) - table.min(axis=1)
    if table.shape[1] == 1 or not (spread > 0).any():
        means = table.mean(axis=1).sort_values(kind="stable")
        return f"“{means.index[-1][1]}” has the highest expected stage, {means.iloc[-1]:.2f}"
    widest = int(np.nanargmax(spread.to_numpy()))
    row, (_, item) = table.iloc[widest], table.index[widest]
    return (
        f"Judges disagree most on “{item}”: "
        f"{row.min():.2f} ({row.idxmin()}) to {row.max():.2f} ({row.idxmax()})"
    )


@drawing.figure(["task", "item", JUDGE, "mean"], known=["mean"], finding=_heat_finding)
def heat_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows the expected stage of each item by each judge, a panel per task, highest on top.

    If there are many items, those on which judges disagree most are shown.
    """
    shown, more = drawing.first_values(data, JUDGE, MAX_ROWS, "judges")
    rows = min(MAX_ROWS, int(shown.groupby("task")["item"].nunique().max()))
    judges = shown[JUDGE].nunique()
    step = max(16, min(40, 520 // judges))
    columns = 2 if judges * step < 180 else 1
    limit = drawing.panel_limit(16 * rows + 60, columns)
    shown, fewer = drawing.first_values(shown, "task", limit, "tasks")
    most = 34 if columns == 2 else 44
    parts = [
        _heat_panel(part, str(task), step, most) for task, part in shown.groupby("task", sort=False)
    ]
    cells = int((data.groupby("task")["item"].nunique() * data[JUDGE].nunique()).sum())
    grid = alt.concat(*parts, columns=columns, spacing={"row": 24, "column": 24})
    return grid, ["Grey: no score." if len(data) < cells else "", more, fewer]


def _heat_panel(cells: pd.DataFrame, task: str, step: int, most: int) -> Any:
    by_item = cells.groupby("item")["mean"].agg(["mean", "max", "min"])
    spread = (by_item["max"] - by_item["min"]).sort_values(ascending=False, kind="stable")
    kept = by_item.loc[spread.index[:MAX_ROWS], "mean"]
    ranked = kept.sort_values(ascending=False, kind="stable").index.tolist()
    more = drawing.omitted(len(by_item), MAX_ROWS, "items (with less disagreement)")
    chart = alt.Chart(cells[cells["item"].isin(ranked)])
    rects = chart.mark_rect().encode(
        x=drawing.column_names(JUDGE, cells[JUDGE]),
        y=drawing.row_names("item", ranked, most=most, sort=ranked),
        color=drawing.gradient("mean", "expected stage (0 first, 1 last)", 0, 1),
        tooltip=[
            alt.Tooltip("item:N"),
            alt.Tooltip(f"{drawing.field(JUDGE)}:N"),
            alt.Tooltip("mean:Q", format=".2f"),
        ],
    )
    heading = alt.TitleParams(
        [task, more] if more else task,
        fontSize=drawing.SMALL,
        offset=6,
        limit=420,
        fontWeight="normal",
    )
    ground = {"fill": GREY, "fillOpacity": 0.25}
    return alt.layer(rects, view=ground, title=heading).properties(
        width=alt.Step(step), height=alt.Step(16)
    )


def _shape_finding(shapes: pd.DataFrame) -> str:
    """States the shares of single-stage and of non-adjacent verdicts."""
    counts = shapes["n"].fillna(shapes["share"])  # without numbers, all cells weigh the same
    share = counts.groupby(shapes["shape"]).sum() / counts.sum()
    one, apart = float(share.get("singleton", 0.0)), float(share.get("non-adjacent", 0.0))
    return (
        f"{percent(one)} of readable verdicts name one stage; {percent(apart)} name non-adjacent "
        "stages"
    )


@drawing.figure(
    [*CELL, "shape", "share", "confidence"],
    known=["share"],
    optional=["n"],
    finding=_shape_finding,
)
def shape_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows the shapes of verdicts, and the stated confidence in each."""
    used = [shape for shape in SHAPES if (data["shape"] == shape).any()]
    shown, more = drawing.fitting_rows(data, judges=MAX_ROWS // 4, step=10 * len(used))
    base = alt.Chart(shown).encode(
        y=drawing.row_names(JUDGE, shown[JUDGE]),
        yOffset=alt.YOffset("shape:N", scale=alt.Scale(domain=used)),
    )
    # The outline of an empty bar would look like a share.
    bars = (
        base.transform_filter("datum.share > 0")
        .mark_bar(**OUTLINE)
        .encode(
            x=alt.X("share:Q", title="share; confidence", axis=alt.Axis(tickCount=5), scale=SHARE),
            color=drawing.named_colours("shape", SHAPES, _SHAPE_COLOURS, values=used),
        )
    )
    ticks = (
        base.transform_filter("isValid(datum.confidence)")
        .mark_point(shape="diamond", size=36, fill=INK, stroke=INK, strokeWidth=0)
        .encode(x=alt.X("confidence:Q"))
    )
    layered = alt.layer(bars, ticks).properties(width=drawing.WIDTH, height=alt.Step(9))
    note = "Bars: share of verdicts. Diamonds: mean stated confidence in verdicts of that shape."
    return drawing.faceted(layered, "panel", list(shown["panel"])), [note, more]
