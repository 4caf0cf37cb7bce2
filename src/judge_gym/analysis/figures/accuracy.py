"""How right judges are, what it costs, and whether the instrument can be trusted."""

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.figures.page import (
    BLUE,
    INK,
    MAX_ROWS,
    RED,
    SHARE,
    SKY,
    WIDTH,
    Figure,
    first,
    fitting,
    in_panels,
    left_out,
    names,
    needed,
    short,
    spans,
    symbols,
    titled,
)
from judge_gym.analysis.frames import JUDGE


def accuracy_finding(scores: pd.DataFrame) -> str:
    """Who is right most often."""
    top = scores.sort_values("accuracy", kind="stable", na_position="first").iloc[-1]
    if (scores["accuracy"] == top["accuracy"]).sum() > 1:
        return f"How often each judge is right; the best, {top['accuracy']:.1%}"
    return f"{top[JUDGE]} is right most often: {top['accuracy']:.1%} on {top['panel']}"


def accuracy_figure(scores: pd.DataFrame, title: str | None = None) -> Figure | None:
    """Accuracy with its interval, a row per judge, a panel per `panel`.

    Args:
        scores: columns judge.model, panel, accuracy, low, high.
        title: its heading; the finding, where it is None.
    """
    data = needed(scores, [JUDGE, "panel", "accuracy", "low", "high"], known=["accuracy"])
    if data.empty:
        return None
    shown, more = first(data, JUDGE, MAX_ROWS, "judges")
    shown, fewer = first(shown, "panel", fitting(24 * shown[JUDGE].nunique()), "panels")
    base = alt.Chart(shown).encode(y=names(JUDGE, shown[JUDGE]))
    x = alt.X(
        "accuracy:Q",
        title="share right, 95 % interval",
        scale=SHARE,
        axis=alt.Axis(format="%", tickCount=5),
    )
    points = base.mark_point(filled=True, size=70, color=BLUE).encode(x=x)
    layered = alt.layer(spans(base, x), points).properties(width=WIDTH, height=alt.Step(24))
    return in_panels(layered, shown, title or accuracy_finding(data), more, fewer)


def cost_finding(costs: pd.DataFrame) -> str:
    """Who is right most often and what it costs, and the cheapest beside it."""
    known = costs.dropna(subset=["usd", "accuracy"])
    top = known.sort_values(["accuracy", "usd"], ascending=[False, True]).iloc[0]
    low = known.sort_values(["usd", "accuracy"], ascending=[True, False]).iloc[0]
    told = f"{top[JUDGE]} is right most often, {top['accuracy']:.0%} at ${top['usd']:.3g}"
    if top.name == low.name:
        return f"{told}, and none is cheaper"
    return f"{told}; the cheapest, {low[JUDGE]}, {low['accuracy']:.0%} at ${low['usd']:.3g}"


def cost_figure(costs: pd.DataFrame, title: str | None = None) -> Figure | None:
    """Accuracy against cost; filled where no other is both cheaper and more often right.

    Names stand beside their points as far as there is room, the filled ones first.

    Args:
        costs: columns judge.model, variant, usd, accuracy, low, high.
        title: its heading; the finding, where it is None.
    """
    columns = [JUDGE, "variant", "usd", "accuracy", "low", "high"]
    data = needed(costs, columns, known=["usd", "accuracy"])
    if data.empty:
        return None
    name = data[JUDGE] + (" · " + data["variant"] if data["variant"].nunique() > 1 else "")
    width, height = 560, 320
    positive = bool((data["usd"] > 0).all())
    decades = positive and data["usd"].max() >= 20 * data["usd"].min()
    usd, right = (data[column].to_numpy(dtype=float) for column in ("usd", "accuracy"))
    ends = (usd.min() / 1.5, usd.max() * 1.5) if decades else (0.0, max(usd.max() * 1.1, 1e-9))
    across = np.log(usd / ends[0]) / np.log(ends[1] / ends[0]) if decades else usd / ends[1]
    seen = data[["accuracy", "low", "high"]].to_numpy(dtype=float)
    foot, top = np.floor(np.nanmin(seen) * 10) / 10, np.ceil(np.nanmax(seen) * 10) / 10
    top = max(top, foot + 0.1)
    best = _frontier(usd, right)
    crowded = len(data) > MAX_ROWS
    name = data[JUDGE] if crowded else name
    texts = list(name.map(short(name, 40)))
    spots = np.column_stack([across * width, (top - right) / (top - foot) * height])
    left = spots[:, 0] > width * 0.66
    fits = _room(spots, np.array([5.6 * len(text) for text in texts]), left, first=best)
    fits &= best | (not crowded)
    shown = data.assign(
        name=texts,
        left=left,
        fits=fits,
        bare=~best & crowded,
        kind=np.where(best, "none cheaper is better", "another is cheaper and better"),
    )
    scale = alt.Scale(type="log" if decades else "linear", domain=list(ends), nice=False)
    ticks = [step * 10.0**power for power in range(-9, 6) for step in (1, 2, 5)]
    axis = alt.Axis(format="~g", tickCount=6)
    if decades:  # every line of a grid in decades would be a hatching
        axis.values = [tick for tick in ticks if ends[0] <= tick <= ends[1]]
    base = alt.Chart(shown).encode(x=alt.X("usd:Q", title="cost in US $", scale=scale, axis=axis))
    y = alt.Y(
        "accuracy:Q",
        title="share right, 95 % interval",
        scale=alt.Scale(domain=[foot, top]),
        axis=alt.Axis(format="%", tickCount=6),
    )
    kinds = [
        ("none cheaper is better", "circle", BLUE, True),
        ("another is cheaper and better", "circle", INK, False),
    ]
    base, rules = base.encode(y=y), spans(base.transform_filter("!datum.bare"), y, opacity=0.4)
    points = base.mark_point(size=70).encode(**symbols("kind", kinds))
    words = [
        base.transform_filter(f"datum.fits && {'' if side else '!'}datum.left")
        .mark_text(align="right" if side else "left", dx=-9 if side else 9, dy=-7)
        .encode(text="name:N")
        for side in (True, False)
    ]
    chart = alt.layer(rules, points, *words).properties(width=width, height=height)
    hidden = int((~fits).sum())
    note = f"{hidden} of {len(data)} points have no room for a name." if hidden else ""
    return titled(chart, title or cost_finding(data), note)


