"""Joins the verdicts on a failure into a finding: its class, the share, and judges' conflict."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isnan
from typing import NamedTuple

from judge_gym.errors import DesignError
from judge_gym.records import STATUSES, Sample, Status
from judge_gym.triage.results import CLASSES, KNOWN_GAP, UNDECIDED
from judge_gym.triage.study import Case

NO_VERDICT = "no scored verdict"
SENTENCES = 3
"""The most sentences of a judge's reasoning that a finding shows."""
SHORTEST_QUOTE = 20
"""Characters that a quote of the known gaps must have to support a class."""
_ELISION = re.compile(r"^[ \t]*(?:#|//)?[ \t]*(?:\.\.\.|…)[ \t]*$", re.M)


class JudgeVerdict(NamedTuple):
    """One verdict of one judge, with the reply that it was read from."""

    judge: str
    sample: Sample
    reply: str
    """The raw text; empty where every attempt failed."""


class Quote(NamedTuple):
    """A snippet that a judge quoted, and the part of the evidence that contains it."""

    text: str
    part: str | None
    """None where it is not in the evidence."""


class Explanation(NamedTuple):
    """The reasoning and quotes that a judge gave with one verdict."""

    judge: str
    status: Status
    classes: tuple[str, ...]
    reasoning: str
    model_code: Quote | None
    expected_code: Quote | None

    @property
    def quotes(self) -> list[Quote]:
        """The snippets that the judge quoted."""
        return [quote for quote in (self.model_code, self.expected_code) if quote is not None]


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """Verdicts by status, and the scored mass of each class."""

    statuses: Mapping[Status, int]
    masses: Mapping[str, Fraction]
    """Each scored verdict has a mass of 1, in equal parts for the classes that it names."""

    @property
    def scored(self) -> int:
        """The number of verdicts that name a class."""
        return self.statuses.get("scored", 0)

    @property
    def classification(self) -> str:
        """The class with the most mass, or `undecided` without a single one."""
        most = max(self.masses.values(), default=Fraction(0))
        leading = [name for name, mass in self.masses.items() if mass == most]
        return leading[0] if len(leading) == 1 and most else UNDECIDED

    @property
    def label(self) -> str:
        """The class as a report shows it: a judge without a scored verdict is not undecided."""
        return self.classification if self.scored else NO_VERDICT

    @property
    def share(self) -> float | None:
        """The leading class's share of the scored mass, None where nothing was scored."""
        return float(max(self.masses.values()) / self.scored) if self.scored else None


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure, classified."""

    case: Case
    counts: VerdictCounts
    judges: Mapping[str, VerdictCounts]
    conflict: float | None
    """The mean K between two judges; None with fewer than two that scored it."""
    own_conflict: float | None
    """The mean K within a judge: how much its own verdicts exclude each other."""
    explanations: tuple[Explanation, ...]
    """One for the class; where judges differ or nothing is decided, one of each judge."""
    quotes: int
    missing_quotes: int
    """Quotes that are not in the evidence; both counts are of all verdicts, shown or not."""
    supported: bool | None
    """Whether a gap entry matches the error or was quoted for it; None for other classes."""

    @property
    def classification(self) -> str:
        """The class, or `undecided`."""
        return self.counts.classification

    @property
    def disputed(self) -> bool:
        """Whether two judges decided on different classes."""
        return len({counts.classification for counts in self.judges.values()} - {UNDECIDED}) > 1


def make_finding(case: Case, verdicts: Sequence[JudgeVerdict]) -> Finding:
    """Combines the verdicts on one failure.

    Args:
        case: the failure as it was judged.
        verdicts: every verdict on its evidence, failed ones too.
    """
    for verdict in verdicts:
        if verdict.sample.evidence.hash != case.evidence.hash:
            raise DesignError(
                f"a verdict on {verdict.sample.evidence.title!r} among those on "
                f"{case.evidence.title!r}"
            )
    ordered = sorted(verdicts, key=lambda each: (each.judge, each.sample.replicate))
    named = list(dict.fromkeys(verdict.judge for verdict in ordered))
    judges = {
        name: _count([verdict for verdict in ordered if verdict.judge == name]) for name in named
    }
    counts = _count(ordered)
    explanations = [_explanation(case, verdict) for verdict in ordered]
    between, within = _conflict(ordered, named)
    quotes = [quote for explanation in explanations for quote in explanation.quotes]
    known_gap = counts.classification == KNOWN_GAP
    return Finding(
        case=case,
        counts=counts,
        judges=judges,
        conflict=between,
        own_conflict=within,
        explanations=_choose_explanations(explanations, counts, judges),
        quotes=len(quotes),
        missing_quotes=sum(quote.part is None for quote in quotes),
        supported=_is_on_record(case, explanations) if known_gap else None,
    )


def _classes(sample: Sample) -> tuple[str, ...]:
    return tuple(CLASSES[stage - 1] for stage in sample.stages)


def _count(verdicts: Sequence[JudgeVerdict]) -> VerdictCounts:
    counted = Counter(verdict.sample.status for verdict in verdicts)
    masses = dict.fromkeys(CLASSES, Fraction(0))
    for verdict in verdicts:
        for name in _classes(verdict.sample):
            masses[name] += Fraction(1, len(verdict.sample.stages))
    statuses = {status: counted[status] for status in STATUSES if counted[status]}
    return VerdictCounts(statuses, masses)


def _conflict(verdicts: Sequence[JudgeVerdict], judges: Sequence[str]) -> tuple[float | None, ...]:
    """Computes the mean K between judges and within each, without abstentions."""
    import numpy as np

    from judge_gym.analysis.belief.disagreement import panel_conflict
    from judge_gym.analysis.belief.masses import sources

    cell = np.array([judges.index(verdict.judge) for verdict in verdicts], dtype=np.int64)
    sets = np.array(
        [sum(1 << stage - 1 for stage in verdict.sample.stages) for verdict in verdicts],
        dtype=np.int64,
    )
    beliefs = sources(cell, sets, frame=len(CLASSES), cells=len(judges))
    conflict = panel_conflict(beliefs.masses, np.zeros(len(judges), dtype=np.int64), groups=1)
    values = (float(conflict.pairwise[0]), float(conflict.own[0]))
    return tuple(None if isnan(value) else value for value in values)


# --- explanations --------------------------------------------------------------------------------


def _explanation(case: Case, verdict: JudgeVerdict) -> Explanation:
    remarks = read_remarks(verdict.reply)
    model_first = ("candidate", "error", "task", "grader", "answer", "gaps")
    expected_first = ("answer", "grader", "task", "gaps", "error", "candidate")
    return Explanation(
        verdict.judge,
        verdict.sample.status,
        _classes(verdict.sample),
        shorten_reasoning(remarks.reasoning),
        _quote(case, remarks.model_code, model_first),
        _quote(case, remarks.expected_code, expected_first),
    )


def _quote(case: Case, text: str, order: Sequence[str]) -> Quote | None:
    if not text:
        return None
    return Quote(text, next((part for part in order if occurs(text, case.parts[part])), None))


def occurs(snippet: str, text: str) -> bool:
    r"""Tells whether a text contains a snippet, whatever the white space.

    Lines of three dots stand for what a judge left out; the pieces must follow one another.

    >>> occurs("def f():\n...\n  return 2", "def f():\n    x = 1\n    return 2")
    True
    >>> occurs("return 3", "return 2")
    False
    """
    flat, words = _flat(text), _flat(snippet)
    if words and words in flat:
        return True
    pieces = [piece for part in _ELISION.split(snippet) if (piece := _flat(part))]
    start = 0
    for piece in pieces:
        position = flat.find(piece, start)
        if position < 0:
            return False
        start = position + len(piece)
    return bool(pieces)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _choose_explanations(
    explanations: Sequence[Explanation],
    counts: VerdictCounts,
    judges: Mapping[str, VerdictCounts],
) -> tuple[Explanation, ...]:
    """Chooses the explanations that a report shows, those for the finding's class first.

    The best one names its class alone, and all of its quotes are in the evidence.
    """

    def best(name: str, among: Sequence[Explanation]) -> Explanation | None:
        return min(
            (explanation for explanation in among if explanation.reasoning or explanation.quotes),
            key=lambda explanation: (
                name not in explanation.classes,
                explanation.status != "scored",
                len(explanation.classes),
                sum(quote.part is None for quote in explanation.quotes),
            ),
            default=None,
        )

    decided = {counted.classification for counted in judges.values()}
    if counts.classification != UNDECIDED and len(decided) == 1:
        candidates = [best(counts.classification, explanations)]
    else:
        candidates = [
            best(
                counted.classification,
                [explanation for explanation in explanations if explanation.judge == judge],
            )
            for judge, counted in judges.items()
        ]
    best_ones = [explanation for explanation in candidates if explanation is not None]
    return tuple(
        sorted(best_ones, key=lambda explanation: counts.classification not in explanation.classes)
    )


def _is_on_record(case: Case, explanations: Sequence[Explanation]) -> bool:
    """Tells whether a gap is on record for this failure, not only in a judge's opinion."""
    gaps = case.parts["gaps"] if case.facts.gap_entries else ""
    quoted = [
        quote.text
        for explanation in explanations
        if KNOWN_GAP in explanation.classes
        for quote in explanation.quotes
    ]
    return case.facts.gap is not None or any(
        len(_flat(text)) >= SHORTEST_QUOTE and occurs(text, gaps) for text in quoted
    )


