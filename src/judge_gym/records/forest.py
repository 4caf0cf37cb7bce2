"""Forest plots as SVG, the same on pages and in reports: a dot and an interval on one scale.

A plot lies in a table, a row in each of its rows, below an axis in its head. Marks have classes,
which the style sheets of pages and reports colour: `band` (people with each other, whose estimate
is `middle`), `constant` (always the same answer), `zero`, `range`, `tick`. Colours of
judges and sizes are attributes, so that a row needs no style of its own.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from judge_gym.records.judge_table import (
    ColumnHead,
    JudgeRow,
    JudgeTable,
    Quantity,
    Unit,
    column_value,
    deciding_column,
    people_deciding,
)
from judge_gym.records.numbers import (
    DIFFERENCES,
    FORMATS,
    signed_hundredths,
    with_interval,
)

WIDTH, HEIGHT, HEAD = 264, 26, 16
"""The pixels of a row, and the height of the axis above it."""
MARGIN = 16
"""The pixels left and right of the scale, where half a label of the axis has room."""
TICKS = 5
"""About how many numbers an axis has."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
GROUPS = {
    "As good as the best, as far as these items tell": ("best", "tied"),
    "Clearly worse": ("worse",),
    "Not compared": ("unknown",),
}
"""The groups of setups, with the standings of each."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from a low to a high value, with numbers at some of them."""

    low: float
    high: float
    ticks: tuple[float, ...]
    unit: Unit
    signed: bool = False
    """Whether values are differences."""

    def place(self, value: float, width: int = WIDTH) -> float:
        """Returns where a value is drawn; what lies outside is drawn at the end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(MARGIN + share * (width - 2 * MARGIN), 1)

    def text(self, value: float) -> str:
        """Writes a value as the tables write it."""
        if self.signed:
            return DIFFERENCES.get(self.unit, signed_hundredths)(value)
        return FORMATS[self.unit](value)

    def svg(self, width: int = WIDTH) -> str:
        """Draws the numbers of the scale, to stand in the head of a table."""
        texts = "".join(
            f'<text x="{self.place(tick, width)}" y="{HEAD - 4}" text-anchor="middle" '
            f'font-size="12">{escape(self.text(tick))}</text>'
            for tick in self.ticks
        )
        return (
            f'<svg class="axis" width="{width}" height="{HEAD}" viewBox="0 0 {width} {HEAD}" '
            f'aria-hidden="true">{texts}</svg>'
        )


def axis_of(quantities: Iterable[Quantity], unit: Unit, *, signed: bool = False) -> Axis:
    """Returns a scale on which every estimate and interval has room.

    Shares have one from 0 to 1, other measures one that includes 0, and differences one that is
    as long on both sides of 0.
    """
    if unit == "share" and not signed:
        return Axis(0.0, 1.0, SHARES, unit)
    ends = [
        end
        for quantity in quantities
        for end in (quantity["value"], quantity["low"], quantity["high"])
        if end is not None and math.isfinite(end)
    ]
    highest = 1.0 if unit == "coefficient" and not signed else 1e-9
    low, high = min([0.0, *ends]), max([highest, *ends])
    if signed:
        reach = max(-low, high)
        low, high = -reach, reach
    step = _step(high - low)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    count = round((high - low) / step)
    return Axis(low, high, tuple(round(low + n * step, 10) for n in range(count + 1)), unit, signed)


def _step(length: float) -> float:
    """Returns a round distance of which about `TICKS` fit."""
    power = 10.0 ** math.floor(math.log10(length / TICKS))
    return next(step for factor in (1, 2, 5, 10) if length / (step := power * factor) <= TICKS)


def row_svg(
    axis: Axis,
    quantity: Quantity | None,
    *,
    colour: str = "currentColor",
    label: str = "",
    people: Quantity | None = None,
    constant: float | None = None,
    filled: bool = True,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> str:
    """Draws one row: the estimate as a dot on its interval, beside what it is compared with.

    Args:
        axis: the scale of all rows.
        quantity: the estimate; None leaves the scale empty.
        colour: that of the dot and the interval.
        label: what the estimate is, as a text for readers who do not see it, and on hovering.
        people: the measure of people with each other, drawn as a band.
        constant: the measure of always giving one answer, drawn as a line.
        filled: whether the dot is filled; an open one stands for no clear effect.
        width: in pixels, that of the axis.
        height: in pixels.
    """
    middle = height / 2
    marks = [
        f'<line class="tick" x1="{x}" x2="{x}" y1="0" y2="{height}"/>'
        for x in (axis.place(tick, width) for tick in axis.ticks)
    ]
    if people is not None:
        low, high = people["low"], people["high"]
        if low is not None and high is not None:
            start, end = axis.place(low, width), axis.place(high, width)
            size = f'width="{max(end - start, 1):.1f}" height="{height}"'
            marks.append(f'<rect class="band" x="{start}" y="0" {size}/>')
        marks.append(_line("middle", axis.place(people["value"], width), height))
    if constant is not None:
        marks.append(_line("constant", axis.place(constant, width), height))
    if axis.signed:
        marks.append(_line("zero", axis.place(0, width), height))
    if quantity is not None:
        marks += _estimate(axis, quantity, colour, filled, width, middle)
    name = escape(label, quote=True)
    described = f'role="img" aria-label="{name}"' if label else 'aria-hidden="true"'
    title = f"<title>{name}</title>" if label else ""
    return (
        f'<svg class="forest" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f"{described}>{title}{''.join(marks)}</svg>"
    )


def _line(kind: str, x: float, height: float) -> str:
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="0" y2="{height:g}"/>'


def _estimate(
    axis: Axis, quantity: Quantity, colour: str, filled: bool, width: int, y: float
) -> list[str]:
    marks = []
    low, high = quantity["low"], quantity["high"]
    if low is not None and high is not None:
        start, end = axis.place(low, width), axis.place(high, width)
        marks.append(
            f'<line class="range" x1="{start}" x2="{end}" y1="{y:g}" y2="{y:g}" stroke="{colour}"/>'
        )
    x, ink = axis.place(quantity["value"], width), f'stroke="{colour}" stroke-width="2"'
    fill = f'fill="{colour}"' if filled else 'class="open"'
    marks.append(f'<circle cx="{x}" cy="{y:g}" r="4.5" {fill} {ink}/>')
    return marks


@dataclass(frozen=True, slots=True)
class JudgePlot:
    """The forest plot of a judge table: its deciding measure, or consistency without labels."""

    head: ColumnHead
    axis: Axis
    people: Quantity | None
    """People with each other, by the deciding measure."""
    constant: float | None
    """The best that always giving one answer reaches, such as the most frequent label."""
    groups: tuple[tuple[str, tuple[JudgeRow, ...]], ...]
    """The setups as good as the best, those that are clearly worse, and those not compared, with
    a title each; one group without a title where they are not told apart."""

    def row(self, row: JudgeRow, colour: str, *, width: int = WIDTH) -> str:
        """Draws the estimate of a setup, in the colour of its judge."""
        quantity = column_value(row, self.head["name"])
        text = with_interval(quantity, FORMATS[self.head["unit"]]) or "unknown"
        return row_svg(
            self.axis,
            quantity,
            colour=colour,
            label=f"{row['setup']}: {self.head['title']} {text}",
            people=self.people,
            constant=self.constant,
            width=width,
        )

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What the marks besides the setups are: the class of each, and a text."""
        text, entries = FORMATS[self.head["unit"]], []
        if self.people is not None:
            among = with_interval(self.people, text)
            entries.append(("band", f"people agree with each other: {among}"))
        if self.constant is not None:
            entries.append(("constant", f"always the same answer: {text(self.constant)}"))
        return tuple(entries)


