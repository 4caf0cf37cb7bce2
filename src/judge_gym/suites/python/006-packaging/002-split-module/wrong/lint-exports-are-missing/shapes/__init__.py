"""Shapes of the plane."""

from shapes.plane import Square, area
