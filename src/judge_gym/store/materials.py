"""Saving and finding what runs share: windows, evidence, pools, views, rubrics, critiques."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import sqlalchemy as sa

from judge_gym.errors import NotFoundError
from judge_gym.records import (
    RUBRIC_KINDS,
    STATUSES,
    Critique,
    Evidence,
    Pool,
    Rubric,
    RubricStage,
    Status,
    View,
    Window,
    digest,
)
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import Ledger

UNREAD = tuple(status for status in STATUSES if status != "scored")
"""A view, rubric or critique that could not be had gives way to one that could."""


class Materials:
    """Records that belong to no run. Every write has a unique key, so a second one is nothing."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

    # --- evidence --------------------------------------------------------------------------------

    def save_window(self, window: Window) -> int:
        """A window's row."""
        key = digest([window.country, str(window.start), str(window.end)])
        with self._database.begin() as connection:
            row = {"key": key, "country": window.country, "start": window.start, "end": window.end}
            return self._database.once(connection, t.windows, row, "key")

    def find_window(self, id: int) -> Window:
        """A window by its row."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(t.windows).where(t.windows.c.id == id)).first()
        if row is None:
            raise NotFoundError(f"there is no window {id}")
        return Window(row.country, row.start, row.end)

    def save_pool(self, pool: Pool) -> Pool:
        """A pool with its evidence; the same texts in the same order are the same pool."""
        window_id = self.save_window(pool.window) if pool.window else None
        with self._database.begin() as connection:
            items = tuple(replace(item, id=self._evidence(connection, item)) for item in pool.items)
            key = digest([pool.hash, window_id, [item.truth for item in items]])
            loaded = datetime.now(UTC)
            row = {"hash": pool.hash, "window_id": window_id, "key": key, "loaded": loaded}
            pool_id = self._database.once(connection, t.pools, row, "key")
            members = [
                {"pool_id": pool_id, "position": n, "evidence_id": item.id, "truth": item.truth}
                for n, item in enumerate(items)
            ]
            self._database.add(connection, t.pool_items, members)
        return replace(pool, items=items, id=pool_id)

    def load_pool(self, pool: Pool) -> Pool:
        """A pool that is now the newest of its window."""
        saved = self.save_pool(pool)
        newest = t.pools.update().where(t.pools.c.id == saved.id)
        with self._database.begin() as connection:
            connection.execute(newest.values(loaded=datetime.now(UTC)))
        return saved

    def find_pool(self, id: int) -> Pool:
        """A pool by its row."""
        with self._database.read() as connection:
            head = connection.execute(
                sa.select(t.windows)
                .join(t.pools, t.pools.c.window_id == t.windows.c.id)
                .where(t.pools.c.id == id)
            ).first()
            rows = connection.execute(
                sa.select(t.evidence, t.texts.c.body, t.pool_items.c.truth)
                .join(t.pool_items, t.pool_items.c.evidence_id == t.evidence.c.id)
                .join(t.texts, t.texts.c.hash == t.evidence.c.text)
                .where(t.pool_items.c.pool_id == id)
                .order_by(t.pool_items.c.position)
            ).mappings()
            items = tuple(_evidence(row) for row in rows)
        return Pool(items, Window(head.country, head.start, head.end) if head else None, id)

    def newest_pool(self, window_id: int) -> Pool | None:
        """The pool that was last loaded into a window."""
        with self._database.read() as connection:
            query = sa.select(t.pools.c.id).where(t.pools.c.window_id == window_id)
            id = connection.scalar(query.order_by(t.pools.c.loaded.desc()).limit(1))
        return self.find_pool(id) if id else None

    def _evidence(self, connection: sa.Connection, item: Evidence) -> int:
        row = {
            "text": self._ledger.keep(connection, item.text),
            "title": item.title,
            "url": item.url,
            "date": item.date,
            "source": item.source,
            "metadata": dict(item.metadata),
        }
        return self._database.once(connection, t.evidence, row, "text")

    def save_views(self, maker: str, editor: str, views: Iterable[View]) -> None:
        """Views by one editor; one that failed gives way to one that did not."""
        with self._database.begin() as connection:
            rows = [
                {
                    "evidence_id": view.evidence.id,
                    "maker": maker,
                    "editor": editor,
                    "status": view.status,
                    "text": self._ledger.keep(connection, view.text) if view.text else None,
                    "call_id": view.call_id,
                }
                for view in views
            ]
            self._database.better(
                connection, t.views, rows, key=("evidence_id", "maker"), over=UNREAD
            )

    def find_views(self, maker: str, pool: Pool) -> dict[int, str]:
        """The texts that an editor made of a pool, by evidence."""
        with self._database.read() as connection:
            rows = connection.execute(
                sa.select(t.views.c.evidence_id, t.texts.c.body)
                .join(t.texts, t.texts.c.hash == t.views.c.text)
                .join(t.pool_items, t.pool_items.c.evidence_id == t.views.c.evidence_id)
                .where(t.views.c.maker == maker, t.pool_items.c.pool_id == pool.id)
            )
            return {evidence_id: body for evidence_id, body in rows}

    def unread_views(self, maker: str, pool: Pool) -> dict[int, Status]:
        """Items whose editor answered without a view, by evidence; asking again is for nothing."""
        with self._database.read() as connection:
            rows = connection.execute(
                sa.select(t.views.c.evidence_id, t.views.c.status)
                .join(t.pool_items, t.pool_items.c.evidence_id == t.views.c.evidence_id)
                .where(t.views.c.maker == maker, t.pool_items.c.pool_id == pool.id)
                .where(t.views.c.text.is_(None), t.views.c.status != "provider_error")
            )
            return {evidence_id: status for evidence_id, status in rows}

    # --- rubrics ---------------------------------------------------------------------------------

    def save_rubric(
        self,
        key: str,
        rubric: Rubric | Status,
        *,
        asks: int = 1,
        call_id: int | None = None,
        author: str,
        concept: str,
        country: str,
        scale: int,
        draw: int = 0,
    ) -> None:
        """A rubric, or the record that its author gave none."""
        made = rubric if isinstance(rubric, Rubric) else None
        row = {
            "key": key,
            "status": "scored" if made else rubric,
            "kind": made.kind if made else "ordinal",
            "author": author,
            "concept": concept,
            "country": country,
            "scale": made.scale if made else scale,
            "draw": draw,
            "asks": asks,
            "stages": [[s.label, *s.criteria] for s in made.stages] if made else [],
            "reasoning": made.reasoning if made else "",
            "call_id": call_id,
        }
        with self._database.begin() as connection:
            self._database.better(connection, t.rubrics, [row], key=("key",), over=UNREAD)

    def save_given_rubric(self, rubric: Rubric) -> Rubric:
        """A rubric that the user gave. It has no critic's scores: they are null, not perfect."""
        key = digest(["provided", rubric.hash, rubric.concept, rubric.country])
        self.save_rubric(
            key,
            rubric,
            author="provided",
            concept=rubric.concept,
            country=rubric.country,
            scale=rubric.scale,
        )
        return replace(rubric, id=self.rubric_id(key))

    def find_rubric(
        self, *, key: str | None = None, id: int | None = None
    ) -> Rubric | Status | None:
        """A rubric, the status of one that was not given, or None where none was asked for."""
        where = t.rubrics.c.key == key if key is not None else t.rubrics.c.id == id
        with self._database.read() as connection:
            row = connection.execute(sa.select(t.rubrics).where(where)).mappings().first()
        if row is None:
            return None
        return _rubric(row) if row["status"] == "scored" else row["status"]

    def rubric_id(self, key: str) -> int:
        """The row of a rubric that was asked for."""
        with self._database.read() as connection:
            query = sa.select(t.rubrics.c.id).where(t.rubrics.c.key == key)
            return int(connection.execute(query).scalar_one())

    def save_critique(self, maker: str, critique: Critique) -> None:
        """A critic's scores."""
        row = {
            "rubric_id": critique.rubric.id,
            "maker": maker,
            "critic": critique.critic,
            "status": critique.status,
            "observability": critique.observability,
            "discriminability": critique.discriminability,
            "call_id": critique.call_id,
        }
        with self._database.begin() as connection:
            self._database.better(
                connection, t.critiques, [row], key=("rubric_id", "maker"), over=UNREAD
            )


def _evidence(row: sa.RowMapping) -> Evidence:
    return Evidence(
        row["title"],
        row["body"],
        row["url"],
        row["date"],
        row["source"],
        row["truth"],
        row["metadata"],
        row["id"],
    )


def _rubric(row: sa.RowMapping) -> Rubric:
    return RUBRIC_KINDS[row["kind"]](
        stages=tuple(RubricStage(label, tuple(criteria)) for label, *criteria in row["stages"]),
        author=row["author"],
        concept=row["concept"],
        country=row["country"],
        draw=row["draw"],
        reasoning=row["reasoning"],
        id=row["id"],
        call_id=row["call_id"],
    )
