"""Verdicts and labels that others recorded: files of them, and logs of other tools.

A reader makes a `Recording` of what it reads; `as_samples` makes of it the frame of samples and the
people's labels that every analysis reads, so that recorded verdicts are analysed like own ones.
"""

from judge_gym.recorded.recording import (
    ITEM_COLUMNS,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    LabelScale,
    Recording,
    as_samples,
)

__all__ = [
    "ITEM_COLUMNS",
    "LABEL_COLUMNS",
    "VERDICT_COLUMNS",
    "LabelScale",
    "Recording",
    "as_samples",
]