# --- what judges write ---------------------------------------------------------------------------


class Remarks(NamedTuple):
    """The reasoning and quotes of a judge's reply, each possibly empty."""

    reasoning: str
    model_code: str
    expected_code: str


_LABEL = re.compile(
    r"[\s*#_>`-]*(?:(?:my|the|final)\s+)*(?P<label>reasoning|model code|expected code|verdict)"
    r"[*_` ]*:[*_]*[ ]*(?P<rest>.*)",
    re.I,
)
# Some judges fence their verdict.
_CLOSING = re.compile(r"\s*(?:```|~~~)\w*\s*\W*verdict\W*:[^\n]*\s*(?:```|~~~)\s*\Z", re.I)
_NOTHING = re.compile(r"\W*(?:none|n/a|nothing)\W*", re.I)
_FENCE = re.compile(r"\s{0,3}(?P<ticks>`{3,}|~{3,})(?P<info>[^`]*)\Z")


def read_remarks(reply: str) -> Remarks:
    """Reads reasoning and quotes from a judge's reply, which is free text or JSON.

    Labels within fences are part of what is quoted. Without labels all that comes before the
    verdict is the reasoning.
    """
    parts: dict[str, list[str]] = {"": []}
    label, open_fence = "", ""
    for line in _CLOSING.sub("", _free_text(reply)).splitlines():
        mark = _FENCE.match(line)
        if open_fence:
            closes = mark and mark["ticks"].startswith(open_fence) and not mark["info"].strip()
            open_fence = "" if closes else open_fence
        elif mark:
            open_fence = mark["ticks"]
        elif match := _LABEL.match(line):
            label, line = match["label"].lower(), match["rest"]
            parts[label] = []  # the last of its kind counts, as with verdicts
            opens = _FENCE.match(line)
            open_fence = opens["ticks"] if opens else ""
        parts[label].append(line)
    reasoning = parts.get("reasoning") or parts[""]
    return Remarks(
        "\n".join(reasoning).strip(),
        _quote_of(parts.get("model code", [])),
        _quote_of(parts.get("expected code", [])),
    )


