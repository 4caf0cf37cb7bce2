"""Verdicts: stages, outcomes, shapes, belief and plausibility, and stated expert agreement."""

from collections.abc import Iterable
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
from judge_gym.records import STATUSES

SHAPES = ("abstain", "singleton", "adjacent", "non-adjacent", "broad")
_SHAPE_COLOURS = [GREY, BLUE, SKY, RED, ORANGE]
_OPEN = "datum.plausibility - datum.belief > 1e-9"


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
    shown, more = _limited(data)
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
    axis = alt.Axis(format="%", tickCount=5)
    return (
        alt.Chart(shown[shown["share"] > 0])  # the outline of an empty bar would look like a share
        .mark_bar(**OUTLINE)
        .encode(
            x=alt.X("share:Q", title=title, axis=axis, scale=SHARE),
            y=drawing.row_names(JUDGE, shown[JUDGE]),
        )
        .properties(width=drawing.WIDTH, height=alt.Step(22))
    )


_STATUS_SHARES = [f"share_{status}" for status in STATUSES]


def _status_finding(rates: pd.DataFrame) -> str:
    """States the share of verdicts without a score."""
    weights = rates["n"].fillna(1.0)
    scored = float((rates["share_scored"] * weights).sum() / weights.sum())
    return f"{1 - scored:.1%} of verdicts have no score"


