"""The ledger: one row per question asked of a model, append-only rows for the attempts at it.

Any completed attempt is the answer, and is reused for ever; only a question without a completion
is asked again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

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
        found: dict[str, Answer] = {}
        with self._database.read() as connection:
            for start in range(0, len(wanted), CHUNK):
                some = calls.c.key.in_(wanted[start : start + CHUNK])
                query = sa.select(calls.c.key, calls.c.id).where(some)
                found.update({key: Answer(id, None) for key, id in connection.execute(query)})
        return found | self.find(wanted)

    def record(
        self,
        key: str,
        request: Request,
        endpoint: str,
        payer: Payer,
        *,
        seconds: float,
        completion: Completion | None = None,
        error: str | None = None,
    ) -> Answer:
        """Write an attempt, and the question at its first."""
        with self._database.begin() as connection:
            call_id = self._call(connection, key, request, endpoint)
            row = {
                "call_id": call_id,
                "run_id": payer.run_id,
                "study": payer.study,
                "tag": payer.tag,
                "stage": payer.stage,
                "at": datetime.now(UTC),
                "seconds": seconds,
                "completed": completion is not None,
                "text": self.keep(connection, completion.text) if completion else None,
                "finish": completion.finish if completion else None,
                "reported_model": completion.model if completion else None,
                "input_tokens": completion.input_tokens if completion else None,
                "output_tokens": completion.output_tokens if completion else None,
                "usd": completion.usd if completion else None,
                "error": error,
            }
            connection.execute(_INSERT_ATTEMPT, row)
        self._remember(request)
        return Answer(call_id, completion)

    def _remember(self, request: Request) -> None:
        """Its texts are committed now, and need not be written again."""
        if len(self._kept) > 100_000:
            self._kept.clear()
        parts = (part for message in request.messages for part in message.parts if part)
        self._kept.update(content_hash(proper(part)) for part in parts)

    def keep(self, connection: sa.Connection, text: str) -> str:
        """Store a text once; its hash. Half a surrogate, which no database takes, becomes `?`."""
        text = proper(text)
        hash = content_hash(text)
        if hash not in self._kept:
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

    def _call(self, connection: sa.Connection, key: str, request: Request, endpoint: str) -> int:
        messages = [
            [m.role, [self.keep(connection, part) for part in m.parts if part]]
            for m in request.messages
        ]
        row = call_row(key, request, endpoint, messages)
        return self._database.once(connection, calls, row, "key")


def call_row(
    key: str, request: Request, endpoint: str, messages: list[list[Any]]
) -> dict[str, Any]:
    """A question as it is stored; its messages are roles and the hashes of their parts."""
    return {
        "key": key,
        "model": request.model,
        "endpoint": bare_endpoint(endpoint),
        "messages": messages,
        "parameters": {"temperature": request.temperature, "max_tokens": request.max_tokens},
        "schema": dict(request.schema) if request.schema else None,
        "series": request.draw.series,
        "draw": request.draw.index,
        "ask": request.draw.ask,
    }


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
    return [texts.c.body, a.finish, a.reported_model, a.input_tokens, a.output_tokens, a.usd]
