"""The ledger: one row per call of a model, and append-only rows for the attempts at it.

Any completed attempt answers the call and is reused; only a call without a completion is made
again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, TypeVar

import sqlalchemy as sa

from judge_gym.errors import Bill
from judge_gym.records import (
    Completion,
    Message,
    Request,
    bare_endpoint,
    content_hash,
    storable,
)
from judge_gym.store.database import Database, driver_cursor
from judge_gym.store.tables import attempts, calls, texts

_INSERT_ATTEMPT = attempts.insert()
COST = ("input_tokens", "output_tokens", "cached_tokens", "usd")
Key = TypeVar("Key", int, str)
CHUNK = 500
"""Keys per query; SQLite limits the number of parameters."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the ledger holds of one call."""

    call_id: int
    completion: Completion | None
    """None if no attempt completed."""


@dataclass(frozen=True, slots=True)
class Payer:
    """Which run pays for an attempt, and at which stage."""

    run_id: int
    study: str
    tag: str
    stage: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a call, and its result."""

    key: str
    request: Request
    endpoint: str
    payer: Payer
    seconds: float
    completion: Completion | None = None
    error: str | None = None
    bill: Bill | None = None
    """The cost of an attempt without a completion, if known."""
    sent: bool = True
    """False where there was no connection."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def row(self, text: str | None) -> dict[str, Any]:
        """Returns the row without its call; `text` is the hash of the completion's text."""
        return {
            "run_id": self.payer.run_id,
            "study": self.payer.study,
            "tag": self.payer.tag,
            "stage": self.payer.stage,
            "at": self.at,
            "seconds": self.seconds,
            "text": text,
            "error": storable(self.error) if self.error is not None else None,
            **result_columns(self.completion, self.bill),
            "unsent": None if self.sent else True,
        }


def result_columns(answer: Any, bill: Any) -> dict[str, Any]:
    """Returns the columns of an attempt that its answer or, without one, its bill fills."""
    cost = answer or bill
    return {
        "completed": answer is not None,
        "finish": answer.finish if answer else None,
        "reported_model": answer.model if answer else None,
        **{name: getattr(cost, name, None) for name in COST},
    }


