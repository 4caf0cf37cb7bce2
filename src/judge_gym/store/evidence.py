"""Evidence: windows, items, pools and views by editors."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from judge_gym.errors import ConflictError, NotFoundError, Remedy, unknown
from judge_gym.records import (
    STATUSES,
    Evidence,
    Pool,
    Status,
    View,
    Window,
    content_hash,
    digest,
    storable,
)
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import Ledger, by_key

UNSCORED = tuple(status for status in STATUSES if status != "scored")
"""The statuses of a failed view, rubric or critique, which a later one replaces."""


class EvidenceRecords:
    """Saves and finds evidence. Each row has a unique key, so that nothing is saved twice."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

    # --- windows ---------------------------------------------------------------------------------

    def save_window(self, window: Window) -> int:
        """Saves a window, or finds it, and returns its id."""
        with self._database.begin() as connection:
            return self._database.insert_or_find(connection, t.windows, window_row(window), "key")

    def find_window(self, id: int) -> Window:
        """Returns a window by its id."""
        row = self._database.first(sa.select(t.windows).where(t.windows.c.id == id))
        if row is None:
            raise NotFoundError(f"there is no window {id}", remedy=Remedy("evidence.list_windows"))
        return Window(row.country, row.start, row.end, row.search)

    def window_id(self, window: Window) -> int | None:
        """Returns the id of a window, or None if it is not saved."""
        query = sa.select(t.windows.c.id).where(t.windows.c.key == window_key(window))
        id: int | None = self._database.scalar(query)
        return id

    def list_windows(self) -> list[dict[str, Any]]:
        """Returns every window with its number of items."""
        items = sa.func.count(t.window_items.c.evidence_id)
        dropped = sa.func.count(t.window_items.c.dropped)
        query = (
            sa.select(
                t.windows.c.id.label("window"),
                t.windows.c.country,
                t.windows.c.start,
                t.windows.c.end,
                t.windows.c.search,
                (items - dropped).label("items"),
                dropped.label("dropped"),
            )
            .outerjoin(t.window_items, t.window_items.c.window_id == t.windows.c.id)
            .group_by(t.windows.c.id)
            .order_by(t.windows.c.id)
        )
        return self._database.rows(query)

    def add_to_window(self, window_id: int, items: Sequence[Evidence]) -> int:
        """Adds evidence to a window; returns how many items are new to it."""
        with self._database.begin() as connection:
            before = self._count(connection, window_id)
            rows = [
                {
                    "window_id": window_id,
                    "evidence_id": id,
                    "added": datetime.now(UTC),
                    "truth": item.truth,
                }
                for id, item in zip(self._save(connection, items), items, strict=True)
            ]
            self._database.insert_new(connection, t.window_items, rows)
            for row in rows:  # a corrected truth replaces the stored one
                if row["truth"] is not None:
                    i = t.window_items.c
                    mine = sa.and_(i.window_id == window_id, i.evidence_id == row["evidence_id"])
                    change = t.window_items.update().where(mine)
                    connection.execute(change.values(truth=row["truth"]))
            return self._count(connection, window_id) - before

    def _count(self, connection: sa.Connection, window_id: int) -> int:
        mine = t.window_items.c.window_id == window_id
        return int(connection.scalar(sa.select(sa.func.count()).where(mine)) or 0)

    def window_items(self, window_id: int, *, dropped: bool = False) -> tuple[Evidence, ...]:
        """Returns the items of a window in the order of arrival; with `dropped`, also those."""
        i = t.window_items.c
        query = (
            _items(i.truth)
            .join(t.window_items, i.evidence_id == t.evidence.c.id)
            .where(i.window_id == window_id)
            .order_by(i.id)
        )
        if not dropped:
            query = query.where(i.dropped.is_(None))
        return self._evidence(query)

    def drop(self, window_id: int, evidence_ids: Collection[int], *, undo: bool = False) -> int:
        """Removes items from a window, or restores them, and returns how many; pools keep them."""
        i = t.window_items.c
        mine = sa.and_(i.window_id == window_id, i.evidence_id.in_(evidence_ids))
        with self._database.begin() as connection:
            window_ids = set(connection.scalars(sa.select(i.evidence_id).where(mine)))
            missing = sorted(set(evidence_ids) - window_ids)
            if missing:
                raise NotFoundError(f"the window {window_id} holds no evidence {missing[0]}")
            current = i.dropped.is_not(None) if undo else i.dropped.is_(None)
            change = t.window_items.update().where(mine, current)
            dropped = None if undo else datetime.now(UTC)
            return connection.execute(change.values(dropped=dropped)).rowcount

    def windows_of(self, evidence_ids: Collection[int]) -> list[int]:
        """Returns the windows that hold any of these items."""
        i = t.window_items.c
        query = sa.select(i.window_id).distinct().where(i.evidence_id.in_(evidence_ids))
        return sorted(self._database.scalars(query))

    def record_collection(
        self, window_id: int, source: str, added: int, dropped: Mapping[str, int], error: str
    ) -> None:
        """Records what a search added and left out, and the error that ended it early."""
        row = {
            "window_id": window_id,
            "at": datetime.now(UTC),
            "source": source,
            "added": added,
            "dropped": dict(dropped),
            "error": error,
        }
        with self._database.begin() as connection:
            connection.execute(t.collections.insert().values(row))

    def collections(self, window_id: int) -> list[dict[str, Any]]:
        """Returns the searches and loads that filled a window, oldest first."""
        c = t.collections.c
        query = sa.select(c.at, c.source, c.added, c.dropped, c.error)
        return self._database.rows(query.where(c.window_id == window_id).order_by(c.id))

    # --- pools -----------------------------------------------------------------------------------

    def save_pool(self, pool: Pool) -> Pool:
        """Saves a pool with its items; the same texts in the same order are the same pool."""
        window_id = self.save_window(pool.window) if pool.window else None
        with self._database.begin() as connection:
            ids = self._save(connection, pool.items)
            items = tuple(replace(item, id=id) for id, item in zip(ids, pool.items, strict=True))
            members = [(item.id, item.truth) for item in items]
            pool_id = insert_pool(self._database, connection, pool.hash, window_id, members)
        return replace(pool, items=items, id=pool_id)

    def find_pool(self, id: int) -> Pool:
        """Returns a pool by its id."""
        p = t.pool_items.c
        query = (
            _items(p.truth)
            .join(t.pool_items, p.evidence_id == t.evidence.c.id)
            .where(p.pool_id == id)
            .order_by(p.position)
        )
        of_pool = sa.select(t.windows).join(t.pools, t.pools.c.window_id == t.windows.c.id)
        row = self._database.first(of_pool.where(t.pools.c.id == id))
        window = Window(row.country, row.start, row.end, row.search) if row else None
        return Pool(self._evidence(query), window, id)

    def name_pool(self, name: str, pool: Pool) -> None:
        """Freezes a saved pool under a name, which never changes its meaning."""
        n = t.pool_names.c
        row = {"name": name, "pool_id": pool.id, "frozen": datetime.now(UTC)}
        with self._database.begin() as connection:
            self._database.insert_new(connection, t.pool_names, [row])
            pool_id = connection.scalar(sa.select(n.pool_id).where(n.name == name))
        if pool_id != pool.id:
            raise ConflictError(
                f"the pool {name!r} is frozen with other evidence; choose another name"
            )

    def find_named_pool(self, name: str) -> Pool:
        """Returns a frozen pool by its name."""
        return self.find_pool(self.named_pool(name))

    def named_pool(self, name: str) -> int:
        """Returns the id of a frozen pool."""
        n = t.pool_names.c
        with self._database.read() as connection:
            id = connection.scalar(sa.select(n.pool_id).where(n.name == name))
            names = connection.scalars(sa.select(n.name).order_by(n.name)).all()
        if id is None:
            freeze = Remedy("evidence.freeze_pool", {"name": name, "window_id": "ID"})
            remedy = None if names else freeze
            raise NotFoundError(unknown("pool", name, names), choices=names, remedy=remedy)
        return int(id)

    def list_pools(self) -> list[dict[str, Any]]:
        """Returns the frozen pools."""
        n, items = t.pool_names.c, sa.func.count(t.pool_items.c.evidence_id)
        query = (
            sa.select(n.name, items.label("items"), t.pools.c.hash, t.pools.c.window_id, n.frozen)
            .join(t.pools, t.pools.c.id == n.pool_id)
            .join(t.pool_items, t.pool_items.c.pool_id == t.pools.c.id)
            .group_by(n.name, t.pools.c.hash, t.pools.c.window_id, n.frozen)
            .order_by(n.name)
        )
        return self._database.rows(query)

    # --- items -----------------------------------------------------------------------------------

    def some_of_window(
        self, window_id: int, after: int, limit: int
    ) -> list[tuple[int, Evidence, bool]]:
        """Returns items of a window after a position: each with position and whether dropped."""
        i = t.window_items.c
        items = _items(i.truth).join(t.window_items, i.evidence_id == t.evidence.c.id)
        dropped = i.dropped.is_not(None).label("dropped")
        query = items.add_columns(i.id.label("position"), dropped).where(i.window_id == window_id)
        return self._some(query.where(i.id > after).order_by(i.id).limit(limit))

    def some_of_pool(
        self, pool_id: int, after: int, limit: int
    ) -> list[tuple[int, Evidence, bool]]:
        """Returns items of a pool after a position, which starts at 1; none is dropped."""
        p = t.pool_items.c
        items = _items(p.truth).join(t.pool_items, p.evidence_id == t.evidence.c.id)
        position, dropped = (p.position + 1).label("position"), sa.false().label("dropped")
        query = items.add_columns(position, dropped).where(p.pool_id == pool_id)
        return self._some(query.where(p.position >= after).order_by(p.position).limit(limit))

    def _some(self, query: sa.Select[Any]) -> list[tuple[int, Evidence, bool]]:
        rows = self._database.rows(query)
        return [(row["position"], _item(row), bool(row["dropped"])) for row in rows]

    def holders(self, evidence_id: int, limit: int) -> dict[str, list[Any]]:
        """Returns the windows, frozen pools and experiments that hold an item, `limit` of each."""
        i, p = t.window_items.c, t.pool_items.c
        pools = sa.select(p.pool_id).where(p.evidence_id == evidence_id)
        named, judged = t.pool_names.c, t.tags.c
        queries = {
            "windows": sa.select(i.window_id).where(i.evidence_id == evidence_id),
            "pools": sa.select(named.name).where(named.pool_id.in_(pools)).order_by(named.name),
            "experiments": sa.select(judged.tag)
            .where(judged.pool_id.in_(pools))
            .order_by(judged.tag),
        }
        return {name: self._database.scalars(query.limit(limit)) for name, query in queries.items()}

    def find_evidence(self, id: int) -> Evidence:
        """Returns an item by its id."""
        items = self._evidence(_items(sa.null().label("truth")).where(t.evidence.c.id == id))
        if not items:
            raise NotFoundError(
                f"there is no evidence {id}", remedy=Remedy("evidence.list_windows")
            )
        return items[0]

    def find_views(self, evidence_id: int) -> list[dict[str, Any]]:
        """Returns the views of an item that editors made, with their checks."""
        v = t.views.c
        query = (
            sa.select(
                v.editor, v.maker, v.status, v.checks, v.call_id, t.texts.c.body.label("text")
            )
            .outerjoin(t.texts, t.texts.c.hash == v.text)
            .where(v.evidence_id == evidence_id)
            .order_by(v.id)
        )
        return self._database.rows(query)

    def add_ids(self, items: Sequence[Evidence]) -> None:
        """Adds own ids to stored items that were saved under another one before."""
        e = t.evidence.c
        with self._database.begin() as connection:
            stored = by_key(connection, e.id, e.metadata, {item.id for item in items})
            for item in items:
                metadata, id = stored[item.id], str(item.metadata["id"])
                ids = {str(metadata.get("id", "")), *metadata.get("ids", ())}
                if id not in ids:
                    metadata = {**metadata, "ids": sorted({*metadata.get("ids", ()), id})}
                    change = t.evidence.update().where(e.id == item.id)
                    connection.execute(change.values(metadata=metadata))

    def _save(self, connection: sa.Connection, items: Sequence[Evidence]) -> list[int]:
        """Saves the items whose text is new, and returns the ids of all."""
        bodies = [storable(item.body) for item in items]
        hashes = [content_hash(body) for body in bodies]
        e = t.evidence.c
        ids = by_key(connection, e.text, e.id, hashes)
        texts: dict[str, dict[str, str]] = {}
        rows: dict[str, dict[str, Any]] = {}
        for hash, body, item in zip(hashes, bodies, items, strict=True):
            if hash not in ids and hash not in rows:  # of items with one text, the first
                texts[hash], rows[hash] = {"hash": hash, "body": body}, _row(hash, item)
        self._database.insert_new(connection, t.texts, [*texts.values()])
        self._database.insert_new(connection, t.evidence, [*rows.values()])
        ids |= by_key(connection, e.text, e.id, rows)
        clusters = {hash: storable(item.cluster) for hash, item in zip(hashes, items, strict=True)}
        stored = by_key(
            connection, e.text, e.cluster, [hash for hash in clusters if clusters[hash]]
        )
        for hash, before in stored.items():  # a cluster that is given later, or corrected
            if clusters[hash] != before:
                change = t.evidence.update().where(e.text == hash)
                connection.execute(change.values(cluster=clusters[hash]))
        parts = {hash: _field_list(item) for hash, item in zip(hashes, items, strict=True)}
        fields = by_key(connection, e.text, e.fields, [hash for hash in parts if parts[hash]])
        for hash, stored_parts in fields.items():  # a text whose parts are named later
            if stored_parts is None:
                change = t.evidence.update().where(e.text == hash)
                connection.execute(change.values(fields=parts[hash]))
        return [ids[hash] for hash in hashes]

    def _evidence(self, query: sa.Select[Any]) -> tuple[Evidence, ...]:
        return tuple(map(_item, self._database.rows(query)))

    # --- views -----------------------------------------------------------------------------------

    def save_views(self, maker: str, editor: str, views: Iterable[View]) -> None:
        """Saves views by one editor; they replace only failed ones."""
        with self._database.begin() as connection:
            rows = [
                {
                    "evidence_id": view.evidence.id,
                    "maker": maker,
                    "editor": editor,
                    "status": view.status,
                    "text": self._ledger.save_text(connection, view.text) if view.text else None,
                    "call_id": view.call_id,
                    "checks": dict(view.checks) if view.checks is not None else None,
                }
                for view in views
            ]
            self._database.insert_or_replace(
                connection, t.views, rows, key=("evidence_id", "maker"), statuses=UNSCORED
            )

    def view_texts(self, maker: str, pool: Pool) -> dict[int, str]:
        """Returns the texts of an editor's views of a pool, by evidence."""
        query = _views(maker, pool, t.texts.c.body).join(t.texts, t.texts.c.hash == t.views.c.text)
        return self._database.pairs(query)

    def viewed_hashes(self, maker: str) -> set[str]:
        """Returns the hashes of the texts that a maker has viewed, or answered without a text."""
        v = t.views.c
        query = sa.select(t.evidence.c.text).join(t.views, v.evidence_id == t.evidence.c.id)
        answered = sa.or_(v.text.is_not(None), v.status != "provider_error")
        return set(self._database.scalars(query.where(v.maker == maker, answered)))

    def unread_views(self, maker: str, pool: Pool) -> dict[int, Status]:
        """Returns the statuses of views that were answered but have no text, by evidence."""
        query = _views(maker, pool, t.views.c.status).where(
            t.views.c.text.is_(None), t.views.c.status != "provider_error"
        )
        return self._database.pairs(query)

    def list_views(self, tags: Sequence[str]) -> list[dict[str, Any]]:
        """Returns the views that experiments use, each once, with their checks."""
        query = (
            sa.select(t.views)
            .distinct()
            .join(t.pool_items, t.pool_items.c.evidence_id == t.views.c.evidence_id)
            .join(t.tags, t.tags.c.pool_id == t.pool_items.c.pool_id)
            .join(t.runs, t.NAMED_RUNS)
            .where(t.views.c.maker == t.runs.c.view_maker, t.runs.c.superseded.is_(None))
            .where(t.tags.c.tag == sa.bindparam("tag"))
        )
        views = {row["id"]: row for tag in tags for row in self._database.rows(query, {"tag": tag})}
        return list(views.values())

    def all_evidence(self) -> tuple[Evidence, ...]:
        """Returns every item of the lab."""
        return self._evidence(_items(sa.null().label("truth")).order_by(t.evidence.c.id))


