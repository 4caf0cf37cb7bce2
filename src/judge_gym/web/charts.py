"""Charts that pages draw as SVG at a fixed size: price against quality, and what more data does."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from judge_gym.records.forest import Axis, axis_of
from judge_gym.records.judge_table import (
    JudgeRow,
    JudgeTable,
    Unit,
    column_value,
    deciding_column,
)
from judge_gym.records.numbers import FORMATS, dollars, with_interval
from judge_gym.records.palette import JUDGE_COLOURS
from judge_gym.records.planning import NextPurchase

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 130, 12, 34
"""The room around the marks, for the numbers of the scales and for names on the right."""
LABEL_GAP = 15
"""The least distance of two names, in pixels."""


def price_chart(table: JudgeTable, colours: Mapping[str, str], place: str) -> "Markup | None":
    """Draws quality against price, with the setups that none beats in both joined by a line.

    Args:
        table: the judge table.
        colours: the colour of each judge.
        place: the address of the items of the study, to which each dot leads.

    Returns:
        The chart; None where no setup costs anything, or where quality is unknown.
    """
    head = deciding_column(table)
    if head is None:
        return None
    points = [
        (row, price["value"], quality)
        for row in table["rows"]
        for price, quality in [(row["usd_per_1000"], column_value(row, head["name"]))]
        if price is not None and quality is not None and price["value"] > 0
    ]
    if len(points) < 2:
        return None
    axis = _quality_axis([quality["value"] for _, _, quality in points], head["unit"])
    low, high = _decades([price for _, price, _ in points])

    def x(price: float) -> float:
        return _place(math.log10(price), low, high, LEFT, WIDTH - RIGHT)

    def y(value: float) -> float:
        return _place(value, axis.low, axis.high, HEIGHT - BOTTOM, TOP)

    marks = _horizontal([(y(tick), axis.text(tick)) for tick in axis.ticks])
    marks += _vertical([(x(10.0**power), dollars(10.0**power)) for power in range(low, high + 1)])
    frontier = sorted(
        ((price, quality["value"]) for row, price, quality in points if row["on_frontier"]),
    )
    if len(frontier) > 1:
        path = " ".join(f"{x(price)},{y(value)}" for price, value in frontier)
        marks.append(f'<polyline class="frontier" points="{path}"/>')
    texts = _spread([(y(quality["value"]), row["setup"]) for row, _, quality in points])
    for (row, price, quality), at in zip(points, texts, strict=True):
        text = with_interval(quality, FORMATS[head["unit"]])
        name = escape(f"{row['setup']}: {head['title']} {text}, {dollars(price)} per 1,000")
        link = escape(f"{place}?{urlencode({'setup': row['setup']})}")
        marks.append(
            f'<a href="{link}" aria-label="{name}"><title>{name}</title>'
            f'<circle cx="{x(price)}" cy="{y(quality["value"])}" r="5" '
            f'fill="{colours[row["judge"]]}"/>'
            f'<text x="{x(price) + 9}" y="{at + 4}">{escape(_short(row))}</text></a>'
        )
    about = f"{head['title']} against the price of 1,000 verdicts"
    return _svg(marks, about)


def purchase_chart(purchase: NextPurchase) -> "Markup | None":
    """Draws the half width of the interval to expect against the calls spent on each option."""
    rows = [row for row in purchase["purchases"] if row["calls"] and row["half_width"] is not None]
    today = purchase["half_width"]
    if not rows or today is None:
        return None
    options = [*dict.fromkeys(row["option"] for row in rows)]
    most = max(row["calls"] or 0.0 for row in rows)
    top = max([today, *(row["half_width"] or 0.0 for row in rows)])
    axis = axis_of([{"value": top, "low": None, "high": None, "n": 0}], "loss")

    def x(calls: float) -> float:
        return _place(calls, 0, most, LEFT, WIDTH - RIGHT)

    def y(half: float) -> float:
        return _place(half, 0, axis.high, HEIGHT - BOTTOM, TOP)

    marks = _horizontal([(y(tick), f"±{tick:.2f}") for tick in axis.ticks])
    marks += _vertical([(x(most * part / 4), f"{most * part / 4:,.0f}") for part in range(5)])
    ends = []
    for option, colour in zip(options, JUDGE_COLOURS, strict=False):
        curve = [(0.0, today)]
        curve += [
            (row["calls"] or 0.0, row["half_width"] or 0.0)
            for row in rows
            if row["option"] == option
        ]
        path = " ".join(f"{x(calls)},{y(half)}" for calls, half in curve)
        marks.append(f'<polyline class="curve" stroke="{colour}" points="{path}"/>')
        ends.append((y(curve[-1][1]), option, x(curve[-1][0])))
    if purchase["apart"]:
        gap = y(abs(purchase["value"] or 0.0))
        marks.append(f'<path class="middle" d="M{LEFT} {gap}H{WIDTH - RIGHT}"/>')
        ends.append((gap, "told apart below", float(WIDTH - RIGHT)))
    names = _spread([(height, name) for height, name, _ in ends])
    marks += [
        f'<text x="{place + 6}" y="{at + 4}">{escape(name)}</text>'
        for at, (_, name, place) in zip(names, ends, strict=True)
    ]
    return _svg(marks, "half the width of the interval against the number of calls")


def _quality_axis(values: Sequence[float], unit: Unit) -> Axis:
    """Returns a scale around values, in tenths, on which small differences can be seen."""
    low, top = math.floor(min(values) * 10 - 0.5), math.ceil(max(values) * 10 + 0.2)
    if unit in ("share", "coefficient"):
        top = min(top, 10)
    step = max(1, round((top - low) / 5))
    ticks = tuple(tick / 10 for tick in range(low, top + 1, step))
    return Axis(low / 10, top / 10, ticks, unit)


def _short(row: JudgeRow) -> str:
    return row["setup"] if len(row["setup"]) <= 20 else f"{row['setup'][:19]}…"


def _decades(prices: Sequence[float]) -> tuple[int, int]:
    """Returns the powers of ten around prices, at least two."""
    low, high = math.floor(math.log10(min(prices))), math.ceil(math.log10(max(prices)))
    return low, max(high, low + 1)


def _place(value: float, low: float, high: float, start: float, end: float) -> float:
    share = (min(max(value, low), high) - low) / ((high - low) or 1.0)
    return round(start + share * (end - start), 1)


def _horizontal(ticks: Sequence[tuple[float, str]]) -> list[str]:
    return [
        f'<path class="tick" d="M{LEFT} {at}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 8}" y="{at + 4}" text-anchor="end">{escape(text)}</text>'
        for at, text in ticks
    ]


def _vertical(ticks: Sequence[tuple[float, str]]) -> list[str]:
    return [
        f'<path class="tick" d="M{at} {TOP}V{HEIGHT - BOTTOM}"/>'
        f'<text x="{at}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(text)}</text>'
        for at, text in ticks
    ]


def _spread(places: Sequence[tuple[float, str]]) -> list[float]:
    """Returns where names stand so that none lies on another, in the order given.

    >>> _spread([(50, "a"), (52, "b"), (90, "c")])
    [50, 65, 90]
    """
    order = sorted(range(len(places)), key=lambda index: places[index][0])
    result, last = [0.0] * len(places), -math.inf
    for index in order:
        last = max(places[index][0], last + LABEL_GAP)
        result[index] = last
    return result


def _svg(marks: Sequence[str], about: str) -> "Markup":
    from markupsafe import Markup

    return Markup(
        f'<svg class="chart" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="group" aria-label="{escape(about)}">{"".join(marks)}</svg>'
    )
