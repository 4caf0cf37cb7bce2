"""Converts between units."""

from __future__ import annotations

from dataclasses import dataclass

from measures import tables


class UnitError(ValueError):
    """A unit is unknown, or two units do not measure the same."""


def convert(value: float, source: str, target: str) -> float:
    """Returns a value in another unit."""
    for units in tables.factors().values():
        if source in units and target in units:
            return value * units[source] / units[target]
    raise UnitError(f"{source!r} cannot be converted to {target!r}")


@dataclass(frozen=True)
class Quantity:
    """A value with its unit."""

    value: float
    unit: str

    def to(self, unit: str) -> Quantity:
        """Returns the same quantity in another unit."""
        return Quantity(convert(self.value, self.unit, unit), unit)
