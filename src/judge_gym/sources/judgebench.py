"""Reads JudgeBench as published: pairs of responses, and recorded judgments of them.

One response of a pair is objectively correct, the other is not (Tan et al. 2024, arXiv:2410.12784).
The importer of the format reads the lines; it is loaded when a file is read, since a lab that only
opens needs no statistics.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from judge_gym.records import Evidence, content_hash
from judge_gym.records.pairs import PairDecision

if TYPE_CHECKING:
    from judge_gym.recorded.importers.judgebench import Decision

Order = Literal["given", "reversed"]
ORDERS: tuple[Order, ...] = ("given", "reversed")
STAGES: "dict[Decision, int]" = {"A>B": 1, "B>A": 2, "A=B": 3}
OPPOSITE = {1: 2, 2: 1, 3: 3}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A recorded decision that differs from our reading of the judge's text.

    In both, A is the response that was shown first.
    """

    pair: str
    order: Order
    recorded: "Decision | None"
    read: "Decision | None"


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


def read_pairs(path: Path) -> tuple[Evidence, ...]:
    """Reads the pairs of a file, whose truth is the stage 1 (first response better) or 2."""
    from judge_gym.recorded.importers.judgebench import category, checked_rows, truth_of

    return tuple(
        Evidence(
            title=f"{row['source']} {row.get('original_id') or row['pair_id'][:8]}",
            text=row["question"],
            source=row["source"],
            truth=STAGES[truth_of(row, where)],
            metadata={
                "id": row["pair_id"],
                "category": category(row["source"]),
                "response_model": row.get("response_model") or "",
            },
            responses=(row["response_A"], row["response_B"]),
            cluster=_cluster(row["question"]),
        )
        for row, where in checked_rows(path, ("question", "response_A", "response_B"))
    )


def _cluster(question: str) -> str:
    """The cluster of a pair: its question, of which there may be several pairs."""
    return f"question {content_hash(question)[:12]}"


def read_judgments(path: Path) -> Judgments:
    """Reads a judge's output: one line per pair, judged in the given order or in both.

    Decisions are the recorded ones, by response. `A>>B` is A>B and `A<B` is B>A, whereas the
    published score, which compares strings, counts `A<B` as no decision.
    """
    from judge_gym.recorded.importers.judgebench import (
        category,
        decision_lines,
        judged_rows,
        judgments_of,
        read_decision,
        truth_of,
    )
    from judge_gym.stages.answer_lines import clean_lines

    decisions: list[PairDecision] = []
    names: dict[str, str] = {}
    read = unread = 0
    disagreements: list[Disagreement] = []
    for row, where in judged_rows(path):
        for judgment in judgments_of(row, where):
            names |= {"name": judgment.prompt_name} if judgment.prompt_name else {}
            names |= {"model": judgment.judge} if judgment.judge else {}
            stage = STAGES[judgment.decision] if judgment.decision else None
            decisions.append(
                PairDecision(
                    evidence=row["pair_id"],
                    truth=STAGES[truth_of(row, where)],
                    flipped=judgment.flipped,
                    decision=OPPOSITE[stage] if stage and judgment.flipped else stage,
                    category=category(row["source"]),
                    cluster=_cluster(row["question"]) if row.get("question") else "",
                )
            )
            if not judgment.text or not decision_lines(clean_lines(judgment.text)):
                unread += 1
                continue
            read += 1
            ours = read_decision(judgment.text)
            if ours != judgment.decision:
                order = ORDERS[judgment.flipped]
                disagreements.append(Disagreement(row["pair_id"], order, judgment.decision, ours))
    judge = " ".join(names[key] for key in ("name", "model") if key in names)
    return Judgments(judge or path.stem, tuple(decisions), read, unread, tuple(disagreements))
