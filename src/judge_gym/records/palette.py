"""The look of pages, figures and reports: their colours, their font, and a colour per judge."""

from collections.abc import Iterable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Final

FONTS: Final = Path(__file__).parent / "fonts"
"""Inter, in the letters of western languages: a variable font for pages, two faces for figures."""
FONT: Final = "Inter"

BLUE, ORANGE, GREEN, PINK = "#3b6fd4", "#c4701c", "#0f8a6c", "#b5478f"
VIOLET, SKY, RED, OLIVE = "#7a5bc7", "#0e86a5", "#b8433c", "#6f7f1f"
JUDGE_COLOURS = (BLUE, ORANGE, GREEN, PINK, VIOLET, SKY, RED, OLIVE)
"""Each is visible on the grounds of both schemes: its contrast is 3 or more."""

LIGHT: Final[Mapping[str, str]] = {
    "page": "#f7f8fa",
    "card": "#ffffff",
    "hover": "#f0f2f6",
    "ink": "#16181d",
    "soft": "#5b6470",
    "line": "#e4e7ec",
    "edge": "#c5cad3",
    "link": "#2f62c6",
    "chosen": "#eef2fb",
    "good": "#0a7258",
    "good-page": "#e5f5ef",
    "warn": "#8a5300",
    "warn-page": "#fdf3de",
    "bad": "#a8321a",
    "bad-page": "#fdece8",
    "busy": "#2456b0",
    "busy-page": "#e8effc",
    "mark": "#ffe9a8",
    "people": "#8a6d1d",
    "people-page": "#f3eddd",
}
DARK: Final[Mapping[str, str]] = {
    "page": "#0f1216",
    "card": "#171a20",
    "hover": "#1f242c",
    "ink": "#e7eaf0",
    "soft": "#9aa4b2",
    "line": "#2a303a",
    "edge": "#4a5361",
    "link": "#8ab4ff",
    "chosen": "#1b2536",
    "good": "#5fd0ac",
    "good-page": "#12302a",
    "warn": "#f5c26b",
    "warn-page": "#33270f",
    "bad": "#ff9c86",
    "bad-page": "#3b1d18",
    "busy": "#9cc0ff",
    "busy-page": "#182742",
    "mark": "#5b4a12",
    "people": "#d9bd6e",
    "people-page": "#2c2617",
}


def judge_colours(judges: Iterable[str]) -> dict[str, str]:
    """Assigns each judge of a study the same colour in every figure and on every page.

    Pass all judges of the study, also where few are shown: then each keeps its colour.

    >>> judge_colours(["b", "a", "b"])
    {'a': '#3b6fd4', 'b': '#c4701c'}
    """
    names = sorted({str(judge) for judge in judges})
    return dict(zip(names, cycle(JUDGE_COLOURS), strict=False))


def style_sheet() -> str:
    """Writes the colours as CSS custom properties, those of the dark scheme where it is asked for.

    >>> "--ink: #16181d;" in style_sheet()
    True
    """
    dark = f"@media (prefers-color-scheme: dark) {{\n:root {{\n{_properties(DARK)}}}\n}}\n"
    return f":root {{\n{_properties(LIGHT)}}}\n{dark}"


def _properties(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}: {colour};\n" for name, colour in colours.items())
