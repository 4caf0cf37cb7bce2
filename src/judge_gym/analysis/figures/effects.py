"""Effects of the axes of the design, and ranks of their levels."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import BLUE, INK, MAX_ROWS, alt

LEVEL = 0.05
"""The q-value below which a contrast has a clear effect."""
CLEAR, UNCLEAR = f"q < {LEVEL}", "no clear effect"
LINE = 44
"""The number of characters of a line on the left of a row."""


def _forest_finding(effects: pd.DataFrame) -> str:
    """States how many contrasts have a clear effect, and which is the largest."""
    known = effects.dropna(subset=["value"])
    clear = known[known["q"] < LEVEL]
    if clear.empty:
        return f"None of {len(known)} contrasts has a clear effect ({CLEAR})"
    top = clear.sort_values("value", key=abs, kind="stable").iloc[-1]
    return (
        f"{len(clear)} of {len(known)} contrasts have a clear effect ({CLEAR}); the largest: "
        f"{top['knob']} {top['level']} against {top['base']} ({top['value']:+.2f})"
    )


@drawing.figure(
    ["knob", "level", "base", "judge", "task", "value", "low", "high", "q", "note"],
    known=[],
    finding=_forest_finding,
)
def forest_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows paired differences with intervals, grouped by knob; clear effects are filled.

    A contrast without a value keeps its row and its note. If there are many, those with the
    smallest q are shown.
    """
    order = data.assign(size=-data["value"].abs()).sort_values(["q", "size"], kind="stable").index
    shown = data.loc[np.sort(order[:MAX_ROWS])]
    shown = shown.assign(
        block=_headings(shown),
        row=_rows(shown),
        clear=np.where(shown["q"] < LEVEL, CLEAR, UNCLEAR),
        note=shown["note"].fillna("").str.slice(0, 60),
    )
    ends = shown[["value", "low", "high"]].to_numpy(dtype=float)
    reach = float(np.nanmax(np.abs(ends))) if np.isfinite(ends).any() else 1.0
    scale = alt.Scale(domain=[-1.05 * reach, 1.05 * reach], nice=False)
    words = {row: textwrap.wrap(row, LINE, break_long_words=False) for row in shown["row"]}
    base = alt.Chart(shown).encode(y=drawing.row_labels("row", words, sort=list(words)))
    x = alt.X("value:Q", title="level minus base", scale=scale)
    zero = (
        alt.Chart(shown)
        .transform_aggregate(rows="count()")
        .transform_calculate(zero="0")
        .mark_rule(strokeDash=[4, 3], opacity=0.6)
        .encode(x=alt.X("zero:Q", title="level minus base", scale=scale))
    )
    kinds = [(CLEAR, "circle", BLUE, True), (UNCLEAR, "circle", INK, False)]
    points = (
        base.transform_filter("isValid(datum.value)")
        .mark_point()
        .encode(x=x, **drawing.symbols("clear", kinds))
    )
    width = 300
    notes = base.mark_text(align="left", fontSize=9.5, opacity=0.85, limit=150).encode(
        x=alt.value(width + 8), text="note:N"
    )
    layers = [zero, drawing.interval_rules(base, x), points]
    layers += [notes] if (shown["note"] != "").any() else []
    chart = alt.layer(*layers).properties(
        width=width, height=alt.Step(7 + 12 * max(map(len, words.values())))
    )
    more = drawing.omitted(len(data), MAX_ROWS, "contrasts (with larger q)")
    return _blocks(chart, "block", shown), [more]


def _headings(effects: pd.DataFrame) -> pd.Series:
    """Returns a heading for each contrast: knob and base, and the level if there is only one."""
    levels = effects.groupby(["knob", "base"], dropna=False)["level"].transform("nunique")
    level = (" " + effects["level"].astype(str)).where(levels == 1, "")
    return effects["knob"] + level + " · against " + effects["base"].astype(str)


def _rows(effects: pd.DataFrame) -> pd.Series:
    """Returns a name for each contrast within its block, without what all have in common."""
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


def _rank_finding(ranks: pd.DataFrame) -> str:
    """States for two knobs which level scores highest most often."""
    first = ranks[ranks["rank"] == 1].sort_values("share", ascending=False, kind="stable")
    top = first.drop_duplicates("knob")
    if top.empty:
        return "No level scores higher than another in matched comparisons"
    levels = ranks.groupby("knob", sort=False)["level"].unique()
    sentences = []
    for knob, level, share in top[["knob", "level", "share"]].itertuples(index=False, name=None):
        others = [str(other) for other in levels[knob] if other != level]
        than = f'"{others[0]}"' if len(others) == 1 else f"all {len(others)} other levels"
        often = f"in {100 * share:.0f} % of matched comparisons"
        sentences.append(f'{knob}: "{level}" scores higher than {than} {often}')
    rest = f"; {len(top) - 2} more knobs below" if len(top) > 2 else ""
    return "; ".join(sentences[:2]) + rest


@drawing.figure(
    ["knob", "level", "rank", "share", "mean_rank"], known=["share"], finding=_rank_finding
)
def rank_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows how often each level of a knob takes each rank at matched points, the best on top."""
    levels = data.drop_duplicates(["knob", "level"])
    kept = levels.head(MAX_ROWS)[["knob", "level"]]
    shown = data.merge(kept, on=["knob", "level"]).assign(level=lambda part: part["level"].map(str))
    best = alt.EncodingSortField("mean_rank", op="min")
    base = alt.Chart(shown).encode(y=drawing.row_names("level", shown["level"], most=36, sort=best))
    x = alt.X(
        "share:Q",
        title="share of matched comparisons",
        axis=alt.Axis(format="%"),
        scale=drawing.SHARE,
    )
    ranks = range(1, int(np.ceil(data["rank"].max())) + 1)
    bars = base.mark_bar(**drawing.OUTLINE).encode(
        x=x, color=drawing.ordinal_colours("rank", "rank", ranks), order=alt.Order("rank:Q")
    )
    means = base.mark_text(align="left", dx=6).encode(
        x=alt.datum(1), text=alt.Text("mean_rank:Q", aggregate="min", format=".2f")
    )
    chart = alt.layer(bars, means).properties(width=380, height=alt.Step(22))
    notes = ["On the right: mean rank.", drawing.omitted(len(levels), MAX_ROWS, "levels")]
    return _blocks(chart, "knob", shown), notes


def _blocks(chart: Any, column: str, data: pd.DataFrame) -> Any:
    """Returns a block of rows per value, one below the other."""
    order = list(data[column].unique())
    labels = drawing.label_expression({**drawing.shortened(order, 70)})
    header = alt.Header(labelOrient="top", labelAngle=0, labelLimit=480, labelExpr=labels)
    row = alt.Row(f"{drawing.field(column)}:N", title=None, header=header, sort=order)
    return chart.facet(row=row, spacing=8).resolve_scale(y="independent")