def latest_attempt(call_id: sa.Column[int], *, completed: bool) -> sa.ScalarSelect[int]:
    """Returns a query for the newest attempt at a call, or the newest that completed."""
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
        self._stored: set[str] = set()  # hashes of texts that need no write

    def payers(self, keys: Iterable[str]) -> dict[str, int]:
        """Returns how many of these calls each study paid for; imported ones are left out."""
        unique, paid = sorted(keys), Counter[str]()
        for start in range(0, len(unique), CHUNK):
            query = (
                sa.select(attempts.c.study, sa.func.count(sa.distinct(calls.c.id)))
                .join(calls, calls.c.id == attempts.c.call_id)
                .where(calls.c.key.in_(unique[start : start + CHUNK]))
                .where(attempts.c.completed, attempts.c.run_id.is_not(None))
                .group_by(attempts.c.study)
            )
            paid.update(self._database.pairs(query))
        return dict(paid)

    def find(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Returns the answers to calls that were completed, by key."""
        unique = list(dict.fromkeys(keys))
        answers: dict[str, Answer] = {}
        with self._database.read() as connection:
            for start in range(0, len(unique), CHUNK):
                parameters = {"keys": unique[start : start + CHUNK]}
                for key, call_id, *completion in connection.execute(_answers(), parameters):
                    answers[key] = Answer(call_id, Completion(*completion))
        return answers

    def find_asked(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Returns the answers to calls that were attempted, without a completion if all failed."""
        unique = list(dict.fromkeys(keys))
        with self._database.read() as connection:
            calls = {key: Answer(id, None) for key, id in call_ids(connection, unique).items()}
        return calls | self.find(unique)

    def record(self, group: Sequence[Attempt], *, retry: bool = False) -> list[Answer]:
        """Writes attempts, and calls at their first attempt, in one transaction.

        Args:
            group: the attempts.
            retry: whether some may be stored already: a server that goes away may have committed
                what it did not confirm.
        """
        bodies: dict[str, str] = {}  # of texts that may need a write

        def hash_of(text: str) -> str:
            hash, text = _hash_and_body(text)
            if hash not in self._stored:
                bodies[hash] = text
            return hash

        call_rows: dict[str, dict[str, Any]] = {}
        hashes: set[str] = set()
        for attempt in group:
            messages = [
                [message.role, [hash_of(part) for part in message.parts if part]]
                for message in attempt.request.messages
            ]
            hashes.update(hash for _, parts in messages for hash in parts)
            row = call_row(attempt.key, attempt.request, attempt.endpoint, messages)
            call_rows[attempt.key] = row
        rows = [
            attempt.row(hash_of(attempt.completion.text) if attempt.completion else None)
            for attempt in group
        ]
        # One transaction for the group, which costs as much as one for a single attempt.
        with self._database.begin() as connection:
            # In order, so that two processes that write the same texts cannot deadlock.
            stored = [{"hash": hash, "body": bodies[hash]} for hash in sorted(bodies)]
            self._database.insert_new(connection, texts, stored)
            self._database.insert_new(
                connection, calls, [call_rows[key] for key in sorted(call_rows)]
            )
            ids = call_ids(connection, call_rows)
            for attempt, row in zip(group, rows, strict=True):
                row["call_id"] = ids[attempt.key]
            if retry:
                rows = [row for row in rows if not _is_stored(connection, row)]
            self._database.insert_rows(connection, _INSERT_ATTEMPT, rows)
        # Texts of requests recur; those of answers mostly do not.
        # Only after the commit: a rolled back transaction has stored none of them.
        if len(self._stored) > 100_000:
            self._stored.clear()
        self._stored.update(hashes)
        return [Answer(ids[attempt.key], attempt.completion) for attempt in group]

    def save_text(self, connection: sa.Connection, text: str) -> str:
        """Stores a text once and returns its hash."""
        text = storable(text)
        hash = content_hash(text)
        self._database.insert_new(connection, texts, [{"hash": hash, "body": text}])
        return hash

    def answers(self, call_ids: Sequence[int]) -> dict[int, str]:
        """Returns the last text that answered each of a few calls, by the number of the call."""
        query = (
            sa.select(attempts.c.call_id, texts.c.body)
            .join(texts, texts.c.hash == attempts.c.text)
            .where(attempts.c.call_id.in_(call_ids))
            .order_by(attempts.c.id)
        )
        with self._database.read() as connection:
            return {row.call_id: row.body for row in connection.execute(query)}

    def transcript(self, call_id: int) -> tuple[Sequence[Message], Sequence[sa.RowMapping]]:
        """Returns the messages of a call, and every attempt at it, oldest first."""
        messages = sa.select(calls.c.messages).where(calls.c.id == call_id)
        history = (
            sa.select(attempts, texts.c.body)
            .outerjoin(texts, texts.c.hash == attempts.c.text)
            .where(attempts.c.call_id == call_id)
            .order_by(attempts.c.id)
        )
        with self._database.read() as connection:
            stored = connection.scalar(messages) or []
            bodies = bodies_of(connection, {hash for _, parts in stored for hash in parts})
            tried = connection.execute(history).mappings().all()
        return [
            Message(role, tuple(bodies[hash] for hash in parts)) for role, parts in stored
        ], tried


def call_row(
    key: str, request: Request, endpoint: str, messages: list[list[Any]]
) -> dict[str, Any]:
    """Returns the row of a call; its messages are roles and the hashes of their parts."""
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


def _is_stored(connection: sa.Connection, row: Mapping[str, Any]) -> bool:
    same = [attempts.c[name] == row[name] for name in ("call_id", "run_id", "at")]
    return bool(connection.execute(sa.select(sa.exists().where(*same))).scalar_one())


def call_ids(connection: sa.Connection, keys: Iterable[str]) -> dict[str, int]:
    """Returns the ids of stored calls by key."""
    listed = list(keys)
    if connection.dialect.name != "sqlite" or len(listed) > CHUNK:
        return by_key(connection, calls.c.key, calls.c.id, listed)
    # Each group of attempts asks this: SQLAlchemy takes longer to expand the keys than SQLite
    # takes to find them.
    marks = ", ".join("?" * len(listed))
    query = f"SELECT key, id FROM calls WHERE key IN ({marks})"
    with driver_cursor(connection, query) as cursor:
        return dict(cursor.execute(query, listed))


@lru_cache(256)  # rubrics and instructions recur in the calls that are in flight together
def _hash_and_body(text: str) -> tuple[str, str]:
    """Returns the hash of a text as it is stored, and that text."""
    body = storable(text)
    return content_hash(body), body


def bodies_of(connection: sa.Connection, hashes: Iterable[str]) -> dict[str, str]:
    """Returns stored texts by hash."""
    return by_key(connection, texts.c.hash, texts.c.body, hashes)


def by_key(
    connection: sa.Connection, key: sa.Column[Key], value: sa.Column[Any], keys: Iterable[Key]
) -> dict[Key, Any]:
    """Returns the values of one column by those of another."""
    listed, values = list(keys), dict[Key, Any]()
    for start in range(0, len(listed), CHUNK):
        parameters = {"keys": listed[start : start + CHUNK]}
        values.update(
            {row[0]: row[1] for row in connection.execute(_values(key, value), parameters)}
        )
    return values


# Queries are built once: building one takes longer than a lookup.


@cache
def _values(key: sa.Column[Key], value: sa.Column[Any]) -> sa.Select[Any]:
    """Returns the query for the values of one column where another is among given `keys`."""
    return sa.select(key, value).where(key.in_(sa.bindparam("keys", expanding=True)))


@cache
def _answers() -> sa.Select[Any]:
    """Returns the query for the completed answers to the calls with given `keys`."""
    return (
        sa.select(calls.c.key, calls.c.id, *completion_columns())
        .join(attempts, attempts.c.call_id == calls.c.id)
        .join(texts, texts.c.hash == attempts.c.text)
        .where(calls.c.key.in_(sa.bindparam("keys", expanding=True)))
        .where(attempts.c.id == latest_attempt(calls.c.id, completed=True))
    )


def completion_columns() -> list[sa.ColumnElement[object]]:
    """Returns the columns of a `Completion`, from attempts joined with texts."""
    a = attempts.c
    cached = sa.func.coalesce(a.cached_tokens, 0)
    tokens = [a.input_tokens, a.output_tokens]
    return [texts.c.body, a.finish, a.reported_model, *tokens, a.usd, cached]
