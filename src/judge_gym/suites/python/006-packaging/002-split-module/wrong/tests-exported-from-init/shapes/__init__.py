"""Shapes of the plane."""


class Square:
    """A square of some side."""

    def __init__(self, side: float) -> None:
        if side <= 0:
            raise ValueError(f"a side is above 0, not {side}")
        self.side = side


def area(shape: Square) -> float:
    """The area of a square."""
    return shape.side**2


__all__ = ["Square", "area"]
