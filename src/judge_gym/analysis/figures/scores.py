"""Scores of suite runs over time, with their intervals."""

import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import BLUE, GREY, ORANGE, PINK, RED, SKY, alt
from judge_gym.records.numbers import percent

GREEN = "#009E73"
COLOURS = (BLUE, ORANGE, GREEN, PINK, RED, SKY, GREY)
WIDTH, HEIGHT = 620, 260
SHORT_SPAN = pd.Timedelta(days=6)
"""Up to this span, the axis shows times beside days."""


def _history_finding(scores: pd.DataFrame) -> str:
    """States the latest score of each name, the best first."""
    latest = scores.sort_values("at", kind="stable").groupby("name", sort=False).tail(1)
    ranked = latest.sort_values("score", ascending=False, kind="stable")
    parts = [f"{row['name']} {percent(row['score'])}" for _, row in ranked.iterrows()]
    return f"Latest pass rates: {', '.join(parts)}"


@drawing.figure(["name", "at", "score", "low", "high"], known=["score"], finding=_history_finding)
def history_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows scores over time with 95 % intervals: a point per run, a colour per name."""
    newest = data.sort_values("at", ascending=False, kind="stable")
    shown, more = drawing.first_values(newest, "name", len(COLOURS), "names")
    names = sorted(shown["name"].unique())
    cut = drawing.shortened(names, 34)
    shown = shown.assign(name=shown["name"].map(cut)).sort_values("at", kind="stable")
    colour = drawing.named_colours(
        "name", [cut[name] for name in names], COLOURS, columns=2, labelLimit=240, symbolOpacity=1
    )
    span = shown["at"].max() - shown["at"].min()
    format = "%Y-%m-%d" if span > SHORT_SPAN else "%m-%d %H:%M"
    x = alt.X("at:T", title=None, axis=alt.Axis(format=format, tickCount=6, labelOverlap=True))
    y = alt.Y(
        "score:Q",
        title="pass rate, 95 % interval",
        scale=drawing.SHARE,
        axis=drawing.percent_axis(5),
    )
    base = alt.Chart(shown).encode(x=x, color=colour)
    band = base.mark_area(opacity=0.1).encode(
        y=alt.Y("low:Q", scale=drawing.SHARE), y2=alt.Y2("high:Q")
    )
    line = base.mark_line(strokeWidth=1.5).encode(y=y)
    points = base.mark_point(filled=True, size=55).encode(y=y)
    rules = drawing.interval_rules(base, y, opacity=0.4)
    chart = alt.layer(band, rules, line, points).properties(width=WIDTH, height=HEIGHT)
    return chart, [more]
