"""Rubrics and what critics say of them; runs share both."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from judge_gym.records import RUBRIC_KINDS, Critique, Rubric, RubricStage, Status, digest
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.evidence import UNSCORED
from judge_gym.store.ledger import by_key


class Rubrics:
    """Saves and finds rubrics and critiques. Each has a unique key, so none is saved twice."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(
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
                connection, t.rubrics, [row], key=("key",), statuses=UNSCORED
            )

    def stage_names(self, ids: Collection[int]) -> dict[int, list[str]]:
        """Returns the names of the stages of rubrics, by rubric."""
        with self._database.read() as connection:
            stages = by_key(connection, t.rubrics.c.id, t.rubrics.c.stages, ids)
        return {id: [name for name, *_ in rubric_stages] for id, rubric_stages in stages.items()}

    def save_given(self, rubric: Rubric) -> Rubric:
        """Saves a rubric that the user provides, which no critic scores."""
        key = digest(["provided", rubric.hash, rubric.concept, rubric.country])
        self.save(
            key,
            rubric,
            author="provided",
            concept=rubric.concept,
            country=rubric.country,
            scale=rubric.scale,
        )
        return replace(rubric, id=self.id_of(key))

    def find(self, *, key: str | None = None, id: int | None = None) -> Rubric | Status | None:
        """Returns a rubric, the status of an answer without one, or None if none was asked for."""
        where = t.rubrics.c.key == key if key is not None else t.rubrics.c.id == id
        row = self._database.first(sa.select(t.rubrics).where(where))
        if row is None:
            return None
        return _rubric(row) if row.status == "scored" else row.status

    def id_of(self, key: str) -> int:
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
                connection, t.critiques, [row], key=("rubric_id", "maker"), statuses=UNSCORED
            )

    def of_experiment(self, tag: str) -> list[dict[str, Any]]:
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
