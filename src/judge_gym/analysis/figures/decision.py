"""The interval to expect after spending more on items, repeats, draws of rubrics or judges."""

import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import BLUE, GREY, ORANGE, PINK, RED, alt

COLOURS = (BLUE, ORANGE, RED, PINK, GREY)
WIDTH, HEIGHT = 520, 220
NAME_HEIGHT = 15
"""The pixels of a name at the end of a line."""


def _decision_finding(points: pd.DataFrame) -> str:
    """States which option makes the interval narrowest."""
    best = points.sort_values("half_width", kind="stable").iloc[0]
    return f"More {best['option']} narrow the interval most: to ±{best['half_width']:.2g}"


@drawing.figure(
    ["option", "spent", "half_width", "unit"],
    known=["spent", "half_width"],
    finding=_decision_finding,
)
def decision_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows the half width of an interval against what is spent, a line per option."""
    data, more = drawing.first_values(data, "option", len(COLOURS), "options")
    options = list(data["option"].unique())
    unit = str(data["unit"].iloc[0])
    last = data.groupby("option", sort=False).tail(1)
    room = 1.35 * float(data["spent"].max())  # for the names at the ends of lines
    x = alt.X(
        "spent:Q",
        title="more spent" if unit == "usd" else "more calls",
        scale=alt.Scale(domain=[0, room], nice=False),
        axis=alt.Axis(format="$,~r" if unit == "usd" else ",~r", tickCount=5),
    )
    y = alt.Y("half_width:Q", title="half width of the interval", scale=alt.Scale(zero=True))
    colour = alt.Color(
        "option:N", scale=alt.Scale(domain=options, range=list(COLOURS)), legend=None
    )
    base = alt.Chart(data).encode(x=x, y=y, color=colour)
    line, points = base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=40)
    named = last.assign(place=_distinct_places(last["half_width"], data["half_width"].max()))
    names = alt.Chart(named).mark_text(align="left", dx=8)
    words = names.encode(
        x=x, y=alt.Y("place:Q"), text=alt.Text("option:N"), color=alt.value(drawing.INK)
    )
    return alt.layer(line, points, words).properties(width=WIDTH, height=HEIGHT), [more]


def _distinct_places(ends: pd.Series, highest: float) -> pd.Series:
    """Returns where names of lines stand so that none is printed over another."""
    line = highest * NAME_HEIGHT / HEIGHT
    places: list[float] = []
    for end in ends.sort_values():
        places.append(max(end, places[-1] + line) if places else end)
    return pd.Series(places, index=ends.sort_values().index).reindex(ends.index)
