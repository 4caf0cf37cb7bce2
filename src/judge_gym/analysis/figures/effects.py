"""Accuracy, and quality for money."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import INK, MAX_ROWS, alt
from judge_gym.analysis.frames import JUDGE
from judge_gym.records.numbers import dollars, fine_percent, percent

_BEST, _DOMINATED = "none cheaper is better", "another is cheaper and better"


def _accuracy_finding(scores: pd.DataFrame) -> str:
    """States the highest accuracy; whether a lead is real, the judge table says."""
    top = scores.sort_values("accuracy", kind="stable").iloc[-1]
    if (scores["accuracy"] == top["accuracy"]).sum() > 1:
        return f"Accuracy of each judge; the highest is {fine_percent(top['accuracy'])}"
    return f"Highest accuracy: {top[JUDGE]}, {fine_percent(top['accuracy'])} on {top['panel']}"


@drawing.figure(
    [JUDGE, "panel", "accuracy", "low", "high"],
    known=["accuracy"],
    finding=_accuracy_finding,
    by_judge=True,
)
def accuracy_figure(data: pd.DataFrame, judges: Iterable[str]) -> drawing.Drawn:
    """Shows accuracy with its interval, a row per judge, a panel per `panel`."""
    shown, more = drawing.first_values(data, JUDGE, MAX_ROWS, "judges")
    limit = drawing.panel_limit(24 * shown[JUDGE].nunique())
    shown, fewer = drawing.first_values(shown, "panel", limit, "panels")
    base = alt.Chart(shown).encode(y=drawing.row_names(JUDGE, shown[JUDGE]))
    x = alt.X(
        "accuracy:Q",
        title="accuracy, 95 % interval",
        scale=drawing.SHARE,
        axis=drawing.percent_axis(5),
    )
    colour = drawing.by_judge(JUDGE, shown[JUDGE], judges)
    points = base.mark_point(filled=True, size=70).encode(x=x, color=colour)
    layered = alt.layer(drawing.interval_rules(base, x), points).properties(
        width=drawing.WIDTH, height=alt.Step(24)
    )
    return drawing.faceted(layered, "panel", list(shown["panel"])), [more, fewer]


def _price_finding(prices: pd.DataFrame) -> str:
    """States the setup with the highest quality, its price, and the cheapest setup."""
    top = prices.sort_values(["quality", "usd"], ascending=[False, True]).iloc[0]
    low = prices.sort_values(["usd", "quality"], ascending=[True, False]).iloc[0]
    best = f"{top['setup']} reaches {percent(top['quality'])} at {dollars(top['usd'])} per 1,000"
    if top.name == low.name:
        return f"{best}, and none is cheaper"
    return (
        f"{best}; the cheapest, {low['setup']}, reaches {percent(low['quality'])} at "
        f"{dollars(low['usd'])}"
    )


@drawing.figure(
    ["setup", JUDGE, "usd", "quality", "low", "high"],
    known=["usd", "quality"],
    finding=_price_finding,
    by_judge=True,
)
def price_figure(data: pd.DataFrame, judges: Iterable[str]) -> drawing.Drawn:
    """Shows quality against price; a line joins the setups that none cheaper is better than.

    Points on the line are filled. Names are written beside their points if there is room, those
    on the line first.
    """
    width, height = 620, 340
    usd, right = (data[column].to_numpy(dtype=float) for column in ("usd", "quality"))
    decades = bool((usd > 0).all()) and usd.max() >= 20 * usd.min()
    ends = (usd.min() / 1.5, usd.max() * 1.5) if decades else (0.0, max(usd.max() * 1.1, 1e-9))
    across = np.log(usd / ends[0]) / np.log(ends[1] / ends[0]) if decades else usd / ends[1]
    seen = data[["quality", "low", "high"]].to_numpy(dtype=float)
    foot, top = np.floor(np.nanmin(seen) * 10) / 10, np.ceil(np.nanmax(seen) * 10) / 10
    top = max(top, foot + 0.1)
    best = _frontier(usd, right)
    crowded = len(data) > MAX_ROWS
    texts = list(data["setup"].map(drawing.shortened(data["setup"], 40)))
    spots = np.column_stack([across * width, (top - right) / (top - foot) * height])
    left = spots[:, 0] > width * 0.66
    fits = _room(spots, np.array([6.7 * len(text) for text in texts]), left, first=best)
    fits &= best | (not crowded)
    shown = data.assign(
        name=texts,
        left=left,
        fits=fits,
        bare=~best & crowded,
        best=best,
        kind=np.where(best, _BEST, _DOMINATED),
    )
    scale = alt.Scale(type="log" if decades else "linear", domain=list(ends), nice=False)
    ticks = [step * 10.0**power for power in range(-9, 6) for step in (1, 2, 5)]
    axis = alt.Axis(format="~g", tickCount=6)
    if decades:  # all grid lines of a logarithmic axis would be too dense
        axis.values = [tick for tick in ticks if ends[0] <= tick <= ends[1]]
    x = alt.X("usd:Q", title="US dollars per 1,000 verdicts", scale=scale, axis=axis)
    base = alt.Chart(shown).encode(x=x)
    y = alt.Y(
        "quality:Q",
        title="quality, 95 % interval",
        scale=alt.Scale(domain=[foot, top]),
        axis=drawing.percent_axis(6),
    )
    rules = drawing.interval_rules(base.transform_filter("!datum.bare"), y, opacity=0.4)
    base = base.encode(y=y)
    line = base.transform_filter("datum.best").mark_line(
        interpolate="step-after", color=INK, strokeDash=[4, 3], strokeWidth=1
    )
    points = base.mark_point(size=70).encode(
        stroke=drawing.by_judge(JUDGE, shown[JUDGE], judges, channel="Stroke"),
        fill=drawing.by_judge(JUDGE, shown[JUDGE], judges, channel="Fill"),
        fillOpacity=alt.condition("datum.best", alt.value(1), alt.value(0)),
    )
    words = [
        base.transform_filter(f"datum.fits && {'' if side else '!'}datum.left")
        .mark_text(align="right" if side else "left", dx=-9 if side else 9, dy=-7)
        .encode(text=alt.Text("name:N"))
        for side in (True, False)
    ]
    chart = alt.layer(rules, line, points, *words).properties(width=width, height=height)
    hidden = int((~fits).sum())
    left_out = f"{hidden} of {len(data)} points have no room for a name." if hidden else ""
    return chart, [f"Filled: {_BEST}.", left_out]


def _frontier(usd: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> np.ndarray:
    """Returns which points no other dominates: cheaper or equal, and more accurate or equal."""
    order = np.lexsort((-right, usd))
    before = np.concatenate([[-np.inf], np.maximum.accumulate(right[order])[:-1]])
    best = np.zeros(len(usd), dtype=bool)
    best[order] = right[order] > before
    return best


def _room(
    spots: np.ndarray, widths: np.ndarray, left: np.ndarray, *, first: np.ndarray
) -> np.ndarray:
    """Returns which names have room; the first ones may cover points, but no other name."""
    starts = spots[:, 0] + np.where(left, -9 - widths, 9)
    kept = np.zeros(len(spots), dtype=bool)
    for i in np.argsort(~first, kind="stable"):
        over = (starts < starts[i] + widths[i]) & (starts[i] < starts + widths)
        near = np.abs(spots[:, 1] - spots[i, 1]) < 13
        under = (spots[:, 0] > starts[i]) & (spots[:, 0] < starts[i] + widths[i])
        lower = np.abs(spots[:, 1] - spots[i, 1] + 7) < 9
        kept[i] = not ((kept & over & near) | (under & lower & ~first[i])).any()
    return kept
