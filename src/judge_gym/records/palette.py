"""The colours of judges: one for each, the same on every page and in every figure of a study."""

from collections.abc import Iterable
from itertools import cycle

# Okabe and Ito's colours without black and yellow, which fade on one of the two backgrounds.
BLUE, ORANGE, RED, PINK, SKY = "#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#56B4E9"
JUDGE_COLOURS = (BLUE, ORANGE, "#009E73", PINK, RED, SKY, "#7A5195", "#6B8E23")


def judge_colours(judges: Iterable[str]) -> dict[str, str]:
    """Assigns each judge of a study the same colour in every figure and on every page.

    Pass all judges of the study, also where few are shown: then each keeps its colour.

    >>> judge_colours(["b", "a", "b"])
    {'a': '#0072B2', 'b': '#E69F00'}
    """
    names = sorted({str(judge) for judge in judges})
    return dict(zip(names, cycle(JUDGE_COLOURS), strict=False))
