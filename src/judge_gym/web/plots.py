"""Scales of the pictures that pages draw as SVG: where a value stands, and which ticks are named."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judge_gym.records.judge_table import Unit
from judge_gym.records.numbers import DIFFERENCES, FORMATS, signed_hundredths

STEPS = (1, 2, 2.5, 5, 10)
"""What ticks may be apart, times a power of ten."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A named place of a scale."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to pixels, from `low` at `start` to `high` at `end`.

    >>> Scale(0, 1, 10, 110).x(0.25), Scale(0, 1, 110, 10).x(2)
    (35.0, 10.0)
    """

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[Tick] = ()

    def x(self, value: float) -> float:
        """Returns the place of a value; one outside of the scale stands at its end."""
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / (self.high - self.low)
        return round(self.start + (self.end - self.start) * share, 1)


def value_scale(values: Iterable[float], unit: Unit, start: float, end: float) -> Scale:
    """Returns a scale for values of a unit: shares from 0 to 100 %, coefficients up to 1.

    >>> [tick.text for tick in value_scale([0.4, 0.8], "share", 0, 270).ticks]
    ['0 %', '25 %', '50 %', '75 %', '100 %']
    >>> [tick.text for tick in value_scale([-0.1, 0.8], "coefficient", 0, 270).ticks]
    ['-.50', '.00', '.50', '1.00']
    """
    numbers = [*values, 0.0]
    low, high = min(numbers), max(numbers)
    step = 0.25 if unit == "share" else 0.5 if unit == "coefficient" and low < 0 else 0.25
    if unit == "share":
        low, high = 0.0, 1.0
    elif unit == "coefficient":
        low, high = math.floor(low / step) * step, 1.0
    else:
        step = _step(high - low)
        low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    return _with_ticks(Scale(low, high, start, end), step, FORMATS[unit])


def difference_scale(values: Iterable[float], unit: Unit, start: float, end: float) -> Scale:
    """Returns a scale for differences, with 0 in its middle.

    >>> [tick.text for tick in difference_scale([-0.08, 0.03], "share", 0, 270).ticks]
    ['-10', '-5', '0', '+5', '+10']
    """
    reach = max((abs(value) for value in values), default=0.0) or 1.0
    step = _step(2 * reach)
    high = math.ceil(reach / step) * step
    return _with_ticks(
        Scale(-high, high, start, end), step, DIFFERENCES.get(unit, signed_hundredths)
    )


def _step(span: float) -> float:
    """Returns the distance of about four ticks over a span."""
    rough = (span or 1.0) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return float(next(step * power for step in STEPS if step * power >= rough * 0.999))


def _with_ticks(scale: Scale, step: float, text: object) -> Scale:
    assert callable(text)
    count = round((scale.high - scale.low) / step)
    values = [scale.low + step * number for number in range(count + 1)]
    ticks = [Tick(scale.x(value), text(value)) for value in values]
    return Scale(scale.low, scale.high, scale.start, scale.end, ticks)