def _frontier(usd: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> np.ndarray:
    """Where no other is at most as dear and more right, or cheaper and as right."""
    order = np.lexsort((-right, usd))
    before = np.concatenate([[-np.inf], np.maximum.accumulate(right[order])[:-1]])
    best = np.zeros(len(usd), dtype=bool)
    best[order] = right[order] > before
    return best


def _room(
    spots: np.ndarray, widths: np.ndarray, left: np.ndarray, *, first: np.ndarray
) -> np.ndarray:
    """Which names have room beside their points; the first may cover points, none a name."""
    starts = spots[:, 0] + np.where(left, -9 - widths, 9)
    kept = np.zeros(len(spots), dtype=bool)
    for i in np.argsort(~first, kind="stable"):
        over = (starts < starts[i] + widths[i]) & (starts[i] < starts + widths)
        near = np.abs(spots[:, 1] - spots[i, 1]) < 13
        under = (spots[:, 0] > starts[i]) & (spots[:, 0] < starts[i] + widths[i])
        lower = np.abs(spots[:, 1] - spots[i, 1] + 7) < 9
        kept[i] = not ((kept & over & near) | (under & lower & ~first[i])).any()
    return kept


def coverage_finding(coverage: pd.DataFrame) -> str:
    """How many quantities keep within their band, and which do not."""
    known = coverage.dropna(subset=["coverage"])
    out = known[_place(known) != "reaches its band"]
    told = f"{len(known) - len(out)} of {len(known)} quantities reach their band"
    if out.empty:
        return told
    named = ", ".join(out["quantity"].astype(str).head(2))
    rest = f" and {len(out) - 2} more" if len(out) > 2 else ""
    return f"{told}; not {named}{rest}"


def coverage_figure(coverage: pd.DataFrame, title: str | None = None) -> Figure | None:
    """How often intervals and tests keep what they promise, against the band that is allowed.

    Args:
        coverage: columns quantity, coverage, low, high (its Monte-Carlo interval), band_low,
            band_high.
        title: its heading; the finding, where it is None.
    """
    columns = ["quantity", "coverage", "low", "high", "band_low", "band_high"]
    data = needed(coverage, columns, known=["coverage"])
    if data.empty:
        return None
    data = data.assign(place=_place(data))
    fine = data["place"] == "reaches its band"  # what is not is shown first
    shown = data.loc[np.sort(fine.sort_values(kind="stable").index[:MAX_ROWS])]
    rows = list(shown["quantity"])
    more = left_out(len(data), MAX_ROWS, "quantities")
    ends = shown[columns[1:]].to_numpy(dtype=float)
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    pad = max(0.01, 0.05 * (high - low))
    scale = alt.Scale(domain=[max(0.0, low - pad), min(1.0, high + pad)], nice=False)
    base = alt.Chart(shown).encode(y=names("quantity", rows, most=40, sort=rows))
    x = alt.X("coverage:Q", title="share of panels", scale=scale, axis=alt.Axis(format="%"))
    bands = spans(base, x, "band_low", "band_high", color=SKY, strokeWidth=14, opacity=0.35)
    kinds = [
        ("reaches its band", "circle", BLUE, True),
        ("below its band", "triangle-down", RED, True),
        ("above its band", "triangle-up", INK, False),
    ]
    points = base.mark_point(size=70).encode(
        x=x,
        **symbols("place", [kind for kind in kinds if (shown["place"] == kind[0]).any()]),
    )
    chart = alt.layer(bands, spans(base, x), points).properties(width=400, height=alt.Step(22))
    note = "Shaded: the band that is allowed. Lines: Monte-Carlo intervals."
    return titled(chart, title or coverage_finding(data), note, more)


def _place(coverage: pd.DataFrame) -> np.ndarray:
    """Where an interval lies: it misses its band only if it lies wholly outside."""
    below = coverage["high"].fillna(coverage["coverage"]) < coverage["band_low"]
    above = coverage["low"].fillna(coverage["coverage"]) > coverage["band_high"]
    return np.select([below, above], ["below its band", "above its band"], "reaches its band")
