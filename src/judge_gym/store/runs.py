"""Runs: their targets, and the rubrics under which they score."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.errors import NotFoundError
from judge_gym.records import Rubric
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.experiments import Experiments
from judge_gym.store.materials import Materials
from judge_gym.studies import Experiment


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of an experiment in one series, with its targets."""

    id: int
    experiment: Experiment
    study: str
    series: str
    samples: int
    rivals: tuple[str, ...]
    probe: bool
    tolerance: float


class Targets(NamedTuple):
    """What a run is asked for; raising a target goes on with what is missing."""

    samples: int
    rivals: tuple[str, ...]
    probe: bool
    tolerance: float

    def raised(self, asked: "Targets", *, exact: bool, there: int = 0) -> "Targets":
        """These targets once more is asked for.

        Args:
            asked: what is asked for now.
            exact: take the number of samples as it is asked for, even if it was higher.
            there: how many samples a cell has already; what is there stays.
        """
        return Targets(
            samples=max(there if exact else self.samples, asked.samples),
            rivals=tuple(dict.fromkeys([*self.rivals, *asked.rivals])),
            probe=self.probe or asked.probe,
            tolerance=asked.tolerance,
        )


class Runs:
    """The records of runs."""

    def __init__(self, database: Database, experiments: Experiments, materials: Materials) -> None:
        self._database = database
        self._experiments = experiments
        self._materials = materials

    def save(
        self,
        experiment: Experiment,
        study: str,
        series: str,
        targets: Targets,
        *,
        makers: tuple[str | None, str | None],
        exact: bool = False,
        new: bool = False,
    ) -> Run:
        """The active run of an experiment in a series: found and its targets raised, or made.

        Args:
            experiment: already saved.
            study: the study that asks.
            series: the series of draws.
            targets: what is asked for.
            makers: the makers of its views and of its critiques.
            exact: take the number of samples as it is, even if more were asked for before.
            new: supersede the active run.
        """
        active = sa.and_(
            t.runs.c.digest == experiment.digest,
            t.runs.c.series == series,
            t.runs.c.superseded.is_(None),
        )
        with self._database.begin() as connection:
            if new:
                connection.execute(
                    t.runs.update().where(active).values(superseded=datetime.now(UTC))
                )
            row = {
                "digest": experiment.digest,
                "series": series,
                "samples": targets.samples,
                "rivals": list(targets.rivals),
                "probe": targets.probe,
                "tolerance": targets.tolerance,
                "view_maker": makers[0],
                "critic_maker": makers[1],
                "created": datetime.now(UTC),
            }
            connection.execute(self._database.insert(t.runs).values(row).on_conflict_do_nothing())
            found = connection.execute(sa.select(t.runs).where(active)).one()
            scored = sa.select(sa.func.max(t.samples.c.replicate) + 1)
            there = connection.scalar(scored.where(t.samples.c.run_id == found.id)) or 0
            raised = targets_of(found).raised(targets, exact=exact, there=there)
            change = t.runs.update().where(t.runs.c.id == found.id)
            connection.execute(change.values(raised._asdict()))
        return Run(found.id, experiment, study, series, *raised)

    def find(self, id: int, tag: str) -> Run:
        """A run by its row, under the name that it was started by."""
        experiment, study = self._experiments.find(tag)
        with self._database.read() as connection:
            row = connection.execute(sa.select(t.runs).where(t.runs.c.id == id)).first()
        if row is None or row.digest != experiment.digest:
            raise NotFoundError(f"there is no run {id} of {tag!r}; see judge-gym status")
        return Run(row.id, experiment, study, row.series, *targets_of(row))

    def targets(self, experiment: Experiment, series: str | None = None) -> Targets | None:
        """What the active run of an experiment is asked for, in a series or in the newest."""
        query = sa.select(t.runs).where(
            t.runs.c.digest == experiment.digest, t.runs.c.superseded.is_(None)
        )
        if series is not None:
            query = query.where(t.runs.c.series == series)
        with self._database.read() as connection:
            row = connection.execute(query.order_by(t.runs.c.id.desc())).first()
        if row is None:
            return None
        return targets_of(row)

    def link_rubric(self, run: Run, rubric_id: int, is_swap: bool) -> None:
        """Say that a run scores under a rubric."""
        row = {"run_id": run.id, "rubric_id": rubric_id, "is_swap": is_swap}
        with self._database.begin() as connection:
            connection.execute(
                self._database.insert(t.run_rubrics).values(row).on_conflict_do_nothing()
            )

    def rubrics(self, run: Run) -> dict[int, Rubric]:
        """The rubrics that a run scores under."""
        query = sa.select(t.run_rubrics.c.rubric_id).where(t.run_rubrics.c.run_id == run.id)
        with self._database.read() as connection:
            ids = connection.scalars(query).all()
        found = [self._materials.find_rubric(id=id) for id in ids]
        return {rubric.id: rubric for rubric in found if isinstance(rubric, Rubric)}

    def active(self, tags: Sequence[str]) -> list[Run]:
        """The runs of experiments that count; each once, whatever its names."""
        found: dict[int, Run] = {}
        query = sa.select(t.runs).where(t.runs.c.superseded.is_(None)).order_by(t.runs.c.id)
        for tag in tags:
            experiment, study = self._experiments.find(tag)
            with self._database.read() as connection:
                rows = connection.execute(query.where(t.runs.c.digest == experiment.digest)).all()
            for row in rows:
                made = Run(row.id, experiment, study, row.series, *targets_of(row))
                found.setdefault(row.id, made)
        return list(found.values())


def targets_of(row: sa.Row[Any]) -> Targets:
    """What a stored run is asked for."""
    return Targets(row.samples, tuple(row.rivals), row.probe, row.tolerance)
