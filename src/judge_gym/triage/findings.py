"""The verdicts on a failure become a finding: a class with its share, and how judges conflict."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isnan
from typing import NamedTuple

import numpy as np

from judge_gym.analysis.belief import panel_conflict, sources
from judge_gym.errors import DesignError
from judge_gym.records import STATUSES, Sample, Status
from judge_gym.triage.judging import Case
from judge_gym.triage.reading import CLASSES, KNOWN_GAP, UNDECIDED
from judge_gym.triage.replies import read_remarks

NO_VERDICT = "no scored verdict"
TELLING = 20
"""Characters from which a quote of the known gaps says something."""
_ELISION = re.compile(r"^[ \t]*(?:#|//)?[ \t]*(?:\.\.\.|…)[ \t]*$", re.M)


class Opinion(NamedTuple):
    """One verdict of one judge, with the reply that it was read from."""

    judge: str
    sample: Sample
    reply: str
    """The raw text; empty where no attempt brought one."""


class Quote(NamedTuple):
    """A snippet that a judge quoted, and the part of the evidence that has it."""

    text: str
    part: str | None
    """None where it is not in the evidence."""


class Voice(NamedTuple):
    """What one judge said with one verdict."""

    judge: str
    status: Status
    classes: tuple[str, ...]
    reasoning: str
    model_code: Quote | None
    expected_code: Quote | None

    @property
    def quotes(self) -> list[Quote]:
        """The snippets that it quoted."""
        return [quote for quote in (self.model_code, self.expected_code) if quote is not None]


@dataclass(frozen=True, slots=True)
class Tally:
    """Verdicts counted: how they ended, and the scored mass of each class."""

    statuses: Mapping[Status, int]
    masses: Mapping[str, Fraction]
    """Each scored verdict has a mass of 1, in equal parts for the classes that it names."""

    @property
    def scored(self) -> int:
        """How many verdicts name a class."""
        return self.statuses.get("scored", 0)

    @property
    def classification(self) -> str:
        """The class with the most mass; `undecided` on a tie, and without any."""
        most = max(self.masses.values(), default=Fraction(0))
        leading = [name for name, mass in self.masses.items() if mass == most]
        return leading[0] if len(leading) == 1 and most else UNDECIDED

    @property
    def said(self) -> str:
        """The class of a judge as it is told; one that came to no verdict is not undecided."""
        return self.classification if self.scored else NO_VERDICT

    @property
    def share(self) -> float | None:
        """The leading class's share of the scored mass; None where nothing was scored."""
        return float(max(self.masses.values()) / self.scored) if self.scored else None


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure, classified."""

    case: Case
    tally: Tally
    judges: Mapping[str, Tally]
    conflict: float | None
    """The mean K between two judges; None with fewer than two that scored it."""
    own_conflict: float | None
    """The mean K of a judge with itself: how torn judges are before they differ."""
    voices: tuple[Voice, ...]
    """One that speaks for the class; where judges differ or nothing is decided, one of each."""
    quotes: int
    missing_quotes: int
    """Of all verdicts, not only those shown."""
    supported: bool | None
    """Of KNOWN_GAP alone: whether a gap entry matches the error, or was quoted for it."""

    @property
    def classification(self) -> str:
        """The class, or `undecided`."""
        return self.tally.classification

    @property
    def disputed(self) -> bool:
        """Whether judges that decided came to different classes."""
        return len({one.classification for one in self.judges.values()} - {UNDECIDED}) > 1


def finding(case: Case, opinions: Sequence[Opinion]) -> Finding:
    """What the verdicts on one failure say together.

    Args:
        case: the failure as it was judged.
        opinions: every verdict on its evidence, failed ones too.
    """
    for one in opinions:
        if one.sample.evidence.hash != case.evidence.hash:
            raise DesignError(
                f"a verdict on {one.sample.evidence.title!r} among those on {case.evidence.title!r}"
            )
    ordered = sorted(opinions, key=lambda one: (one.judge, one.sample.replicate))
    named = list(dict.fromkeys(one.judge for one in ordered))
    judges = {name: _tally([one for one in ordered if one.judge == name]) for name in named}
    tally = _tally(ordered)
    voices = [_voice(case, one) for one in ordered]
    between, own = _conflict(ordered, named)
    quotes = [quote for voice in voices for quote in voice.quotes]
    known_gap = tally.classification == KNOWN_GAP
    return Finding(
        case=case,
        tally=tally,
        judges=judges,
        conflict=between,
        own_conflict=own,
        voices=_speaking(voices, tally, judges),
        quotes=len(quotes),
        missing_quotes=sum(quote.part is None for quote in quotes),
        supported=_supported(case, voices) if known_gap else None,
    )


def _classes(sample: Sample) -> tuple[str, ...]:
    return tuple(CLASSES[stage - 1] for stage in sample.stages)


def _tally(opinions: Sequence[Opinion]) -> Tally:
    counted = Counter(one.sample.status for one in opinions)
    masses = dict.fromkeys(CLASSES, Fraction(0))
    for one in opinions:
        for name in _classes(one.sample):
            masses[name] += Fraction(1, len(one.sample.stages))
    return Tally({status: counted[status] for status in STATUSES if counted[status]}, masses)


def _conflict(opinions: Sequence[Opinion], judges: Sequence[str]) -> tuple[float | None, ...]:
    """K between judges and of each with itself, abstentions left out."""
    cell = np.array([judges.index(one.judge) for one in opinions], dtype=np.int64)
    chosen = np.array(
        [sum(1 << stage - 1 for stage in one.sample.stages) for one in opinions], dtype=np.int64
    )
    made = sources(cell, chosen, frame=len(CLASSES), cells=len(judges))
    found = panel_conflict(made.masses, np.zeros(len(judges), dtype=np.int64), groups=1)
    values = (float(found.pairwise[0]), float(found.own[0]))
    return tuple(None if isnan(value) else value for value in values)


# --- what judges said ----------------------------------------------------------------------------


def _voice(case: Case, one: Opinion) -> Voice:
    remarks = read_remarks(one.reply)
    model_first = ("candidate", "error", "task", "grader", "answer", "gaps")
    expected_first = ("answer", "grader", "task", "gaps", "error", "candidate")
    return Voice(
        one.judge,
        one.sample.status,
        _classes(one.sample),
        remarks.reasoning,
        _quote(case, remarks.model_code, model_first),
        _quote(case, remarks.expected_code, expected_first),
    )


def _quote(case: Case, text: str, order: Sequence[str]) -> Quote | None:
    if not text:
        return None
    return Quote(text, next((part for part in order if occurs(text, case.parts[part])), None))


def occurs(snippet: str, text: str) -> bool:
    r"""Whether a text has a snippet, however its white space is set.

    Lines of three dots stand for what a judge left out; the pieces must follow one another.

    >>> occurs("def f():\n...\n  return 2", "def f():\n    x = 1\n    return 2")
    True
    >>> occurs("return 3", "return 2")
    False
    """
    flat, whole = _flat(text), _flat(snippet)
    if whole and whole in flat:
        return True
    pieces = [piece for part in _ELISION.split(snippet) if (piece := _flat(part))]
    start = 0
    for piece in pieces:
        found = flat.find(piece, start)
        if found < 0:
            return False
        start = found + len(piece)
    return bool(pieces)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _speaking(
    voices: Sequence[Voice], tally: Tally, judges: Mapping[str, Tally]
) -> tuple[Voice, ...]:
    """Whom a report quotes, those for its class first: such as name no other, and quote well."""

    def best(wanted: str, among: Sequence[Voice]) -> Voice | None:
        told = [voice for voice in among if voice.reasoning or voice.quotes]
        return min(
            told,
            key=lambda voice: (
                wanted not in voice.classes,
                voice.status != "scored",
                len(voice.classes),
                sum(quote.part is None for quote in voice.quotes),
            ),
            default=None,
        )

    decided = {one.classification for one in judges.values()}
    if tally.classification != UNDECIDED and len(decided) == 1:
        chosen = [best(tally.classification, voices)]
    else:
        chosen = [
            best(one.classification, [voice for voice in voices if voice.judge == name])
            for name, one in judges.items()
        ]
    spoken = [voice for voice in chosen if voice is not None]
    return tuple(sorted(spoken, key=lambda voice: tally.classification not in voice.classes))


def _supported(case: Case, voices: Sequence[Voice]) -> bool:
    """Whether a gap is on record for this failure, not only in a judge's opinion."""
    gaps = case.parts["gaps"] if case.facts.gap_entries else ""
    quoted = [
        quote.text for voice in voices if KNOWN_GAP in voice.classes for quote in voice.quotes
    ]
    return case.facts.gap is not None or any(
        len(_flat(text)) >= TELLING and occurs(text, gaps) for text in quoted
    )
