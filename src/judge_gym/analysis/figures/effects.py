"""Effects of the axes of the design, ranks of their levels, accuracy, and quality for money."""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.figures import drawing
from judge_gym.analysis.figures.drawing import BLUE, INK, MAX_ROWS, alt
from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.stats.paired_tests import CLEAR_Q, is_clear
from judge_gym.records.numbers import (
    FORMATS,
    dollars,
    fine_percent,
    number,
    percent,
    signed_hundredths,
)

if TYPE_CHECKING:
    from judge_gym.records.judge_table import Unit

CLEAR, UNCLEAR = f"q < {CLEAR_Q}", "no clear effect"
LINE = 44
"""The number of characters of a line on the left of a row."""


def _forest_finding(effects: pd.DataFrame) -> str:
    """States how many contrasts have a clear effect, and which is the largest."""
    known = effects.dropna(subset=["value"])
    clear = known[is_clear(known)]
    if clear.empty:
        which = (
            "The only contrast has no"
            if len(known) == 1
            else f"None of {len(known)} contrasts has a"
        )
        return f"{which} clear effect ({CLEAR})"
    top = clear.sort_values("value", key=abs, kind="stable").iloc[-1]
    has = "has" if len(clear) == 1 else "have"
    return (
        f"{len(clear)} of {len(known)} contrasts {has} a clear effect ({CLEAR}); the largest: "
        f"{top['knob']} {top['level']} against {top['base']} ({signed_hundredths(top['value'])})"
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
        clear=np.where(is_clear(shown), CLEAR, UNCLEAR),
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
    width = 480
    notes = base.mark_text(align="left", opacity=0.85, limit=200).encode(
        x=alt.value(width + 8), text=alt.Text("note:N")
    )
    layers = [zero, drawing.interval_rules(base, x), points]
    layers += [notes] if (shown["note"] != "").any() else []
    chart = alt.layer(*layers).properties(
        width=width, height=alt.Step(8 + 14 * max(map(len, words.values())))
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
    columns = ["knob", "level", "share", "points"]
    for knob, level, share, points in top[columns].itertuples(index=False, name=None):
        others = [str(other) for other in levels[knob] if other != level]
        than = f'"{others[0]}"' if len(others) == 1 else f"the {len(others)} other levels"
        if len(others) == 2:
            than = " and ".join(f'"{other}"' for other in others)
        count = "" if pd.isna(points) else f"{points:,.0f} "
        often = f"in {percent(share)} of {count}matched comparisons"
        if points == 1:
            often = "in the only matched comparison"
        sentences.append(f'{knob}: "{level}" scores higher than {than} {often}')
    more = len(top) - 2
    rest = f"; {more} more knob{'s' * (more > 1)} below" if more > 0 else ""
    return "; ".join(sentences[:2]) + rest


@drawing.figure(
    ["knob", "level", "rank", "share", "mean_rank"],
    known=["share"],
    optional=["points"],
    finding=_rank_finding,
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
    chart = alt.layer(bars, means).properties(width=560, height=alt.Step(24))
    notes = ["On the right: mean rank.", drawing.omitted(len(levels), MAX_ROWS, "levels")]
    return _blocks(chart, "knob", shown), notes


def _blocks(chart: Any, column: str, data: pd.DataFrame) -> Any:
    """Returns a block of rows per value, one below the other."""
    order = list(data[column].unique())
    labels = drawing.label_expression({**drawing.shortened(order, 70)})
    header = alt.Header(labelOrient="top", labelAngle=0, labelLimit=480, labelExpr=labels)
    row = alt.Row(f"{drawing.field(column)}:N", title=None, header=header, sort=order)
    return chart.facet(row=row, spacing=8).resolve_scale(y="independent")


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
        axis=alt.Axis(format="%", tickCount=5),
    )
    colour = drawing.by_judge(JUDGE, shown[JUDGE], judges)
    points = base.mark_point(filled=True, size=70).encode(x=x, color=colour)
    layered = alt.layer(drawing.interval_rules(base, x), points).properties(
        width=drawing.WIDTH, height=alt.Step(24)
    )
    return drawing.faceted(layered, "panel", list(shown["panel"])), [more, fewer]


def _ranked_finding(rows: pd.DataFrame) -> str:
    """States what is compared; which setup is best is the judge table's to say."""
    return str(rows["quantity"].iloc[0]).capitalize() + ", 95 % intervals over all rows together"


@drawing.figure(
    ["setup", JUDGE, "value", "low", "high", "quantity"],
    known=["value"],
    optional=["unit"],
    finding=_ranked_finding,
    by_judge=True,
)
def ranked_figure(data: pd.DataFrame, judges: Iterable[str]) -> drawing.Drawn:
    """Shows a quantity of each setup with its interval, in the order of the rows.

    Numbers are written as the unit wants: shares in percent, coefficients with two decimals.
    """
    shown, more = drawing.first_values(data, "setup", MAX_ROWS, "setups")
    order = list(shown["setup"])
    unit = "share" if shown["unit"].isna().any() else str(shown["unit"].iloc[0])
    text = FORMATS[cast("Unit", unit)]
    named = shown.assign(text=[text(value) for value in shown["value"]])
    base = alt.Chart(named).encode(y=drawing.row_names("setup", order, most=44, sort=order))
    axis = alt.Axis(format="%" if unit == "share" else "~r", tickCount=5)
    x = alt.X("value:Q", title=None, scale=_scale(shown, unit), axis=axis)
    colour = drawing.by_judge(JUDGE, shown[JUDGE], judges)
    points = base.mark_point(filled=True, size=110).encode(x=x, color=colour)
    words = base.mark_text(dy=-11, fontWeight="bold").encode(x=x, text=alt.Text("text:N"))
    rules = drawing.interval_rules(base, x, strokeWidth=2)
    chart = alt.layer(rules, points, words).properties(width=560, height=alt.Step(36))
    return chart, [more]


def _scale(rows: pd.DataFrame, unit: str) -> Any:
    """Returns the axis from 0 to 1, or as far as values of other units reach."""
    if unit == "share":
        return drawing.SHARE
    ends = rows[["value", "low", "high"]].to_numpy(dtype=float)
    highest = 1.0 if unit == "coefficient" else float(np.nanmax(ends))
    return alt.Scale(domain=[min(0.0, float(np.nanmin(ends))), highest])


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
    ["setup", "usd", "quality", "low", "high"],
    known=["usd", "quality"],
    finding=_price_finding,
)
def price_figure(data: pd.DataFrame) -> drawing.Drawn:
    """Shows quality against price; a line joins the setups that none cheaper is better than.

    Names are written beside their points if there is room, those on the line first.
    """
    width, height = 760, 360
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
        axis=alt.Axis(format="%", tickCount=6),
    )
    kinds = [(_BEST, "circle", BLUE, True), (_DOMINATED, "circle", INK, False)]
    rules = drawing.interval_rules(base.transform_filter("!datum.bare"), y, opacity=0.4)
    base = base.encode(y=y)
    line = base.transform_filter("datum.best").mark_line(
        interpolate="step-after", color=BLUE, strokeDash=[4, 3], strokeWidth=1
    )
    points = base.mark_point(size=70).encode(**drawing.symbols("kind", kinds))
    words = [
        base.transform_filter(f"datum.fits && {'' if side else '!'}datum.left")
        .mark_text(align="right" if side else "left", dx=-9 if side else 9, dy=-7)
        .encode(text=alt.Text("name:N"))
        for side in (True, False)
    ]
    chart = alt.layer(rules, line, points, *words).properties(width=width, height=height)
    hidden = int((~fits).sum())
    return chart, [f"{hidden} of {len(data)} points have no room for a name." if hidden else ""]


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


