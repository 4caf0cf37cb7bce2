"""What the axes of the design do: their effects, and how their levels rank."""

import textwrap
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from judge_gym.analysis.figures.page import (
    BLUE,
    INK,
    MAX_ROWS,
    OUTLINE,
    SHARE,
    Figure,
    field,
    left_out,
    names,
    needed,
    ordered,
    short,
    spans,
    spelled,
    symbols,
    titled,
    written,
)

LEVEL = 0.05
"""Below it, a contrast is said to move the verdicts."""
LINE = 44
"""Letters of a line on the left of a row; a longer name takes several lines."""
_FOREST = ["knob", "level", "base", "judge", "task", "value", "low", "high", "q", "note"]


def forest_finding(effects: pd.DataFrame) -> str:
    """How many contrasts move the verdicts, and which the most."""
    known = effects.dropna(subset=["value"])
    moved = known[known["q"] < LEVEL]
    if moved.empty:
        return f"None of {len(known)} contrasts moves the verdicts (q < {LEVEL})"
    top = moved.sort_values("value", key=abs, kind="stable").iloc[-1]
    return (
        f"{len(moved)} of {len(known)} contrasts move the verdicts (q < {LEVEL}); most, "
        f"{top['knob']} {top['level']} against {top['base']} ({top['value']:+.2f})"
    )


def forest_figure(effects: pd.DataFrame, title: str | None = None) -> Figure | None:
    """Paired differences with their intervals, grouped by knob; what is tested and holds is filled.

    A contrast without a value keeps its row and its note. Of many, those with the least q are
    shown.

    Args:
        effects: columns knob, level, base, judge, task, value, low, high, q, note.
        title: its heading; the finding, where it is None.
    """
    data = needed(effects, _FOREST, known=[])
    if data.empty:
        return None
    order = data.assign(size=-data["value"].abs()).sort_values(["q", "size"], kind="stable").index
    shown = data.loc[np.sort(order[:MAX_ROWS])]
    more = left_out(len(data), MAX_ROWS, "contrasts (with greater q)")
    shown = shown.assign(
        block=_blocked(shown),
        row=_rows(shown),
        finds=np.where(shown["q"] < LEVEL, f"q < {LEVEL}", "not told from 0"),
        note=shown["note"].fillna("").str.slice(0, 60),
    )
    ends = shown[["value", "low", "high"]].to_numpy(dtype=float)
    reach = float(np.nanmax(np.abs(ends))) if np.isfinite(ends).any() else 1.0
    scale = alt.Scale(domain=[-1.05 * reach, 1.05 * reach], nice=False)
    words = {row: textwrap.wrap(row, LINE, break_long_words=False) for row in shown["row"]}
    base = alt.Chart(shown).encode(y=written("row", words, sort=list(words)))
    x = alt.X("value:Q", title="level minus base", scale=scale)
    zero = (
        alt.Chart(shown)
        .transform_aggregate(rows="count()")
        .transform_calculate(zero="0")
        .mark_rule(strokeDash=[4, 3], opacity=0.6)
        .encode(x=alt.X("zero:Q", title="level minus base", scale=scale))
    )
    kinds = [(f"q < {LEVEL}", "circle", BLUE, True), ("not told from 0", "circle", INK, False)]
    points = (
        base.transform_filter("isValid(datum.value)")
        .mark_point()
        .encode(x=x, **symbols("finds", kinds))
    )
    width = 300
    notes = base.mark_text(align="left", fontSize=9.5, opacity=0.85, limit=150).encode(
        x=alt.value(width + 8), text="note:N"
    )
    layers = [zero, spans(base, x), points, *([notes] if (shown["note"] != "").any() else [])]
    chart = alt.layer(*layers).properties(
        width=width, height=alt.Step(7 + 12 * max(map(len, words.values())))
    )
    return titled(_blocks(chart, "block", shown), title or forest_finding(data), more)


def _blocked(effects: pd.DataFrame) -> pd.Series:
    """A heading for each contrast: its knob and base, and its level where the block has but one."""
    levels = effects.groupby(["knob", "base"], dropna=False)["level"].transform("nunique")
    level = (" " + effects["level"].astype(str)).where(levels == 1, "")
    return effects["knob"] + level + " · against " + effects["base"].astype(str)


def _rows(effects: pd.DataFrame) -> pd.Series:
    """A name for each contrast within its block, whole; what all share is not repeated."""
    levels = effects.groupby(["knob", "base"], dropna=False)["level"].transform("nunique")
    parts = [
        effects[column].fillna("all").astype(str)
        for column in ("judge", "task")
        if effects[column].nunique(dropna=False) > 1
    ]
    level = effects["level"].astype(str)
    if not parts:
        return level
    named = parts[0] if len(parts) == 1 else parts[0] + " · " + parts[1]
    return named.where(levels == 1, level + " · " + named)


def rank_finding(ranks: pd.DataFrame) -> str:
    """Which level of each knob ranks first most often."""
    best = ranks[ranks["rank"] == ranks["rank"].min()].sort_values(
        "share", ascending=False, kind="stable"
    )
    top = best.drop_duplicates("knob")
    told = [
        f"{knob} {level} ({share:.0%})"
        for knob, level, share in top[["knob", "level", "share"]].itertuples(index=False, name=None)
    ]
    rest = f" and {len(told) - 2} more" if len(told) > 2 else ""
    return f"First most often: {', '.join(told[:2])}{rest}"


def rank_figure(ranks: pd.DataFrame, title: str | None = None) -> Figure | None:
    """How often each level of a knob takes each rank at matched points, the best on top.

    Args:
        ranks: columns knob, level, rank, share, mean_rank.
        title: its heading; the finding, where it is None.
    """
    data = needed(ranks, ["knob", "level", "rank", "share", "mean_rank"], known=["share"])
    if data.empty:
        return None
    levels = data.drop_duplicates(["knob", "level"])
    kept = levels.head(MAX_ROWS)[["knob", "level"]]
    shown = data.merge(kept, on=["knob", "level"]).assign(level=lambda part: part["level"].map(str))
    more = left_out(len(levels), MAX_ROWS, "levels")
    best = alt.EncodingSortField("mean_rank", op="min")
    base = alt.Chart(shown).encode(y=names("level", shown["level"], most=36, sort=best))
    bars = base.mark_bar(**OUTLINE).encode(
        x=alt.X("share:Q", title="share of matched points", axis=alt.Axis(format="%"), scale=SHARE),
        color=ordered("rank", "rank", range(1, int(np.ceil(data["rank"].max())) + 1)),
        order=alt.Order("rank:Q"),
    )
    means = base.mark_text(align="left", dx=6).encode(
        x=alt.datum(1), text=alt.Text("mean_rank:Q", aggregate="min", format=".2f")
    )
    chart = alt.layer(bars, means).properties(width=380, height=alt.Step(22))
    note = "On the right: mean rank."
    return titled(_blocks(chart, "knob", shown), title or rank_finding(data), note, more)


def _blocks(chart: Any, column: str, data: pd.DataFrame) -> Any:
    """A block per value, one below the other, each with rows of its own."""
    order = list(data[column].unique())
    header = alt.Header(
        labelOrient="top", labelAngle=0, labelLimit=480, labelExpr=spelled({**short(order, 70)})
    )
    row = alt.Row(f"{field(column)}:N", title=None, header=header, sort=order)
    return chart.facet(row=row, spacing=8).resolve_scale(y="independent")