_WORD = re.compile(r"\w")
_FENCED = re.compile(r"^\s{0,3}(`{3,}|~{3,}).*?(?:^\s{0,3}\1[^\n]*$|\Z)", re.M | re.S)
# A sentence ends before white space and the beginning of another, but not after an abbreviation,
# an initial or the number of a list.
_SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bcf)(?<!\b[A-Z])(?<![\s(]\d)(?<!\A\d)"
    r"[.!?][\"')\]*_]*(?=\s+[\"'`(\[*_#-]*[A-Z0-9`]|\s*\Z)|\n\s*\n"
)


def shorten_reasoning(text: str) -> str:
    """Cuts a judge's reasoning to three sentences, without fenced code.

    Of more than that the last ones are returned: whoever writes at length concludes at the end.

    >>> shorten_reasoning("It is long. One. Two, e.g. this. Three at `a.b`.")
    'One. Two, e.g. this. Three at `a.b`.'
    """
    prose = _FENCED.sub("", text)
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(prose))]
    starts = [
        start for start, end in pairwise([*ends, len(prose)]) if _WORD.search(prose[start:end])
    ]
    return prose[starts[-SENTENCES] if len(starts) > SENTENCES else 0 :].strip()


def _free_text(reply: str) -> str:
    """The reply, or the reasoning of a reply that is a JSON object."""
    try:
        value = json.loads(reply[reply.index("{") : reply.rindex("}") + 1], strict=False)
    except (ValueError, RecursionError):
        return reply
    reasoning = value.get("reasoning") if isinstance(value, dict) and "verdict" in value else None
    return reasoning if isinstance(reasoning, str) else reply


def _quote_of(lines: Sequence[str]) -> str:
    """Extracts a part's first fenced block, or all of it, or nothing for `NONE`."""
    if _NOTHING.fullmatch(next((line for line in lines if line.strip()), "")):
        return ""
    marks = [index for index, line in enumerate(lines) if _FENCE.match(line)]
    if marks:
        ticks = _FENCE.match(lines[marks[0]])
        assert ticks is not None
        ends = [n for n in marks[1:] if lines[n].strip().startswith(ticks["ticks"])]
        lines = lines[marks[0] + 1 : ends[0] if ends else len(lines)]
    text = "\n".join(lines).strip("\n")
    return "" if re.fullmatch(rf"\W*|{_NOTHING.pattern}", text, re.I) else text
