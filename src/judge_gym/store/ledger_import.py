"""Import: calls of another lab join the ledger, all of a file or nothing.

An import is one transaction, so that a file that is refused, or a process that is killed, leaves
nothing behind; what is in memory at once is a page of lines.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.records import content_hash
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import bodies_of, call_ids, call_row
from judge_gym.store.ledger_evidence import Arrivals
from judge_gym.store.ledger_file import (
    Attempt,
    CallLine,
    EvidenceLine,
    LedgerFile,
    TextLine,
    check_of,
    utc,
)

PAGE = 100
"""Lines that are in memory together."""


class Imported(NamedTuple):
    """What became of the calls of a file."""

    calls: int
    """In the file."""
    new: int
    """That were never asked here."""
    attempts: int
    """Added, to these and to calls that were asked here in vain."""
    answered: int
    """That had an answer here, which stays."""
    differing: int
    """Of these, with another answer in the file."""


class Held(NamedTuple):
    """An attempt that a call has here."""

    at: datetime
    text: str | None


def import_ledger(database: Database, path: Path) -> Imported:
    """Add what a file holds; an answer that is here already stays, so a second time is nothing.

    Imported attempts have no run: they say who paid, and nobody paid for them here.
    """
    file = LedgerFile(path)
    totals = Imported(0, 0, 0, 0, 0)
    with database.begin() as connection:
        lines = file.lines()
        arrivals = Arrivals(database, connection, file)
        while page := list(itertools.islice(lines, PAGE)):
            texts = [(n, line) for n, line in page if isinstance(line, TextLine)]
            calls = [(n, line) for n, line in page if isinstance(line, CallLine)]
            _take_texts(database, connection, file, texts)
            taken = _take_calls(database, connection, file, calls)
            totals = Imported(*map(sum, zip(totals, taken, strict=True)))
            for number, line in page:
                if isinstance(line, EvidenceLine):
                    arrivals.take(number, line)
        arrivals.settle()
    return totals


def _take_texts(
    database: Database,
    connection: sa.Connection,
    file: LedgerFile,
    lines: Sequence[tuple[int, TextLine]],
) -> None:
    for number, line in lines:
        if content_hash(line.body) != line.hash:
            raise file.fault(number, f"the text is not the one of the hash {line.hash[:12]}")
    rows = [{"hash": line.hash, "body": line.body} for _, line in lines]
    database.add(connection, t.texts, rows)


def _take_calls(
    database: Database,
    connection: sa.Connection,
    file: LedgerFile,
    lines: Sequence[tuple[int, CallLine]],
) -> Imported:
    """Add calls, and attempts at those that have no answer here."""
    rows = _verified(connection, file, lines)
    keys = [row["key"] for row in rows]
    before = call_ids(connection, keys)
    database.add(connection, t.calls, rows)
    ids = call_ids(connection, keys)
    held = _held(connection, list(ids.values()))
    added: list[dict[str, Any]] = []
    answered = differing = 0
    for _, line in lines:
        here = held[ids[line.key]]
        answer = next((one.text for one in reversed(here) if one.text), None)
        if answer is not None:
            said = [attempt.said.text for attempt in line.attempts if attempt.said]
            answered, differing = answered + 1, differing + (said[-1:] not in ([], [answer]))
            continue
        known = {one.at for one in here}
        fresh = [attempt for attempt in line.attempts if utc(attempt.at) not in known]
        added += [_attempt_row(ids[line.key], attempt) for attempt in fresh]
        here += [Held(utc(one.at), one.said.text if one.said else None) for one in fresh]
    if added:
        connection.execute(t.attempts.insert(), added)
    return Imported(len(lines), len(ids) - len(before), len(added), answered, differing)


def _verified(
    connection: sa.Connection, file: LedgerFile, lines: Sequence[tuple[int, CallLine]]
) -> list[dict[str, Any]]:
    """The rows of calls that are what they say."""
    bodies = bodies_of(connection, {hash for _, line in lines for hash in line.texts})
    rows = []
    for number, line in lines:
        if unknown := next((hash for hash in line.texts if hash not in bodies), None):
            raise file.fault(number, f"no line before it holds the text {unknown[:12]}")
        request = line.request(bodies)
        if request.key(line.endpoint) != line.key:
            raise file.fault(number, f"the call {line.key[:12]} is not the hash of what it asks")
        if check_of(line.attempts) != line.check:
            raise file.fault(number, f"the attempts at the call {line.key[:12]} were changed")
        messages = [[role, list(parts)] for role, parts in line.messages]
        rows.append(call_row(line.key, request, line.endpoint, messages))
    return rows


def _attempt_row(call_id: int, attempt: Attempt) -> dict[str, Any]:
    said = attempt.said
    took = said or attempt.billed
    return {
        "call_id": call_id,
        "run_id": None,  # nobody paid for it here
        **attempt.model_dump(include={"study", "tag", "stage", "seconds", "error"}),
        "at": utc(attempt.at),
        "completed": said is not None,
        "text": said.text if said else None,
        "finish": said.finish if said else None,
        "reported_model": said.model if said else None,
        "input_tokens": took.input_tokens if took else None,
        "output_tokens": took.output_tokens if took else None,
        "cached_tokens": took.cached_tokens if took else None,
        "usd": took.usd if took else None,
    }


def _held(connection: sa.Connection, ids: Sequence[int]) -> dict[int, list[Held]]:
    """The attempts that calls have here, oldest first."""
    a = t.attempts.c
    query = sa.select(a.call_id, a.at, a.text).where(a.call_id.in_(ids)).order_by(a.id)
    held: dict[int, list[Held]] = defaultdict(list)
    for call_id, at, text in connection.execute(query):
        held[call_id].append(Held(utc(at), text))
    return held
