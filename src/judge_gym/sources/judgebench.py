"""Reads JudgeBench as published: pairs of responses, and recorded judgments of them.

One response of a pair is objectively correct, the other is not (Tan et al. 2024, arXiv:2410.12784).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from judge_gym.errors import DesignError, unknown
from judge_gym.records import Evidence, content_hash
from judge_gym.records.pairs import PairDecision
from judge_gym.sources.files import json_lines

if TYPE_CHECKING:
    from judge_gym.stages.answer_lines import LabelledLine

Decision = Literal["A>B", "B>A", "A=B"]
Order = Literal["given", "reversed"]
ORDERS: tuple[Order, ...] = ("given", "reversed")
STAGES: dict[Decision, int] = {"A>B": 1, "B>A": 2, "A=B": 3}
OPPOSITE = {1: 2, 2: 1, 3: 3}
LABELS: tuple[Decision, ...] = ("A>B", "B>A")
CATEGORIES = {
    "livebench-reasoning": "reasoning",
    "livebench-math": "math",
    "livecodebench": "coding",
}
COMPARED = re.compile(r"\s*([AB])\s*(>>?|<<?|==?)\s*([AB])\s*")
TAG = re.compile(r"\[\[([^\[\]]*)\]\]")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A recorded decision that differs from our reading of the judge's text.

    In both, A is the response that was shown first.
    """

    pair: str
    order: Order
    recorded: Decision | None
    read: Decision | None


@dataclass(frozen=True, slots=True)
class Judgments:
    """The published output of a judge."""

    judge: str
    """Its name and model."""
    decisions: tuple[PairDecision, ...]
    """By pair, in the given order first."""
    read: int
    """The number of judgments with a verdict such as `[[A>B]]` in their text."""
    unread: int
    """The number of judgments without such a verdict, or without a text."""
    disagreements: tuple[Disagreement, ...]


def category(source: str) -> str:
    """Returns the benchmark's category of a source; an unknown source is its own category.

    >>> category("mmlu-pro-computer science"), category("livecodebench"), category("mine")
    ('knowledge', 'coding', 'mine')
    """
    return "knowledge" if source.startswith("mmlu-pro-") else CATEGORIES.get(source, source)


def read_pairs(path: Path) -> tuple[Evidence, ...]:
    """Reads the pairs of a file; their truth is stage 1 (first response better) or 2 (second)."""
    return tuple(
        Evidence(
            title=f"{row['source']} {row.get('original_id') or row['pair_id'][:8]}",
            text=row["question"],
            source=row["source"],
            truth=_truth(row, where),
            metadata={
                "id": row["pair_id"],
                "category": category(row["source"]),
                "response_model": row.get("response_model") or "",
            },
            responses=(row["response_A"], row["response_B"]),
            cluster=_cluster(row["question"]),
        )
        for row, where in _rows(path, ("question", "response_A", "response_B"))
    )


def _cluster(question: str) -> str:
    """Returns the cluster of a pair: its question, of which there may be several pairs."""
    return f"question {content_hash(question)[:12]}"


def read_judgments(path: Path) -> Judgments:
    """Reads a judge's output: one line per pair, judged in the given order or in both.

    Decisions are the recorded ones, by response. `A>>B` is A>B and `A<B` is B>A, whereas the
    published score, which compares strings, counts `A<B` as no decision.
    """
    from judge_gym.stages.answer_lines import clean_lines

    decisions: list[PairDecision] = []
    judge: dict[str, str] = {}
    read = unread = 0
    disagreements: list[Disagreement] = []
    for row, where in _rows(path):
        _same_judge(judge, row, "judge_name", where)
        for order, entry in zip(ORDERS, _entries(row, where), strict=False):
            recorded = _recorded(entry.get("decision"), where)
            stage = STAGES[recorded] if recorded else None
            decisions.append(
                PairDecision(
                    evidence=row["pair_id"],
                    truth=_truth(row, where),
                    flipped=order == "reversed",
                    decision=OPPOSITE[stage] if stage and order == "reversed" else stage,
                    category=category(row["source"]),
                    cluster=_cluster(row["question"]) if row.get("question") else "",
                )
            )
            judgment = entry.get("judgment")
            details = judgment if isinstance(judgment, dict) else {"response": judgment}
            _same_judge(judge, details, "judge_model", where)
            text = details.get("response")
            if not isinstance(text, str) or not _verdicts(clean_lines(text)):
                unread += 1
                continue
            read += 1
            if (ours := read_decision(text)) != recorded:
                disagreements.append(Disagreement(row["pair_id"], order, recorded, ours))
    name = " ".join(judge[key] for key in ("judge_name", "judge_model") if key in judge)
    return Judgments(name or path.stem, tuple(decisions), read, unread, tuple(disagreements))


