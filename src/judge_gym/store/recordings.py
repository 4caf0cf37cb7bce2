"""Writes verdicts that others recorded: their calls, without a run that paid, and their samples."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.records import (
    Completion,
    Display,
    Request,
    Status,
    content_hash,
    storable,
)
from judge_gym.records.calls import Finish
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import call_ids, call_row, result_columns
from judge_gym.store.runs import Run
from judge_gym.store.verdicts import display_text

PAGE = 1_000
"""Verdicts in memory at once, beside those that were read."""
FINISH: Mapping[Status, Finish] = {"truncated": "length", "refused": "refusal"}
"""How an answer ended, by the status of its verdict; else as it should."""
UNSAID = "the call failed where it was recorded"


class Place(NamedTuple):
    """Which verdict of a run it is."""

    evidence_id: int
    replicate: int
    flipped: bool


class RecordedVerdict(NamedTuple):
    """A verdict, and the call behind it as far as it was recorded."""

    place: Place
    status: Status
    stages: tuple[int, ...]
    display: Display
    request: Request
    endpoint: str
    answer: str
    """Empty where it was not recorded."""
    usd: float | None
    seconds: float


class RecordedVerdicts:
    """Saves recorded verdicts, and finds those that were saved before."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_run(self, run: Run) -> dict[Place, tuple[Status, str]]:
        """Returns the status and stages of a run's verdicts, with a given rubric."""
        s = t.samples.c
        query = sa.select(s.evidence_id, s.replicate, s.flipped, s.status, s.stages)
        with self._database.read() as connection:
            rows = connection.execute(query.where(s.run_id == run.id))
            return {Place(*key): (status, stages) for *key, status, stages in rows}

    def save(self, run: Run, rubric_id: int, verdicts: Iterable[RecordedVerdict]) -> int:
        """Saves verdicts of a run that has none; returns how many calls are new."""
        new = 0
        with self._database.begin() as connection:
            for page in _pages(verdicts):
                ids, added = self._save_calls(connection, page)
                rows = [
                    {
                        "run_id": run.id,
                        "rubric_id": rubric_id,
                        **verdict.place._asdict(),
                        "is_swap": False,
                        "status": verdict.status,
                        "stages": " ".join(map(str, verdict.stages)),
                        "display": display_text(verdict.display),
                        "call_id": id,
                    }
                    for verdict, id in zip(page, ids, strict=True)
                ]
                connection.execute(t.samples.insert(), rows)
                new += added
        return new

    def _save_calls(
        self, connection: sa.Connection, page: list[RecordedVerdict]
    ) -> tuple[list[int], int]:
        """Saves the calls that are new with their answer; returns the ids of all, and how many."""
        texts: dict[str, str] = {}

        def hash_of(text: str) -> str:
            text = storable(text)
            hash = content_hash(text)
            texts[hash] = text
            return hash

        keys = [verdict.request.key(verdict.endpoint) for verdict in page]
        before = call_ids(connection, dict.fromkeys(keys))
        rows, attempts = {}, {}
        for key, verdict in zip(keys, page, strict=True):
            if key in before or key in rows:
                continue
            messages = [
                [message.role, [hash_of(part) for part in message.parts if part]]
                for message in verdict.request.messages
            ]
            rows[key] = call_row(key, verdict.request, verdict.endpoint, messages)
            attempts[key] = _attempt(verdict, hash_of(verdict.answer) if verdict.answer else None)
        stored = [{"hash": hash, "body": texts[hash]} for hash in sorted(texts)]
        self._database.insert_new(connection, t.texts, stored)
        self._database.insert_new(connection, t.calls, [rows[key] for key in sorted(rows)])
        ids = call_ids(connection, dict.fromkeys(keys))
        if attempts:
            connection.execute(
                t.attempts.insert(),
                [{**attempt, "call_id": ids[key]} for key, attempt in attempts.items()],
            )
        return [ids[key] for key in keys], len(rows)


def _attempt(verdict: RecordedVerdict, text: str | None) -> dict[str, Any]:
    """Returns the row of an attempt that no run and no study of this lab paid for."""
    said = None
    if verdict.status != "provider_error":
        finish = FINISH.get(verdict.status, "stop")
        said = Completion("", finish, verdict.request.model, 0, 0, verdict.usd)
    return {
        "run_id": None,
        "study": None,
        "tag": None,
        "stage": "scorer",
        "at": datetime.now(UTC),
        "seconds": verdict.seconds,
        "text": text if said else None,
        "error": None if said else UNSAID,
        **result_columns(said, None),
    }


def _pages(verdicts: Iterable[RecordedVerdict]) -> Iterator[list[RecordedVerdict]]:
    left = iter(verdicts)
    while page := list(itertools.islice(left, PAGE)):
        yield page