def _row(text: str, item: Evidence) -> dict[str, Any]:
    return {
        "text": text,
        **{name: storable(getattr(item, name)) for name in ("title", "url", "date", "source")},
        "metadata": dict(item.metadata),
        "pair": bool(item.responses),
        "cluster": storable(item.cluster),
        "fields": _field_list(item),
    }


def _field_list(item: Evidence) -> list[list[str]] | None:
    """Returns an item's named parts as they are stored; a list, since JSONB sorts an object."""
    return [[name, storable(text)] for name, text in item.fields.items()] or None


def insert_pool(
    database: Database,
    connection: sa.Connection,
    hash: str,
    window_id: int | None,
    members: Sequence[tuple[int, Any]],
) -> int:
    """Saves a pool of items, each with its truth, or finds it, and returns its id."""
    row = {
        "hash": hash,
        "window_id": window_id,
        "key": digest([hash, window_id, [truth for _, truth in members]]),
        "loaded": datetime.now(UTC),
    }
    id = database.insert_or_find(connection, t.pools, row, "key")
    rows = [
        {"pool_id": id, "position": n, "evidence_id": item, "truth": truth}
        for n, (item, truth) in enumerate(members)
    ]
    database.insert_new(connection, t.pool_items, rows)
    return id


def window_row(window: Window) -> dict[str, Any]:
    """Returns the row of a window."""
    return {"key": window_key(window), **asdict(window)}


def window_key(window: Window) -> str:
    """Returns the unique key of a window."""
    return digest([window.country, str(window.start), str(window.end), window.search])


def _views(maker: str, pool: Pool, column: sa.Column[Any]) -> sa.Select[tuple[int, Any]]:
    return (
        sa.select(t.views.c.evidence_id, column)
        .join(t.pool_items, t.pool_items.c.evidence_id == t.views.c.evidence_id)
        .where(t.views.c.maker == maker, t.pool_items.c.pool_id == pool.id)
    )


def _items(truth: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return sa.select(t.evidence, t.texts.c.body, truth).join(
        t.texts, t.texts.c.hash == t.evidence.c.text
    )


def _item(row: Mapping[str, Any]) -> Evidence:
    text, *responses = json.loads(row["body"]) if row["pair"] else [row["body"]]
    return Evidence(
        title=row["title"],
        text=text,
        url=row["url"],
        date=row["date"],
        source=row["source"],
        truth=row["truth"],
        metadata=row["metadata"],
        id=row["id"],
        responses=tuple(responses),
        cluster=row["cluster"],
        fields=dict(row["fields"] or ()),
    )
