"""What judges chose: stages, how answers ended, how wide a verdict is and what it leaves open."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from judge_gym.analysis.figures.page import (
    BLUE,
    GREY,
    INK,
    MAX_ROWS,
    ORANGE,
    OUTLINE,
    PINK,
    RED,
    SHARE,
    SKY,
    WIDTH,
    Figure,
    field,
    first,
    fitting,
    graded,
    in_panels,
    left_out,
    names,
    needed,
    ordered,
    panels,
    slanted,
    titled,
)
from judge_gym.analysis.frames import CELL, JUDGE
from judge_gym.records import STATUSES

SHAPES = ("abstain", "singleton", "adjacent", "non-adjacent", "broad")
"""What a verdict's set of stages looks like."""
_SHAPE_COLOURS = [GREY, BLUE, SKY, RED, ORANGE]
_OPEN = "datum.plausibility - datum.belief > 1e-9"
_STATUS_COLOURS = [BLUE, ORANGE, RED, PINK, GREY, INK]


def distribution_finding(distributions: pd.DataFrame) -> str:
    """Which stage most judges choose most often; of several panels, in how many it is one."""
    by = [name for name in ("task", "variant") if name in distributions]
    parts = [part for _, part in distributions.groupby(by, observed=True)] if by else []
    if len(parts) > 1:
        alike = sum(_modes(part).nunique() == 1 for part in parts)
        return f"All judges choose one stage most often in {alike} of {len(parts)} panels"
    modes = _modes(distributions)
    if len(modes) == 1:
        return f"{modes.index[0]} chooses stage {modes.iloc[0]} most often"
    counts = modes.value_counts().sort_index(kind="stable").sort_values(ascending=False)
    stage, most = counts.index[0], int(counts.iloc[0])
    if most == len(modes):
        return f"All {most} judges choose stage {stage} most often"
    others = ", ".join(f"{n} stage {other}" for other, n in counts.iloc[1:].items())
    return f"{most} of {len(modes)} judges choose stage {stage} most often, {others}"


def _modes(distributions: pd.DataFrame) -> pd.Series:
    """The stage that each judge chooses most often."""
    mass = distributions.groupby([JUDGE, "stage"], observed=True)["share"].sum()
    return mass.unstack(fill_value=0).idxmax(axis=1)


