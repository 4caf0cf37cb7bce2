"""The ledger: one row per question asked of a model, append-only rows for the attempts at it.

Any completed attempt is the answer, and is reused for ever; only a question without a completion
is asked again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from judge_gym.errors import Bill
from judge_gym.records import (
    Completion,
    Message,
    Request,
    Role,
    bare_endpoint,
    content_hash,
    proper,
)
from judge_gym.store.database import Database
from judge_gym.store.tables import attempts, calls, texts

_INSERT_ATTEMPT = attempts.insert()
CHUNK = 500
"""Keys per query; SQLite takes a limited number of parameters."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the ledger holds of one question."""

    call_id: int
    completion: Completion | None
    """None where no attempt brought one."""


@dataclass(frozen=True, slots=True)
class Payer:
    """Which run pays for an attempt, and at which stage."""

    run_id: int
    study: str
    tag: str
    stage: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a question, as it ended."""

    key: str
    request: Request
    endpoint: str
    payer: Payer
    seconds: float
    completion: Completion | None = None
    error: str | None = None
    bill: Bill | None = None
    """What it cost where it brought no completion."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def row(self, text: str | None) -> dict[str, Any]:
        """It as it is stored, but for its call; `text` is the hash of what was answered."""
        said = self.completion
        took = said or self.bill
        return {
            "run_id": self.payer.run_id,
            "study": self.payer.study,
            "tag": self.payer.tag,
            "stage": self.payer.stage,
            "at": self.at,
            "seconds": self.seconds,
            "completed": said is not None,
            "text": text,
            "finish": said.finish if said else None,
            "reported_model": said.model if said else None,
            "input_tokens": took.input_tokens if took else None,
            "output_tokens": took.output_tokens if took else None,
            "cached_tokens": took.cached_tokens if took else None,
            "usd": took.usd if took else None,
            "error": proper(self.error) if self.error is not None else None,
        }


def latest_attempt(call_id: sa.Column[int], *, completed: bool) -> sa.ScalarSelect[int]:
    """The newest attempt at a call, or the newest that brought a completion."""
    other = attempts.alias()
    newest = sa.select(sa.func.max(other.c.id)).where(other.c.call_id == call_id)
    return (
        (newest.where(other.c.completed) if completed else newest)
        .correlate(call_id.table)
        .scalar_subquery()
    )