@drawing.figure(
    [*CELL, *_STATUS_SHARES], known=_STATUS_SHARES, optional=["n"], finding=_status_finding
)
def status_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows response outcomes, a bar per judge."""
    long = data.melt([*CELL, "panel"], _STATUS_SHARES, var_name="status", value_name="share")
    long["status"] = long["status"].str.removeprefix("share_")
    long["rank"] = long["status"].map(STATUSES.index)
    shown, more = _limited(long)
    bars = _share_bars(shown, "share of verdicts").encode(
        color=drawing.named_colours("status", STATUSES, drawing.STATUS_GREYS),
        order=alt.Order("rank:Q"),
    )
    return drawing.faceted(bars, "panel", list(shown["panel"])), [more]


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
    return f"{one:.0%} of readable verdicts name one stage; {apart:.0%} name non-adjacent stages"


@drawing.figure(
    [*CELL, "shape", "share", "confidence"],
    known=["share"],
    optional=["n"],
    finding=_shape_finding,
)
def shape_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows the shapes of verdicts, and the stated confidence in each."""
    used = [shape for shape in SHAPES if (data["shape"] == shape).any()]
    shown, more = _limited(data, judges=MAX_ROWS // 4, step=10 * len(used))
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


def _belief_finding(beliefs: pd.DataFrame) -> str:
    """States which judge is the least decisive."""
    gap = (beliefs["plausibility"] - beliefs["belief"]).groupby(beliefs[JUDGE]).mean()
    if not (gap > 1e-9).any():
        return "All verdicts name a single stage: belief equals plausibility"
    if len(gap) == 1:
        return f"{gap.index[0]}: plausibility exceeds belief by {gap.iloc[0]:.2f} on average"
    return (
        f"{gap.idxmax()} is the least decisive: plausibility exceeds belief by {gap.max():.2f} on "
        f"average ({gap.idxmin()}: {gap.min():.2f})"
    )


_BELIEFS = ["belief", "plausibility", "pignistic"]


@drawing.figure([*CELL, "stage", *_BELIEFS], known=_BELIEFS, finding=_belief_finding)
def belief_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows the range from belief to plausibility per judge and stage, by task and variant."""
    stages = range(1, int(data["stage"].max()) + 1)
    shown, more = _limited(data, judges=MAX_ROWS // 4, step=10 * len(stages))
    base = alt.Chart(shown).encode(
        y=drawing.row_names(JUDGE, shown[JUDGE]),
        yOffset=alt.YOffset("stage:O", scale=alt.Scale(domain=list(stages))),
    )
    colours = drawing.ordinal_colours("stage", "stage", stages)
    bars = base.mark_bar(**OUTLINE).encode(
        x=alt.X("belief:Q", title="belief to plausibility", scale=SHARE),
        x2=alt.X2("plausibility:Q"),
        color=colours,
    )
    ticks = (
        base.transform_filter(_OPEN)
        .mark_point(shape=drawing.BAR_SHAPE, size=40, strokeWidth=2, stroke=INK)
        .encode(x=alt.X("pignistic:Q"))
    )
    dots = (  # a bar of no length shows no colour
        base.transform_filter(f"!({_OPEN})")
        .mark_circle(size=40, opacity=1, **OUTLINE)
        .encode(x=alt.X("pignistic:Q"), color=colours)
    )
    layered = alt.layer(bars, ticks, dots).properties(width=drawing.WIDTH, height=alt.Step(9))
    note = (
        "Bars: from the share of verdicts that name only this stage (belief) to the share that "
        "name it at all (plausibility); strokes: pignistic probability, which divides a verdict "
        "equally among its stages. Dots: belief equals plausibility."
    )
    return drawing.faceted(layered, "panel", list(shown["panel"])), [note, more]


def _limited(
    data: pd.DataFrame, *, judges: int = MAX_ROWS, step: float = 22
) -> tuple[pd.DataFrame, str]:
    """Returns as many judges and panels as a figure has room for, and a note on the others."""
    shown, more = drawing.first_values(data, JUDGE, judges, "judges")
    limit = drawing.panel_limit(step * shown[JUDGE].nunique())
    shown, fewer = drawing.first_values(shown, "panel", limit, "panels")
    return shown, f"{more} {fewer}".strip()


_MAX_RIVALS = 4
_USED = ("own", "rival's", "third party's", "given")
_STATED = "stated expert agreement"
_EXPLAINED = "Stated: the probability that two of three experts would agree."


def _probe_finding(probes: pd.DataFrame) -> str:
    """States the median stated agreement by the rubric's author."""
    whose = {"own": "their own rubric", "given": "a given rubric"}
    medians = probes.groupby("rubric used")["probe"].median()
    parts = [
        f"{medians[used]:.2f} under {whose.get(used, f'a {used} rubric')}"
        for used in _USED
        if used in medians
    ]
    return f"Median stated expert agreement: {', '.join(parts)}"


@drawing.figure(["task", JUDGE, "rubric used", "probe"], known=["probe"], finding=_probe_finding)
def probe_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows the distribution of stated agreement; rubrics used are own, rival's, and so on."""
    # Quantiles are computed here, because a picture has no room for a million answers.
    marks = {"low": 0.05, "box": 0.25, "median": 0.5, "lid": 0.75, "high": 0.95}
    spread = data.groupby(["task", JUDGE, "rubric used"], sort=False)["probe"]
    five = pd.DataFrame({name: spread.quantile(at) for name, at in marks.items()}).reset_index()
    shown, more = drawing.first_values(five, JUDGE, MAX_ROWS // 2, "judges")
    height = 15 * shown["rubric used"].nunique() * shown[JUDGE].nunique()
    shown, fewer = drawing.first_values(shown, "task", drawing.panel_limit(height), "tasks")
    used = [name for name in _USED if (shown["rubric used"] == name).any()]
    base = alt.Chart(shown).encode(
        y=drawing.row_names(JUDGE, shown[JUDGE]),
        yOffset=alt.YOffset("rubric used:N", sort=used, scale=alt.Scale(paddingOuter=0.15)),
    )
    rules = base.mark_rule(opacity=0.7).encode(
        x=alt.X("low:Q", title=_STATED, scale=SHARE), x2=alt.X2("high:Q")
    )
    colours = [BLUE, drawing.ORANGE, drawing.SKY, drawing.PINK]
    boxes = base.mark_bar(size=9, **drawing.OUTLINE).encode(
        x=alt.X("box:Q"),
        x2=alt.X2("lid:Q"),
        color=drawing.named_colours("rubric used", used, colours, title="rubric used"),
    )
    medians = base.mark_tick(thickness=2, size=13).encode(x=alt.X("median:Q"))
    chart = alt.layer(rules, boxes, medians).properties(width=drawing.WIDTH, height=alt.Step(15))
    note = f"{_EXPLAINED} Strokes: medians; bars: the middle half; lines: 90 % of answers."
    return drawing.faceted(chart, "task", list(shown["task"])), [note, more, fewer]


def _reliability_finding(curve: pd.DataFrame) -> str:
    """States how far stated agreement is from the agreement found in other verdicts."""
    known = curve.dropna(subset=["stated", "reference", "n"])
    n = known["n"].sum()
    stated, found = (
        float((known[name] * known["n"]).sum() / n) for name in ("stated", "reference")
    )
    return f"Judges state {stated:.2f} agreement on average, {found:.2f} is found"


@drawing.figure(
    [JUDGE, "stated", "reference", "low", "high", "n"],
    known=["stated", "reference"],
    finding=_reliability_finding,
    by_judge=True,
)
def reliability_figure(data: pd.DataFrame, judges: Iterable[str]) -> drawing.Drawn:
    """Shows found against stated agreement, a panel per judge; the line is perfect calibration."""
    shown, more = drawing.first_values(data, JUDGE, drawing.MAX_PANELS, "judges")
    most = int(shown["n"].max())
    sizes = sorted({max(1, most // 10), max(1, most // 2), most})
    ends = pd.DataFrame({"stated": [0.0, 1.0], "reference": [0.0, 1.0]})
    x = alt.X("stated:Q", title="stated", scale=SHARE, axis=alt.Axis(tickCount=5))
    y = alt.Y("reference:Q", title="found", scale=SHARE, axis=alt.Axis(tickCount=5))
    diagonal = alt.Chart(ends).mark_line(color=INK, strokeDash=[4, 3], opacity=0.6).encode(x=x, y=y)
    # Without data of its own, or every panel would show all judges.
    base = alt.Chart().encode(x=x)
    colours = drawing.by_judge(JUDGE, shown[JUDGE], judges)
    points = base.mark_point(filled=True, opacity=0.9).encode(
        y=y,
        color=colours,
        size=alt.Size(
            "n:Q",
            title="verdicts",
            scale=alt.Scale(range=[20, 220], zero=True),
            legend=alt.Legend(orient="top", values=sizes, symbolFillColor=GREY),
        ),
    )
    rules = drawing.interval_rules(base, y)
    chart = alt.layer(diagonal, rules, points, data=shown).properties(width=240, height=240)
    grid = drawing.faceted(chart, JUDGE, list(shown[JUDGE]), columns=3, width=240)
    note = "Below the line, judges are overconfident: other verdicts agree less than stated."
    return grid, [note, more]


def _swap_finding(pairs: pd.DataFrame) -> str:
    """States whether judges expect more agreement under their own rubric."""
    gap = (pairs["own"] - pairs["rival"]).groupby(pairs[JUDGE]).mean()
    more = "more" if gap.mean() >= 0 else "less"
    same = int(((gap > 0) if gap.mean() >= 0 else (gap < 0)).sum())
    return (
        f"Judges state {abs(gap.mean()):.2f} {more} agreement under their own rubric than under a "
        f"rival's; this holds for {same} of {len(gap)} judges"
    )


@drawing.figure(
    ["task", JUDGE, "own", "rival", "rubric_author"], known=["own", "rival"], finding=_swap_finding
)
def swap_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows stated agreement under the own and under a rival's rubric, per judge and rival."""
    by = ["task", JUDGE, "rubric_author"]
    means = data.groupby(by, sort=False)[["own", "rival"]].mean().reset_index()
    rivals = int(means.groupby(["task", JUDGE])["rubric_author"].nunique().max())
    if rivals > _MAX_RIVALS:
        means["rubric_author"] = "all rivals"
        means = means.groupby(by, sort=False)[["own", "rival"]].mean().reset_index()
        rivals = 1
    shown, more = drawing.first_values(means, JUDGE, MAX_ROWS // 2, "judges")
    height = 16 * rivals * shown[JUDGE].nunique()
    shown, fewer = drawing.first_values(shown, "task", drawing.panel_limit(height), "tasks")
    ends = shown.assign(start=shown["own"], end=shown["rival"])
    long = ends.melt([*by, "start", "end"], ["own", "rival"], var_name="rubric")
    long["rubric"] = long["rubric"].map({"own": "own rubric", "rival": "rival's rubric"})
    # The rivals of a judge have the same order in every task.
    ranks = long.groupby(JUDGE)["rubric_author"].transform(lambda part: pd.factorize(part)[0])
    last = long.groupby(by)["value"].transform("max")
    author = long["rubric_author"].map(drawing.shortened(long["rubric_author"], 14))
    long = long.assign(rank=ranks, last=last, author=author)
    base = alt.Chart(long).encode(
        y=drawing.row_names(JUDGE, shown[JUDGE]), yOffset=alt.YOffset("rank:O")
    )
    x = alt.X("value:Q", title=_STATED, scale=SHARE)
    own = base.transform_filter("datum.rubric == 'own rubric'")
    kinds = [
        ("own rubric", "circle", BLUE, True),
        ("rival's rubric", "diamond", drawing.RED, False),
    ]
    points = base.mark_point(size=60).encode(x=x, **drawing.symbols("rubric", kinds))
    authors = own.mark_text(align="left", dx=9, opacity=0.8).encode(
        x=alt.X("last:Q"), text=alt.Text("author:N")
    )
    rules = drawing.interval_rules(own, x, "start", "end")
    chart = alt.layer(rules, points, authors).properties(width=290, height=alt.Step(16))
    note = f"{_EXPLAINED} Each line: a rival's rubric, named beside it."
    return drawing.faceted(chart, "task", list(shown["task"]), width=290), [note, more, fewer]