def distribution_figure(distributions: pd.DataFrame, title: str | None = None) -> Figure | None:
    """The share of each stage, a bar per judge, a panel per task and variant.

    Args:
        distributions: columns task, variant, judge.model, stage, share.
        title: its heading; the finding, where it is None.
    """
    data = panels(needed(distributions, [*CELL, "stage", "share"], known=["share"]))
    if data.empty:
        return None
    shown, more = _limited(data)
    bars = (
        alt.Chart(shown)
        .mark_bar(**OUTLINE)
        .encode(
            x=alt.X(
                "share:Q",
                title="share of scored verdicts",
                axis=alt.Axis(format="%", tickCount=5),
                scale=SHARE,
            ),
            y=names(JUDGE, shown[JUDGE]),
            color=ordered("stage", "stage", range(1, int(data["stage"].max()) + 1)),
            order=alt.Order("stage:Q"),
            tooltip=[f"{field(JUDGE)}:N", "stage:O", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=WIDTH, height=alt.Step(22))
    )
    return in_panels(bars, shown, title or distribution_finding(data), more)


def status_finding(rates: pd.DataFrame) -> str:
    """How many verdicts carry no score."""
    weights = rates["n"] if "n" in rates else pd.Series(1.0, index=rates.index)
    scored = float((rates["share_scored"] * weights).sum() / weights.sum())
    return f"{1 - scored:.1%} of verdicts carry no score"


def status_figure(rates: pd.DataFrame, title: str | None = None) -> Figure | None:
    """How answers ended, a bar per judge.

    Args:
        rates: columns task, variant, judge.model and `share_` with each status; n where known.
        title: its heading; the finding, where it is None.
    """
    columns = [f"share_{status}" for status in STATUSES]
    data = needed(rates, [*CELL, *columns], known=columns)
    if data.empty:
        return None
    long = data.melt(CELL, columns, var_name="status", value_name="share")
    long["status"] = long["status"].str.removeprefix("share_")
    long["rank"] = long["status"].map(STATUSES.index)
    shown, more = _limited(panels(long))
    bars = (
        alt.Chart(shown[shown["share"] > 0])  # the outline of nothing would pass for a share
        .mark_bar(**OUTLINE)
        .encode(
            x=alt.X(
                "share:Q",
                title="share of verdicts",
                axis=alt.Axis(format="%", tickCount=5),
                scale=SHARE,
            ),
            y=names(JUDGE, shown[JUDGE]),
            color=alt.Color(
                "status:N",
                title=None,
                scale=alt.Scale(domain=list(STATUSES), range=_STATUS_COLOURS),
                legend=alt.Legend(orient="top"),
            ),
            order=alt.Order("rank:Q"),
        )
        .properties(width=WIDTH, height=alt.Step(22))
    )
    return in_panels(bars, shown, title or status_finding(rates), more)


def heat_finding(cells: pd.DataFrame) -> str:
    """On which item judges lie farthest apart; with one judge, which item is highest."""
    table = cells.groupby(["task", "item", JUDGE])["mean"].mean().unstack()
    spread = table.max(axis=1) - table.min(axis=1)
    if table.shape[1] == 1 or not (spread > 0).any():
        means = table.mean(axis=1).sort_values(kind="stable")
        return f"“{means.index[-1][1]}” stands highest, at {means.iloc[-1]:.2f}"
    widest = int(np.nanargmax(spread.to_numpy()))
    row, (_, item) = table.iloc[widest], table.index[widest]
    return (
        f"Judges lie farthest apart on “{item}”: "
        f"{row.min():.2f} ({row.idxmin()}) to {row.max():.2f} ({row.idxmax()})"
    )


def heat_figure(cells: pd.DataFrame, title: str | None = None) -> Figure | None:
    """The expected stage of each item by each judge, a panel per task, strongest items on top.

    Of many items those are shown on which judges lie farthest apart.

    Args:
        cells: columns task, item, judge.model, mean (0 to 1).
        title: its heading; the finding, where it is None.
    """
    data = needed(cells, ["task", "item", JUDGE, "mean"], known=["mean"])
    if data.empty:
        return None
    shown, more = first(data, JUDGE, MAX_ROWS, "judges")
    rows = min(MAX_ROWS, int(shown.groupby("task")["item"].nunique().max()))
    judges = shown[JUDGE].nunique()
    step = max(13, min(28, 430 // judges))
    columns = 2 if judges * step < 150 else 1
    shown, fewer = first(shown, "task", fitting(16 * rows + 60, columns), "tasks")
    most = 34 if columns == 2 else 44
    parts = [
        _heat_panel(part, str(task), step, most) for task, part in shown.groupby("task", sort=False)
    ]
    notes = ["Grey: no score." if len(data) < _cells(data) else "", more, fewer]
    wrapped = alt.concat(*parts, columns=columns, spacing={"row": 24, "column": 24})
    return titled(wrapped, title or heat_finding(data), *notes)


def _cells(data: pd.DataFrame) -> int:
    """How many cells there are where every judge scored every item of a task."""
    return int((data.groupby("task")["item"].nunique() * data[JUDGE].nunique()).sum())


def _heat_panel(cells: pd.DataFrame, task: str, step: int, most: int) -> Any:
    by_item = cells.groupby("item")["mean"].agg(["mean", "max", "min"])
    spread = (by_item["max"] - by_item["min"]).sort_values(ascending=False, kind="stable")
    kept = by_item.loc[spread.index[:MAX_ROWS], "mean"]
    ranked = kept.sort_values(ascending=False, kind="stable").index.tolist()
    more = left_out(len(by_item), MAX_ROWS, "items (on which judges lie closer)")
    chart = alt.Chart(cells[cells["item"].isin(ranked)])
    rects = chart.mark_rect().encode(
        x=slanted(JUDGE, cells[JUDGE]),
        y=names("item", ranked, most=most, sort=ranked),
        color=graded("mean", "expected stage (0 first, 1 last)", 0, 1),
        tooltip=["item:N", f"{field(JUDGE)}:N", alt.Tooltip("mean:Q", format=".2f")],
    )
    heading = alt.TitleParams(
        [task, more] if more else task, fontSize=11, offset=6, limit=340, fontWeight="normal"
    )
    ground = {"fill": GREY, "fillOpacity": 0.25}
    return alt.layer(rects, view=ground, title=heading).properties(
        width=alt.Step(step), height=alt.Step(16)
    )


def geometry_finding(geometry: pd.DataFrame) -> str:
    """How wide verdicts are, on average over judges, tasks and variants."""
    cells = geometry.drop_duplicates(CELL).shape[0]
    mean = geometry.groupby("shape")["share"].sum() / cells
    one, apart = float(mean.get("singleton", 0.0)), float(mean.get("non-adjacent", 0.0))
    return f"{one:.0%} of verdicts name one stage; {apart:.0%} name stages that do not touch"


def geometry_figure(geometry: pd.DataFrame, title: str | None = None) -> Figure | None:
    """How wide verdicts are, and how sure judges are of each kind.

    Args:
        geometry: columns task, variant, judge.model, shape (of `SHAPES`), share, confidence.
        title: its heading; the finding, where it is None.
    """
    data = panels(needed(geometry, [*CELL, "shape", "share", "confidence"], known=["share"]))
    if data.empty:
        return None
    used = [shape for shape in SHAPES if (data["shape"] == shape).any()]
    shown, more = _limited(data, judges=MAX_ROWS // 4, step=10 * len(used))
    base = alt.Chart(shown).encode(
        y=names(JUDGE, shown[JUDGE]), yOffset=alt.YOffset("shape:N", scale=alt.Scale(domain=used))
    )
    # The outline of a bar of no length would pass for a share.
    bars = (
        base.transform_filter("datum.share > 0")
        .mark_bar(**OUTLINE)
        .encode(
            x=alt.X("share:Q", title="share; confidence", axis=alt.Axis(tickCount=5), scale=SHARE),
            color=alt.Color(
                "shape:N",
                title=None,
                sort=used,
                scale=alt.Scale(domain=list(SHAPES), range=_SHAPE_COLOURS),
                legend=alt.Legend(orient="top", values=used),
            ),
        )
    )
    ticks = (
        base.transform_filter("isValid(datum.confidence)")
        .mark_point(shape="diamond", size=36, fill=INK, stroke=INK, strokeWidth=0)
        .encode(x="confidence:Q")
    )
    layered = alt.layer(bars, ticks).properties(width=WIDTH, height=alt.Step(9))
    note = "Bars: share of verdicts. Diamonds: mean stated confidence in verdicts of that kind."
    return in_panels(layered, shown, title or geometry_finding(data), note, more)


def belief_finding(beliefs: pd.DataFrame) -> str:
    """Which judge leaves most open."""
    gap = (beliefs["plausibility"] - beliefs["belief"]).groupby(beliefs[JUDGE]).mean()
    if not (gap > 1e-9).any():
        return "No verdict leaves anything open: belief and plausibility are the same"
    if len(gap) == 1:
        return f"{gap.index[0]} leaves {gap.iloc[0]:.2f} open between belief and plausibility"
    return (
        f"{gap.idxmax()} leaves most open: plausibility is {gap.max():.2f} above belief on average "
        f"({gap.idxmin()}: {gap.min():.2f})"
    )


def belief_figure(beliefs: pd.DataFrame, title: str | None = None) -> Figure | None:
    """From belief to plausibility, a bar per judge and stage, a panel per task and variant.

    Args:
        beliefs: columns task, variant, judge.model, stage, belief, plausibility, pignistic.
        title: its heading; the finding, where it is None.
    """
    values = ["belief", "plausibility", "pignistic"]
    data = panels(needed(beliefs, [*CELL, "stage", *values], known=values))
    if data.empty:
        return None
    stages = range(1, int(data["stage"].max()) + 1)
    shown, more = _limited(data, judges=MAX_ROWS // 4, step=10 * len(stages))
    base = alt.Chart(shown).encode(
        y=names(JUDGE, shown[JUDGE]),
        yOffset=alt.YOffset("stage:O", scale=alt.Scale(domain=list(stages))),
    )
    bars = base.mark_bar(**OUTLINE).encode(
        x=alt.X("belief:Q", title="belief to plausibility", scale=SHARE),
        x2="plausibility:Q",
        color=ordered("stage", "stage", stages),
    )
    ticks = (
        base.transform_filter(_OPEN)
        .mark_point(shape="M0,-1V1", size=40, strokeWidth=2, stroke=INK)
        .encode(x="pignistic:Q")
    )
    dots = (  # a bar of no length has no colour to tell the stage by
        base.transform_filter(f"!({_OPEN})")
        .mark_circle(size=40, opacity=1, **OUTLINE)
        .encode(x="pignistic:Q", color=ordered("stage", "stage", stages))
    )
    layered = alt.layer(bars, ticks, dots).properties(width=WIDTH, height=alt.Step(9))
    note = (
        "Bars: from what verdicts commit to a stage to what they do not rule out; strokes: "
        "pignistic share. Dots: nothing is left open."
    )
    return in_panels(layered, shown, title or belief_finding(data), note, more)


def _limited(
    data: pd.DataFrame, *, judges: int = MAX_ROWS, step: float = 22
) -> tuple[pd.DataFrame, str]:
    """As many judges and panels as a page can bear, and what is left out."""
    shown, more = first(data, JUDGE, judges, "judges")
    shown, fewer = first(shown, "panel", fitting(step * shown[JUDGE].nunique()), "panels")
    return shown, f"{more} {fewer}".strip()
