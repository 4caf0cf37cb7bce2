"""Saving and finding what models make and runs share: views, rubrics, critiques."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from judge_gym.records import (
    RUBRIC_KINDS,
    STATUSES,
    Critique,
    Pool,
    Rubric,
    RubricStage,
    Status,
    View,
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

    # --- views -----------------------------------------------------------------------------------

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
                    "checks": dict(view.checks) if view.checks is not None else None,
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

    def list_views(self, tags: Sequence[str]) -> list[dict[str, Any]]:
        """Returns the views that judges of experiments read, each once, with their checks."""
        query = (
            sa.select(t.views)
            .distinct()
            .join(t.pool_items, t.pool_items.c.evidence_id == t.views.c.evidence_id)
            .join(t.tags, t.tags.c.pool_id == t.pool_items.c.pool_id)
            .join(t.runs, t.runs.c.digest == t.tags.c.digest)
            .where(t.views.c.maker == t.runs.c.view_maker, t.runs.c.superseded.is_(None))
            .where(t.tags.c.tag == sa.bindparam("tag"))
        )
        found: dict[int, dict[str, Any]] = {}
        with self._database.read() as connection:
            for tag in tags:
                for row in connection.execute(query, {"tag": tag}).mappings():
                    found[row["id"]] = dict(row)
        return list(found.values())

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

    def list_rubrics(self, tag: str) -> list[dict[str, Any]]:
        """Returns the rubrics of an experiment's runs, with their critic's scores if given."""
        query = (
            sa.select(
                t.rubrics,
                t.run_rubrics.c.is_swap,
                t.critiques.c.critic,
                t.critiques.c.observability,
                t.critiques.c.discriminability,
            )
            .distinct()
            .join(t.run_rubrics, t.run_rubrics.c.rubric_id == t.rubrics.c.id)
            .join(t.runs, t.runs.c.id == t.run_rubrics.c.run_id)
            .join(t.tags, t.tags.c.digest == t.runs.c.digest)
            .outerjoin(
                t.critiques,
                sa.and_(
                    t.critiques.c.rubric_id == t.rubrics.c.id,
                    t.critiques.c.maker == t.runs.c.critic_maker,
                ),
            )
            .where(t.tags.c.tag == tag, t.runs.c.superseded.is_(None))
            .order_by(t.run_rubrics.c.is_swap, t.rubrics.c.author, t.rubrics.c.draw)
        )
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


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
