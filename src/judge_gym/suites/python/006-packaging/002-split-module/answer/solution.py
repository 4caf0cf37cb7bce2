"""The areas of squares."""

from shapes import Square, area


def total(sides: list[float]) -> float:
    """The sum of the areas of squares."""
    return sum(area(Square(side)) for side in sides)
