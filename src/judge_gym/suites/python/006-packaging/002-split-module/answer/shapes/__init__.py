"""Shapes of the plane."""

from shapes.plane import Square, area

__all__ = ["Square", "area"]
