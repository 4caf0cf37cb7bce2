"""A vector that is a value."""

from dataclasses import dataclass
from math import hypot


@dataclass(frozen=True)
class Vector:
    """A place in the plane."""

    x: float
    y: float

    def __add__(self, other: object) -> "Vector":
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other: object) -> "Vector":
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(self.x - other.x, self.y - other.y)

    def __mul__(self, factor: float) -> "Vector":
        return Vector(self.x * factor, self.y * factor)

    def __abs__(self) -> float:
        return hypot(self.x, self.y)