COLOURS = (drawing.BLUE, drawing.ORANGE, drawing.SKY, drawing.RED, drawing.PINK)
OTHERS = "others"


def _finding(spend: pd.DataFrame, unit: str = "US $") -> str:
    """States which model accounts for most of the spending."""
    by_model = spend.groupby("model", sort=False)["amount"].sum()
    total, top = float(by_model.sum()), str(by_model.idxmax())
    if not total:
        return f"Nothing was spent ({unit})"
    in_dollars = unit == "US $"
    sum_text = dollars(total) if in_dollars else f"{number(total)} {unit}"
    return f"{top} accounts for {percent(by_model[top] / total)} of {sum_text}"


@drawing.figure(["day", "model", "amount"], known=["day", "amount"], finding=_finding)
def spend_figure(data: pd.DataFrame, unit: str = "US $") -> drawing.Drawn:
    """Shows spending by day, newest last, coloured by model, with the unit of the amount."""
    days = sorted(data["day"].unique())
    ranked = data.groupby("model")["amount"].sum().sort_values(ascending=False, kind="stable")
    named = list(ranked.index[: len(COLOURS)])
    known = drawing.shortened(named, 24)
    shown = data[data["day"].isin(days[-drawing.MAX_ROWS :])]
    shown = shown.assign(model=[known.get(model, OTHERS) for model in shown["model"]])
    summed = shown.groupby(["day", "model"])["amount"].sum().reset_index()
    legend = [*known.values(), *([OTHERS] if len(ranked) > len(named) else [])]
    colours = [*COLOURS[: len(named)], drawing.GREY][: len(legend)]
    chart = (
        alt.Chart(summed)
        .mark_bar(size=min(40, 420 / len(days)), **drawing.OUTLINE)
        .encode(
            x=alt.X("day:O", title=None, axis=alt.Axis(labelAngle=-40, ticks=False)),
            y=alt.Y("amount:Q", title=unit),
            color=drawing.named_colours("model", legend, colours, columns=3),
        )
        .properties(width=760, height=260)
    )
    fewer = drawing.omitted(len(ranked), len(named), "models").replace("not shown", "combined")
    return chart, [drawing.omitted(len(days), drawing.MAX_ROWS, "days"), fewer]
