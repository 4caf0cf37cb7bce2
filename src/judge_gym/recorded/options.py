"""What a user may say about a file of verdicts, and what its reader found in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from judge_gym.recorded.recording import Recording

RoleName = Literal[
    *("item", "text", "response_a", "response_b", "judge", "verdict", "person", "label"),
    *("truth", "repeat", "cluster", "length", "usd", "seconds", "system", "rationale", "knob"),
]
"""What a column can be. Of a wide file, each `judge` and `person` is a column of its labels; of a
long one, `judge` or `person` names who gave the `verdict` or `label` of the row."""


@dataclass(frozen=True, slots=True)
class FileOptions:
    """What a user says about a file; everything else is proposed from its values and names."""

    item: str | None = None
    text: str | None = None
    responses: tuple[str, str] | None = None
    """The two columns of the responses of a pair."""
    judges: tuple[str, ...] = ()
    """Columns with verdicts, or the one column that names who gave the verdict of its row."""
    people: tuple[str, ...] = ()
    truth: str | None = None
    repeat: str | None = None
    cluster: str | None = None
    score: str | None = None
    """A comparison that makes two labels of numbers: `score>=4`."""
    positive: str | None = None
    length: str | None = None
    usd: str | None = None
    seconds: str | None = None
    system: str | None = None
    """The column that names which system or version wrote the text that is judged."""
    rationale: str | None = None
    knobs: tuple[str, ...] = ()
    labels: Path | None = None
    """A second file with people's labels, joined by item."""
    order: tuple[str, ...] = ()
    """The labels from the lowest to the highest, which makes an ordinal scale of words."""
    same: Mapping[str, str] = field(default_factory=dict)
    """Spellings by the label that they mean: `{"Helpfull": "helpful"}`."""
    missing: tuple[str, ...] = ()
    """Words that stand for no label."""
    accept: bool = False
    """Whether what is uncertain is taken as proposed."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a column is taken for, and why."""

    column: str
    role: RoleName
    reason: str
    certain: bool
    """Whether no other reading fits; else it needs a word of the user."""
    option: str
    """The option that says so, or says otherwise: `--human rater_1`."""


@dataclass(frozen=True, slots=True)
class ValueCount:
    """A value of the verdicts and labels as written, and how often it occurs."""

    value: str
    verdicts: int
    labels: int
    label: str
    """The label that it means; empty for no label."""


@dataclass(frozen=True, eq=False)
class FileReading:
    """A file as it was read: its verdicts and labels, and everything that was taken for granted."""

    recording: Recording
    """Where the file names systems, its items have a column `system`, an item of each system is an
    item of its own, and the user's item is the cluster."""
    roles: tuple[Role, ...]
    values: tuple[ValueCount, ...]
    conflicts: tuple[str, ...] = ()
    """Items with labels or verdicts that contradict each other, in sentences."""
