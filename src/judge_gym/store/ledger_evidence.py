"""Exports and imports evidence with a ledger: what searches found, and frozen pools.

Files that a study names can be copied; what a search found exists only in the lab.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from judge_gym.records import Window, digest
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.evidence import window_key, window_row
from judge_gym.store.ledger_file import EvidenceLine, LedgerFile, WindowLine


def evidence_lines(connection: sa.Connection, tags: Sequence[str] | None) -> Iterator[EvidenceLine]:
    """Yields the items of searched windows and frozen pools, of experiments or of the lab."""
    w, i, n, p = t.windows.c, t.window_items.c, t.pool_names.c, t.pool_items.c
    item: list[Any] = [t.evidence, w.country, w.start, w.end, w.search]
    none = sa.null().label("pool")
    found = (
        sa.select(*item, i.truth, none)
        .join(t.window_items, i.evidence_id == t.evidence.c.id)
        .join(t.windows, w.id == i.window_id)
        .where(w.search != "", i.dropped.is_(None))
        .order_by(i.id)
    )
    frozen = (
        sa.select(*item, p.truth, n.name.label("pool"))
        .join(t.pool_items, p.evidence_id == t.evidence.c.id)
        .join(t.pools, t.pools.c.id == p.pool_id)
        .join(t.pool_names, n.pool_id == t.pools.c.id)
        .outerjoin(t.windows, w.id == t.pools.c.window_id)
        .order_by(n.name, p.position)
    )
    if tags is not None:
        pools = sa.select(t.tags.c.pool_id).where(t.tags.c.tag.in_(tags))
        windows = sa.select(t.pools.c.window_id).where(t.pools.c.id.in_(pools))
        found, frozen = found.where(w.id.in_(windows)), frozen.where(n.pool_id.in_(pools))
    for query in (found, frozen):
        for row in connection.execute(query).mappings():
            yield _line(row)


def _line(row: sa.RowMapping) -> EvidenceLine:
    place = {name: row[name] for name in ("country", "start", "end", "search")}
    kept = ("text", "title", "url", "date", "source", "metadata", "pair", "truth", "pool")
    window = WindowLine(**place) if row["country"] is not None else None
    return EvidenceLine(window=window, **{name: row[name] for name in kept})


class EvidenceImport:
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
        kept = {"text", "title", "url", "date", "source", "metadata", "pair"}
        row = line.model_dump(include=kept)
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
            place = items[0][0].window
            window_id = self._row(_window(place)) if place else None
            hash = digest([line.text for line, _ in items])
            truths: list[Any] = [line.truth for line, _ in items]
            now = datetime.now(UTC)
            row = {
                "hash": hash,
                "window_id": window_id,
                "key": digest([hash, window_id, truths]),
                "loaded": now,
            }
            id = self._database.insert_or_find(self._connection, t.pools, row, "key")
            members = [
                {"pool_id": id, "position": n, "evidence_id": item, "truth": line.truth}
                for n, (line, item) in enumerate(items)
            ]
            self._database.insert_new(self._connection, t.pool_items, members)
            named = {"name": name, "pool_id": id, "frozen": now}
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