def read_decision(text: str) -> Decision | None:
    r"""Returns the decision of an answer that ends in a verdict such as `[[A>>B]]`, if it is clear.

    The last verdict decides; adjacent verdicts that differ decide nothing. (The published reader
    finds no decision in an answer with different verdicts.)

    >>> read_decision("At first [[A>B]].\nBut B alone is right.\nMy final verdict is: [[B>>A]]")
    'B>A'
    >>> read_decision("[[A>B]] or [[B>A]]")
    """
    from judge_gym.stages.answer_lines import adjacent_lines, clean_lines

    lines = clean_lines(text)
    found = _verdicts(lines)
    if not found:
        return None
    together = {_decision(verdict.payload) for verdict in adjacent_lines(lines, found)}
    return together.pop() if len(together) == 1 else None


def _verdicts(lines: list[str]) -> "list[LabelledLine]":
    from judge_gym.stages.answer_lines import LabelledLine

    return [
        LabelledLine(number, tag)
        for number, line in enumerate(lines)
        for tag in TAG.findall(line)
        if _decision(tag)
    ]


def _decision(text: str) -> Decision | None:
    """Returns the decision of a comparison such as `A>>B` or `B<A`, if it is one."""
    match = COMPARED.fullmatch(text)
    if not match or match[1] == match[3]:
        return None
    if "=" in match[2]:
        return "A=B"
    better = match[1] if ">" in match[2] else match[3]
    return "A>B" if better == "A" else "B>A"


def _recorded(decision: object, where: str) -> Decision | None:
    read = _decision(decision) if isinstance(decision, str) else None
    if read is None and decision is not None:
        raise DesignError(f"{where}: {unknown('decision', decision, STAGES)}", choices=STAGES)
    return read


def _truth(row: dict[str, Any], where: str) -> int:
    if row["label"] not in LABELS:
        raise DesignError(f"{where}: {unknown('label', row['label'], LABELS)}", choices=LABELS)
    return STAGES[row["label"]]


def _entries(row: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """Returns the judgments of a line, in the given order and reversed; a failed one is empty."""
    entries = row.get("judgments")
    if not isinstance(entries, list) or not 1 <= len(entries) <= 2:
        raise DesignError(f"{where}: 'judgments' is a list of one or two, in the order shown")
    for entry in entries:
        if not isinstance(entry, dict | None):
            raise DesignError(f"{where}: a judgment is null or an object, not {entry!r}")
    return [entry or {} for entry in entries]


def _same_judge(judge: dict[str, str], given: dict[str, Any], field: str, where: str) -> None:
    """Records the judge's name or model, and refuses a second judge in a file."""
    value = given.get(field)
    if isinstance(value, str) and judge.setdefault(field, value) != value:
        raise DesignError(f"{where}: {field} is {value!r} and was {judge[field]!r} above")


def _rows(path: Path, needed: tuple[str, ...] = ()) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the checked lines of a file with their places."""
    seen: dict[str, int] = {}
    for number, row in json_lines(path):
        where = f"{path}:{number}"
        if not isinstance(row, dict):
            raise DesignError(f"{where}: a line is an object, not {row!r}")
        for field in ("pair_id", "source", "label", *needed):
            _check_text(row.get(field), field, where)
        if (first := seen.setdefault(row["pair_id"], number)) != number:
            raise DesignError(f"{where}: pair_id {row['pair_id']!r} is on line {first} already")
        yield row, where
    if not seen:
        raise DesignError(f"{path} has no pairs")


def _check_text(value: object, field: str, where: str) -> None:
    if value is None or value == "":
        raise DesignError(f"{where}: {field!r} is missing")
    if not isinstance(value, str):
        raise DesignError(f"{where}: {field!r} is a text, not {value!r}")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise DesignError(f"{where}: {field!r} has a lone surrogate, half of a character")
