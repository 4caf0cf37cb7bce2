"""What a user may say about a file of verdicts, and what its reader found in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from judge_gym.errors import DesignError
from judge_gym.recorded.recording import Recording

RoleName = Literal[
    "item",
    "text",
    "part",
    "response_a",
    "response_b",
    "judge",
    "verdict",
    "person",
    "label",
    "truth",
    "repeat",
    "cluster",
    "length",
    "usd",
    "seconds",
    "system",
    "rationale",
    "knob",
]
"""What a column can be. Of a wide file, each `judge` and `person` is a column of its labels; of a
long one, `judge` or `person` names who gave the `verdict` or `label` of the row."""


ROLE_WORDS: Mapping[RoleName, str] = {
    "item": "the item",
    "text": "the text that is judged",
    "part": "a named part of the item",
    "response_a": "the first response of a pair",
    "response_b": "the second response of a pair",
    "judge": "a judge's verdicts",
    "verdict": "verdicts",
    "person": "a person's labels",
    "label": "people's labels",
    "truth": "the known answer",
    "repeat": "the repeat",
    "cluster": "the cluster of the item",
    "length": "the length of the text",
    "usd": "the price in US dollars",
    "seconds": "the time in seconds",
    "system": "the system that wrote the text",
    "rationale": "the judge's reasons",
    "knob": "a setting of the judge",
}
WHO_REASON = "names "
"""The reason for a column that names who judged or labelled begins so."""
LISTED = 8
"""The values and contradictions that are listed."""


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

    @property
    def about_file(self) -> bool:
        """Whether it says anything beside the positive label, which studies have too."""
        return replace(self, positive=None) != FileOptions()


@dataclass(frozen=True, slots=True)
class Question:
    """What is uncertain about a file, and was taken as proposed."""

    text: str
    option: str
    """The option that answers it as proposed."""
    otherwise: str = ""
    """What to do if it is not so: `a person's are --human ann`."""

    @property
    def on_command_line(self) -> str:
        """The question for those who can give options."""
        return f"{self.text} ({self.otherwise})" if self.otherwise else self.text


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

    @property
    def names_who(self) -> bool:
        """Whether the column names who judged or labelled, rather than holding their labels."""
        return self.role in ("judge", "person") and self.reason.startswith(WHO_REASON)

    @property
    def words(self) -> str:
        """What it is taken for, in words: `labels of a person: pass, fail in 30% of rows`."""
        if self.names_who:
            who = "who judged" if self.role == "judge" else "who labelled"
            return f"{who}: {self.reason.removeprefix(WHO_REASON)}"
        return f"{ROLE_WORDS[self.role]}: {self.reason}"

    @property
    def sentence(self) -> str:
        """The column and what it is taken for."""
        return f"{self.column}: {self.words}"


@dataclass(frozen=True, slots=True)
class ValueCount:
    """A value of the verdicts and labels as written, and how often it occurs."""

    value: str
    verdicts: int
    labels: int
    label: str
    """The label that it means; empty for no label."""
    truths: int = 0
    """How often it is a known answer."""


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
    questions: tuple[Question, ...] = ()
    """What needs a word of the user; the file was read as proposed."""
    export: bool = False
    """Whether the file is an export of ours, whose columns have fixed names."""
    hints: tuple[str, ...] = ()
    """Where verdicts are missing, what columns without a role may be."""

    def roles_text(self) -> str:
        """Says in lines what each column was taken for, what its values mean, and what is odd."""
        rows = [(role.column, role.words) for role in self.roles]
        rows += [("values", self._values_text())] if self.values else []
        width = max((len(name) for name, _ in rows), default=0)
        lines = [f"  {name:<{width}}  {words}" for name, words in rows]
        lines += [f"  {note}" for note in self.recording.notes]
        if self.conflicts:
            number = len(self.conflicts)
            lines.append(f"  {number:,} contradiction{'s' if number != 1 else ''}:")
            lines += [f"    {conflict}" for conflict in self.conflicts[:LISTED]]
            lines += [f"    and {number - LISTED:,} more"] if number > LISTED else []
        return "\n".join([f"{self.recording.source} was read as:", *lines])

    def _values_text(self) -> str:
        scale = self.recording.scale
        parts = []
        for value in self.values:
            numbers = {"verdict": value.verdicts, "label": value.labels, "answer": value.truths}
            counts = ", ".join(
                f"{n:,} {noun}{'s' if n != 1 else ''}" for noun, n in numbers.items() if n
            )
            meaning = "" if value.value == value.label else f" = {value.label or 'no label'}"
            parts.append(f"{value.value}{meaning} ({counts})")
        more = f"; and {len(parts) - 2 * LISTED} more" if len(parts) > 2 * LISTED else ""
        kinds = {
            "binary": f"positive: {scale.positive}" if scale.positive else "two labels",
            "ordinal": f"in order: {' < '.join(scale.labels)}",
            "nominal": "without an order",
        }
        return f"{'; '.join(parts[: 2 * LISTED])}{more}; {kinds[scale.kind]}"

    def refuse_open_questions(self) -> None:
        """Refuses a reading that needs a word of the user, with all questions at once."""
        if self.questions:
            listed = "".join(
                f"\n- {asked.on_command_line} {asked.option}" for asked in self.questions
            )
            raise DesignError(
                f"{self.roles_text()}\nSay whether this is right: --yes accepts it, and an option "
                f"says so or otherwise:{listed}"
            )

    def refuse_without_verdicts(self) -> None:
        """Refuses a file without verdicts, where they are needed."""
        if self.recording.verdicts.empty:
            hints = "".join(f"\n- {hint}" for hint in self.hints)
            source, advice = self.recording.source, ""
            if not (self.hints or self.recording.labels.empty):
                advice = (
                    "\n- if people gave all of them: judge-gym check VERDICTS --labels "
                    f"{source} reads them beside verdicts in another file, and judge-gym init "
                    f"--csv {source} makes a study that asks judges about the same texts"
                )
            raise DesignError(
                f"{source} has no verdicts of a judge; name their column with --judge{hints}"
                f"{advice}\n{self.roles_text()}"
            )
