"""Imports the calls of another lab, all of a file or nothing.

An import is one transaction, so that a file that is refused, or a process that is killed, leaves
nothing behind. One page of lines is in memory at a time.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.records import Window, content_hash, digest
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.evidence import insert_pool, window_key, window_row
from judge_gym.store.ledger import bodies_of, call_ids, call_row, result_columns
from judge_gym.store.ledger_file import (
    AttemptLine,
    CallLine,
    EvidenceLine,
    LedgerFile,
    TextLine,
    WindowLine,
    check_of,
)

PAGE = 100
"""Lines in memory at once."""


class Imported(NamedTuple):
    """The numbers of imported records."""

    calls: int
    """Calls in the file."""
    new: int
    """Calls that this lab did not have."""
    attempts: int
    """Attempts that were added, to new calls and to calls without an answer."""
    answered: int
    """Calls that had an answer here, which is kept."""
    differing: int
    """Of these, calls with another answer in the file."""


def import_ledger(database: Database, path: Path) -> Imported:
    """Adds the records of a file that are new; existing answers are kept.

    Imported attempts name the study that paid, but no run, since this lab did not pay.
    """
    file = LedgerFile(path)
    totals = Imported(0, 0, 0, 0, 0)
    with database.begin() as connection:
        lines = file.lines()
        evidence = _EvidenceImport(database, connection, file)
        while page := list(itertools.islice(lines, PAGE)):
            texts = [(n, line) for n, line in page if isinstance(line, TextLine)]
            calls = [(n, line) for n, line in page if isinstance(line, CallLine)]
            _add_texts(database, connection, file, texts)
            added = _add_calls(database, connection, file, calls)
            totals = Imported(*map(sum, zip(totals, added, strict=True)))
            for number, line in page:
                if isinstance(line, EvidenceLine):
                    evidence.add(number, line)
        evidence.freeze_pools()
    return totals


def _add_texts(
    database: Database,
    connection: sa.Connection,
    file: LedgerFile,
    lines: Sequence[tuple[int, TextLine]],
) -> None:
    for number, line in lines:
        if content_hash(line.body) != line.hash:
            raise file.error(number, f"the text does not match the hash {line.hash[:12]}")
    rows = [{"hash": line.hash, "body": line.body} for _, line in lines]
    database.insert_new(connection, t.texts, rows)


def _add_calls(
    database: Database,
    connection: sa.Connection,
    file: LedgerFile,
    lines: Sequence[tuple[int, CallLine]],
) -> Imported:
    """Adds calls, and attempts at those that have no answer here."""
    rows = _verified(connection, file, lines)
    keys = [row["key"] for row in rows]
    before = call_ids(connection, keys)
    database.insert_new(connection, t.calls, rows)
    ids = call_ids(connection, keys)
    stored = _attempts(connection, list(ids.values()))
    added: list[dict[str, Any]] = []
    answered = differing = 0
    for _, line in lines:
        texts_by_time = stored[ids[line.key]]
        answers = [text for text in texts_by_time.values() if text]
        if answers:
            incoming = [attempt.said.text for attempt in line.attempts if attempt.said]
            answered, differing = (
                answered + 1,
                differing + (incoming[-1:] not in ([], answers[-1:])),
            )
            continue
        for attempt in line.attempts:
            if attempt.at not in texts_by_time:
                texts_by_time[attempt.at] = attempt.said.text if attempt.said else None
                added.append(_attempt_row(ids[line.key], attempt))
    if added:
        connection.execute(t.attempts.insert(), added)
    return Imported(len(lines), len(ids) - len(before), len(added), answered, differing)


def _verified(
    connection: sa.Connection, file: LedgerFile, lines: Sequence[tuple[int, CallLine]]
) -> list[dict[str, Any]]:
    """Returns the rows of calls after checking their texts and hashes."""
    bodies = bodies_of(connection, {hash for _, line in lines for hash in line.texts})
    rows = []
    for number, line in lines:
        if unknown := next((hash for hash in line.texts if hash not in bodies), None):
            raise file.error(number, f"no earlier line has the text {unknown[:12]}")
        request = line.request(bodies)
        if request.key(line.endpoint) != line.key:
            raise file.error(number, f"the call {line.key[:12]} does not match its request")
        if check_of(line.attempts) != line.check:
            raise file.error(number, f"the attempts at the call {line.key[:12]} were changed")
        messages = [[role, list(parts)] for role, parts in line.messages]
        rows.append(call_row(line.key, request, line.endpoint, messages))
    return rows


def _attempt_row(call_id: int, attempt: AttemptLine) -> dict[str, Any]:
    return {
        "call_id": call_id,
        "run_id": None,  # this lab did not pay
        **attempt.model_dump(include={"study", "tag", "stage", "at", "seconds", "error"}),
        "text": attempt.said.text if attempt.said else None,
        **result_columns(attempt.said, attempt.billed),
    }


def _attempts(
    connection: sa.Connection, ids: Sequence[int]
) -> dict[int, dict[datetime, str | None]]:
    """Returns the stored attempts at calls: the hash of each answer by time, oldest first."""
    a = t.attempts.c
    query = sa.select(a.call_id, a.at, a.text).where(a.call_id.in_(ids)).order_by(a.id)
    by_call: dict[int, dict[datetime, str | None]] = defaultdict(dict)
    for call_id, at, text in connection.execute(query):
        by_call[call_id][at] = text
    return by_call


class _EvidenceImport:
    """Adds evidence of a file to windows and pools; what exists already is kept."""

    def __init__(self, database: Database, connection: sa.Connection, file: LedgerFile) -> None:
        self._database = database
        self._connection = connection
        self._file = file
        self._windows: dict[str, int | None] = {}
        """Ids by key; None where this lab made the search, and keeps what it found."""
        self._pools: dict[str, list[tuple[EvidenceLine, int]]] = {}

    def add(self, number: int, line: EvidenceLine) -> None:
        """Adds one item."""
        text = sa.select(t.texts.c.hash).where(t.texts.c.hash == line.text)
        if self._connection.scalar(text) is None:
            raise self._file.error(number, f"no earlier line has the text {line.text[:12]}")
        columns = {
            "text",
            "title",
            "url",
            "date",
            "source",
            "metadata",
            "pair",
            "cluster",
            "fields",
        }
        row = line.model_dump(include=columns)
        id = self._database.insert_or_find(self._connection, t.evidence, row, "text")
        if line.pool is not None:
            self._pools.setdefault(line.pool, []).append((line, id))
            return
        if line.window is None:
            raise self._file.error(number, "the evidence belongs to no window and no pool")
        window_id = self._window(line.window)
        if window_id is not None:
            item = {
                "window_id": window_id,
                "evidence_id": id,
                "added": datetime.now(UTC),
                "truth": line.truth,
            }
            self._database.insert_new(self._connection, t.window_items, [item])

    def freeze_pools(self) -> None:
        """Freezes the pools, after all items were added; an existing name is kept."""
        for name, items in self._pools.items():
            window_line = items[0][0].window
            window_id = self._row(_window(window_line)) if window_line else None
            hash = digest([line.text for line, _ in items])
            members = [(item, line.truth) for line, item in items]
            id = insert_pool(self._database, self._connection, hash, window_id, members)
            named = {"name": name, "pool_id": id, "frozen": datetime.now(UTC)}
            self._database.insert_new(self._connection, t.pool_names, [named])

    def _window(self, line: WindowLine) -> int | None:
        window = _window(line)
        key = window_key(window)
        if key not in self._windows:
            id = self._row(window)
            c = t.collections.c
            finished = sa.select(c.id).where(c.window_id == id, c.error == "").limit(1)
            searched_here = self._connection.scalar(finished) is not None
            self._windows[key] = None if searched_here else id
            if not searched_here:
                search = {
                    "window_id": id,
                    "at": datetime.now(UTC),
                    "source": window.search.partition(" ")[0].rstrip(":"),
                    "added": 0,
                    "dropped": {},
                    "error": "",
                }
                self._connection.execute(t.collections.insert(), search)
        return self._windows[key]

    def _row(self, window: Window) -> int:
        return self._database.insert_or_find(self._connection, t.windows, window_row(window), "key")


def _window(line: WindowLine) -> Window:
    return Window(line.country, line.start, line.end, line.search)
