"""What models make and runs share: views, rubrics and critiques."""

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

FAILED = tuple(status for status in STATUSES if status != "scored")
"""The statuses of a failed view, rubric or critique, which a later one replaces."""


class Materials:
    """Saves and finds them. Each row has a unique key, so that nothing is saved twice."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

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
                connection, t.views, rows, key=("evidence_id", "maker"), statuses=FAILED
            )

    def find_views(self, maker: str, pool: Pool) -> dict[int, str]:
        """Returns the texts of an editor's views of a pool, by evidence."""
        query = _views(maker, pool, t.texts.c.body).join(t.texts, t.texts.c.hash == t.views.c.text)
        return self._database.pairs(query)

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
        found = {row["id"]: row for tag in tags for row in self._database.rows(query, {"tag": tag})}
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
        """Saves a rubric, or the status of an answer without one."""
        written = rubric if isinstance(rubric, Rubric) else None
        row = {
            "key": key,
            "status": "scored" if written else rubric,
            "kind": written.kind if written else "ordinal",
            "author": author,
            "concept": concept,
            "country": country,
            "scale": written.scale if written else scale,
            "draw": draw,
            "asks": asks,
            "stages": [[s.label, *s.criteria] for s in written.stages] if written else [],
            "reasoning": written.reasoning if written else "",
            "call_id": call_id,
        }
        with self._database.begin() as connection:
            self._database.insert_or_replace(
                connection, t.rubrics, [row], key=("key",), statuses=FAILED
            )

    def save_given_rubric(self, rubric: Rubric) -> Rubric:
        """Saves a rubric that the user provides, which no critic scores."""
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
        """Returns a rubric, the status of an answer without one, or None if none was asked for."""
        where = t.rubrics.c.key == key if key is not None else t.rubrics.c.id == id
        row = self._database.first(sa.select(t.rubrics).where(where))
        if row is None:
            return None
        return _rubric(row) if row.status == "scored" else row.status

    def rubric_id(self, key: str) -> int:
        """Returns the id of a saved rubric."""
        return int(self._database.scalar(sa.select(t.rubrics.c.id).where(t.rubrics.c.key == key)))

    def save_critique(self, maker: str, critique: Critique) -> None:
        """Saves a critic's scores of a rubric; they replace only a failed critique."""
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
            self._database.insert_or_replace(
                connection, t.critiques, [row], key=("rubric_id", "maker"), statuses=FAILED
            )

    def list_rubrics(self, tag: str) -> list[dict[str, Any]]:
        """Returns the rubrics of an experiment's runs, with the critic's scores, if any."""
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
            .join(t.tags, t.NAMED_RUNS)
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
        return self._database.rows(query)


def _views(maker: str, pool: Pool, column: sa.Column[Any]) -> sa.Select[tuple[int, Any]]:
    return (
        sa.select(t.views.c.evidence_id, column)
        .join(t.pool_items, t.pool_items.c.evidence_id == t.views.c.evidence_id)
        .where(t.views.c.maker == maker, t.pool_items.c.pool_id == pool.id)
    )


def _rubric(row: sa.Row[Any]) -> Rubric:
    return RUBRIC_KINDS[row.kind](
        stages=tuple(RubricStage(label, tuple(criteria)) for label, *criteria in row.stages),
        author=row.author,
        concept=row.concept,
        country=row.country,
        draw=row.draw,
        reasoning=row.reasoning,
        id=row.id,
        call_id=row.call_id,
    )
