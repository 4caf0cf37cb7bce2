"""Formats numbers for people: one notation in the terminal, on pages and in sentences."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge_gym.records.judge_table import Quantity, Unit


def number(value: float) -> str:
    """Writes a number with three significant digits and without an exponent.

    >>> [number(value) for value in (0.0, 0.78249, 12.0, 123456.7, 4.9e-10, -9.95e-05)]
    ['0', '0.782', '12', '123,457', '<0.001', '>-0.001']
    """
    if value == 0:
        return "0"
    if abs(value) < 0.001:
        return "<0.001" if value > 0 else ">-0.001"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def plural(count: int, noun: str) -> str:
    """Formats a count with its noun.

    >>> plural(1, "run"), plural(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(value: float) -> str:
    """Formats a share in percent, without a minus before 0."""
    return f"{round(100 * value)} %"


def fine_percent(value: float) -> str:
    """Formats a share in percent with one decimal unless it is all or nothing.

    >>> [fine_percent(share) for share in (1.0, 0.984, 0.0)]
    ['100 %', '98.4 %', '0 %']
    """
    return percent(value) if value in (0, 1) else f"{100 * value:.1f} %"


def points(gap: float) -> str:
    """Formats a difference of shares in percentage points.

    >>> [points(gap) for gap in (0.071, 0.0083, 0.01, 0.0)]
    ['7 points', '0.8 points', '1 point', '0 points']
    """
    text = _points(gap)
    return f"{text} point{'' if text == '1' else 's'}"


def signed_points(gap: float) -> str:
    """Formats a difference of shares in percentage points, with a sign unless it is 0.

    >>> [signed_points(gap) for gap in (0.071, -0.0083, 0.0)]
    ['+7', '-0.8', '0']
    """
    text = _points(gap)
    return text if text.startswith("-") or text == "0" else f"+{text}"


def _points(gap: float) -> str:
    text = f"{100 * gap:.0f}" if abs(gap) >= 0.01 or gap == 0 else f"{100 * gap:.1f}"
    return "0" if float(text) == 0 else text


def dollars(value: float) -> str:
    """Formats a price with two digits that matter: `$0.40`, `$12`, `$0.0031`.

    >>> [dollars(value) for value in (0.4, 12.3, 0.0031, 1234.0)]
    ['$0.40', '$12', '$0.0031', '$1,234']
    """
    if value >= 10 or value == 0:
        return f"${value:,.0f}"
    return f"${value:.2f}" if value >= 0.1 else f"${value:.2g}"


def decimal(value: float) -> str:
    """Formats a coefficient between -1 and 1 with two decimals and without a leading zero.

    >>> [decimal(value) for value in (0.6, -0.05, 1.0, -0.001)]
    ['.60', '-.05', '1.00', '.00']
    """
    text = f"{value:.2f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def signed_decimal(value: float) -> str:
    """Formats a difference of coefficients, with a sign unless it is 0.

    >>> [signed_decimal(value) for value in (0.6, -0.05, 0.001)]
    ['+.60', '-.05', '.00']
    """
    text = decimal(value)
    return text if text.startswith("-") or float(text) == 0 else f"+{text}"


def signed_hundredths(value: float) -> str:
    """Formats a difference with two decimals, and a sign unless it is 0.

    >>> [signed_hundredths(value) for value in (0.123, -0.001, -0.2)]
    ['+0.12', '0.00', '-0.20']
    """
    text = f"{value:+.2f}"
    return text[1:] if float(text) == 0 else text


def signed(value: float, digits: int) -> str:
    """Formats a number with some decimals, and a sign unless it is 0.

    >>> [signed(value, 1) for value in (7, -1.26, -0.01)], signed(1234.4, 0)
    (['+7.0', '-1.3', '0.0'], '+1,234')
    """
    text = f"{value:+,.{digits}f}"
    return text if any(digit in "123456789" for digit in text) else text[1:]


def hundredths(value: float) -> str:
    """Formats a number with two decimals, without a minus before 0.

    >>> [hundredths(value) for value in (0.126, -0.001)]
    ['0.13', '0.00']
    """
    text = f"{value:.2f}"
    return text.removeprefix("-") if float(text) == 0 else text


def duration(value: float) -> str:
    """Formats seconds with two digits that matter: `1.5`, `0.031`, `120`."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def with_interval(quantity: "Quantity | None", text: Callable[[float], str]) -> str:
    """Formats a quantity and its interval in brackets, or nothing if it is unknown.

    A unit stands once, before the interval: `82 % [76, 87]`, `$0.40 [0.35, 0.52]`.

    >>> with_interval({"value": 0.82, "low": 0.76, "high": 0.87, "n": 60}, percent)
    '82 % [76, 87]'
    """
    if quantity is None:
        return ""
    value, low, high = text(quantity["value"]), quantity["low"], quantity["high"]
    if low is None or high is None or low == high:  # as the price of what is free
        return value
    ends = [text(end).removesuffix(" %").removeprefix("$") for end in (low, high)]
    return f"{value} [{ends[0]}, {ends[1]}]"


def share(quantity: "Quantity | None") -> str:
    """Formats a share with its interval in percent, or nothing if it is unknown."""
    return with_interval(quantity, percent)


FORMATS: "dict[Unit, Callable[[float], str]]" = {
    "share": percent,
    "points": signed_points,
    "dollars": dollars,
    "seconds": duration,
    "coefficient": decimal,
    "stages": hundredths,
    "loss": hundredths,
}
"""How a value of each unit is written."""


DIFFERENCES: "dict[Unit, Callable[[float], str]]" = {
    "share": signed_points,
    "points": signed_points,
    "coefficient": signed_decimal,
}
"""How a difference of values of a unit is written; of others, with two decimals."""


def difference_with_interval(quantity: "Quantity", unit: "Unit") -> str:
    """Formats the difference of two values of a unit with its interval and what it counts.

    >>> difference_with_interval({"value": 0.03, "low": 0.006, "high": 0.06, "n": 9}, "share")
    '+3 [+0.6, +6] points'
    >>> difference_with_interval({"value": 0.01, "low": None, "high": None, "n": 9}, "share")
    '+1 point'
    """
    text = with_interval(quantity, DIFFERENCES.get(unit, signed_hundredths))
    if unit not in ("share", "points"):
        return f"{text} stages" if unit == "stages" else text
    return f"{text} point{'' if text in ('+1', '-1') else 's'}"