def judge_plot(table: JudgeTable) -> JudgePlot | None:
    """Returns the forest plot of a judge table; None where no measure can be drawn."""
    head = deciding_column(table)
    if head is None:
        head = next((one for one in table["columns"] if one["name"] == "consistency"), None)
    if head is None:
        return None
    quantities = [column_value(row, head["name"]) for row in table["rows"]]
    estimates = [quantity for quantity in quantities if quantity is not None]
    if not estimates:
        return None
    people = people_deciding(table)
    constant = table["constant"] if table["kind"] is not None else None
    on_axis = [*estimates, *([people] if people else [])]
    if constant is not None:
        on_axis.append({"value": constant, "low": None, "high": None, "n": 0})
    return JudgePlot(
        head=head,
        axis=axis_of(on_axis, head["unit"]),
        people=people,
        constant=constant,
        groups=_groups(table["rows"]),
    )


def _groups(rows: Sequence[JudgeRow]) -> tuple[tuple[str, tuple[JudgeRow, ...]], ...]:
    by_title = {
        title: tuple(row for row in rows if row["standing"] in standings)
        for title, standings in GROUPS.items()
    }
    groups = tuple((title, of_group) for title, of_group in by_title.items() if of_group)
    return groups if len(groups) > 1 else (("", tuple(rows)),)