class Ledger:
    """Finds answers and records attempts."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: set[str] = set()  # hashes that are surely stored, to save a write each

    def find(self, keys: Iterable[str]) -> dict[str, Answer]:
        """The answers to questions that were ever completed, by key."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Answer] = {}
        with self._database.read() as connection:
            for start in range(0, len(wanted), CHUNK):
                query = (
                    sa.select(calls.c.key, calls.c.id, *completion_columns())
                    .join(attempts, attempts.c.call_id == calls.c.id)
                    .join(texts, texts.c.hash == attempts.c.text)
                    .where(calls.c.key.in_(wanted[start : start + CHUNK]))
                    .where(attempts.c.id == latest_attempt(calls.c.id, completed=True))
                )
                for key, call_id, *completion in connection.execute(query):
                    found[key] = Answer(call_id, Completion(*completion))
        return found

    def find_asked(self, keys: Iterable[str]) -> dict[str, Answer]:
        """What is known of questions that were ever asked: the answer, or that none came."""
        wanted = list(dict.fromkeys(keys))
        with self._database.read() as connection:
            asked = {key: Answer(id, None) for key, id in call_ids(connection, wanted).items()}
        return asked | self.find(wanted)

    def record(self, group: Sequence[Attempt], *, again: bool = False) -> list[Answer]:
        """Write attempts in one transaction, and questions at the first attempt at them.

        Args:
            group: the attempts.
            again: whether they may be there already: a server that goes away may have committed
                what it did not confirm.
        """
        bodies: dict[str, str] = {}  # of the texts that are not surely stored

        def noted(text: str) -> str:
            text = proper(text)
            hash = content_hash(text)
            if hash not in self._kept:
                bodies[hash] = text
            return hash

        questions: dict[str, dict[str, Any]] = {}
        asked: set[str] = set()
        for attempt in group:
            messages = [
                [message.role, [noted(part) for part in message.parts if part]]
                for message in attempt.request.messages
            ]
            asked.update(hash for _, parts in messages for hash in parts)
            row = call_row(attempt.key, attempt.request, attempt.endpoint, messages)
            questions[attempt.key] = row
        rows = [
            attempt.row(noted(attempt.completion.text) if attempt.completion else None)
            for attempt in group
        ]
        with self._database.begin() as connection:
            # In order, so that two who write the same at once wait for each other one way only.
            stored = [{"hash": hash, "body": bodies[hash]} for hash in sorted(bodies)]
            self._database.add(connection, texts, stored)
            self._database.add(connection, calls, [questions[key] for key in sorted(questions)])
            ids = call_ids(connection, questions)
            for attempt, row in zip(group, rows, strict=True):
                row["call_id"] = ids[attempt.key]
            if again:
                rows = [row for row in rows if not _is_there(connection, row)]
            if rows:
                connection.execute(_INSERT_ATTEMPT, rows)
        # Answers are mostly written once; what is asked comes again and again.
        if len(self._kept) > 100_000:
            self._kept.clear()
        self._kept.update(asked)
        return [Answer(ids[attempt.key], attempt.completion) for attempt in group]

    def keep(self, connection: sa.Connection, text: str) -> str:
        """Store a text once; its hash. Half a surrogate, which no database takes, becomes `?`."""
        text = proper(text)
        hash = content_hash(text)
        self._database.add(connection, texts, [{"hash": hash, "body": text}])
        return hash

    def transcript(self, call_id: int) -> tuple[Sequence[Message], Sequence[sa.RowMapping]]:
        """What was asked, and every attempt at an answer."""
        with self._database.read() as connection:
            stored = (
                connection.scalar(sa.select(calls.c.messages).where(calls.c.id == call_id)) or []
            )
            hashes = {hash for _, parts in stored for hash in parts}
            body = bodies_of(connection, hashes)
            tried = sa.select(attempts, texts.c.body).outerjoin(
                texts, texts.c.hash == attempts.c.text
            )
            history = connection.execute(
                tried.where(attempts.c.call_id == call_id).order_by(attempts.c.id)
            )
            return [
                _message(role, [body[h] for h in parts]) for role, parts in stored
            ], history.mappings().all()


def call_row(
    key: str, request: Request, endpoint: str, messages: list[list[Any]]
) -> dict[str, Any]:
    """A question as it is stored; its messages are roles and the hashes of their parts."""
    return {
        "key": key,
        "model": request.model,
        "endpoint": bare_endpoint(endpoint),
        "messages": messages,
        "parameters": request.parameters,
        "schema": dict(request.schema) if request.schema else None,
        "series": request.draw.series,
        "draw": request.draw.index,
        "ask": request.draw.ask,
    }


def _is_there(connection: sa.Connection, row: Mapping[str, Any]) -> bool:
    same = [attempts.c[name] == row[name] for name in ("call_id", "run_id", "at")]
    return bool(connection.execute(sa.select(sa.exists().where(*same))).scalar_one())


def call_ids(connection: sa.Connection, keys: Iterable[str]) -> dict[str, int]:
    """The rows of questions by their keys; those that are not there are left out."""
    wanted, found = list(keys), dict[str, int]()
    for start in range(0, len(wanted), CHUNK):
        some = calls.c.key.in_(wanted[start : start + CHUNK])
        rows = connection.execute(sa.select(calls.c.key, calls.c.id).where(some))
        found.update({key: id for key, id in rows})
    return found


def bodies_of(connection: sa.Connection, hashes: Iterable[str]) -> dict[str, str]:
    """Texts by their hashes; those that are not there are left out."""
    wanted, found = list(hashes), dict[str, str]()
    for start in range(0, len(wanted), CHUNK):
        some = texts.c.hash.in_(wanted[start : start + CHUNK])
        rows = connection.execute(sa.select(texts.c.hash, texts.c.body).where(some))
        found.update({hash: body for hash, body in rows})
    return found


def _message(role: Role, parts: list[str]) -> Message:
    return Message(role, tuple(parts))


def completion_columns() -> list[sa.ColumnElement[object]]:
    """What a completion is made of, of an attempt joined with its text."""
    a = attempts.c
    cached = sa.func.coalesce(a.cached_tokens, 0)
    tokens = [a.input_tokens, a.output_tokens]
    return [texts.c.body, a.finish, a.reported_model, *tokens, a.usd, cached]
