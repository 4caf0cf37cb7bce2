"""The colours of judges: one for each, the same on every page and in every figure of a study."""

from collections.abc import Iterable

# Okabe and Ito's colours without black and yellow, which fade on one of the two backgrounds.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8B5CC4", "#7A8B2E")
STATUS_GREYS = {
    "scored": "#5F6B78",
    "abstained": "#8C8C8C",
    "refused": "#A3A3A3",
    "truncated": "#B5B5B5",
    "parse_failed": "#C6C6C6",
    "provider_error": "#D6D6D6",
}
"""Answers by status, in greys: colour belongs to judges."""


def judge_colours(judges: Iterable[str]) -> dict[str, str]:
    """Returns the colour of each judge of a study, by the order of their names.

    Pass all judges of the study, also where few are shown: then each keeps its colour.

    >>> judge_colours(["sim:strict", "sim:alarmist", "sim:strict"])
    {'sim:alarmist': '#0072B2', 'sim:strict': '#E69F00'}
    """
    return {judge: COLOURS[place % len(COLOURS)] for place, judge in enumerate(sorted({*judges}))}
