"""Verdicts and labels that others recorded: files of them, and logs of other tools.

A reader makes a `Recording` of what it reads; `as_samples` makes of it the frame of samples and the
people's labels that every analysis reads, so that recorded verdicts are analysed like own ones.
"""

from judge_gym.recorded.file import read_file
from judge_gym.recorded.options import FileOptions, FileReading, Question, Role, ValueCount
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
    "FileOptions",
    "FileReading",
    "LabelScale",
    "Question",
    "Recording",
    "Role",
    "ValueCount",
    "as_samples",
    "read_file",
]
