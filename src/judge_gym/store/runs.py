"""Runs: their targets, and the rubrics that they use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.errors import NotFoundError, Remedy
from judge_gym.records import Rubric
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.experiments import Experiments
from judge_gym.store.rubrics import Rubrics
from judge_gym.studies import Experiment


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a study's experiment in one series, with its targets.

    Studies that have the same experiment have a run each, and share answers through the ledger.
    """

    id: int
    experiment: Experiment
    study: str
    series: str
    samples: int
    rivals: tuple[str, ...]
    probe: bool
    tolerance: float


class Targets(NamedTuple):
    """The targets of a run. When one is raised, the run continues with what is missing."""

    samples: int
    rivals: tuple[str, ...]
    probe: bool
    tolerance: float

    def raised(self, asked: "Targets", *, exact: bool, existing: int = 0) -> "Targets":
        """Returns these targets, raised to others.

        With `exact` the number of samples may fall, but not below those that a cell has already.
        """
        return Targets(
            samples=max(existing if exact else self.samples, asked.samples),
            rivals=tuple(dict.fromkeys([*self.rivals, *asked.rivals])),
            probe=self.probe or asked.probe,
            tolerance=asked.tolerance,
        )


class Runs:
    """The records of runs."""

    def __init__(self, database: Database, experiments: Experiments, rubrics: Rubrics) -> None:
        self._database = database
        self._experiments = experiments
        self._rubrics = rubrics

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
        """Creates a study's active run of a saved experiment in a series, or raises its targets.

        `makers` are those of its views and critiques. With `exact` the number of samples may fall;
        with `new` the active run is superseded.
        """
        owner = self._owner(experiment, study)
        active = sa.and_(_active(experiment, owner), t.runs.c.series == series)
        with self._database.begin() as connection:
            if new:
                connection.execute(
                    t.runs.update().where(active).values(superseded=datetime.now(UTC))
                )
            row = {
                "digest": experiment.digest,
                "owner": owner,
                "series": series,
                "samples": targets.samples,
                "rivals": list(targets.rivals),
                "probe": targets.probe,
                "tolerance": targets.tolerance,
                "view_maker": makers[0],
                "critic_maker": makers[1],
                "created": datetime.now(UTC),
            }
            self._database.insert_new(connection, t.runs, [row])
            stored = connection.execute(sa.select(t.runs).where(active)).one()
            scored = sa.select(sa.func.max(t.samples.c.replicate) + 1)
            existing = connection.scalar(scored.where(t.samples.c.run_id == stored.id)) or 0
            raised = _targets(stored).raised(targets, exact=exact, existing=existing)
            change = t.runs.update().where(t.runs.c.id == stored.id)
            connection.execute(change.values(raised._asdict()))
        return Run(stored.id, experiment, study, series, *raised)

    def find(self, id: int, tag: str) -> Run:
        """Returns a run by its number, under the tag that it was started by."""
        experiment, study = self._experiments.find(tag)
        named = sa.select(t.runs).join(t.tags, t.NAMED_RUNS).where(t.tags.c.tag == tag)
        row = self._database.first(named.where(t.runs.c.id == id))
        if row is None:
            raise NotFoundError(f"there is no run {id} of {tag!r}", remedy=Remedy("runs.status"))
        return Run(row.id, experiment, study, row.series, *_targets(row))

    def targets(
        self, experiment: Experiment, study: str, series: str | None = None
    ) -> Targets | None:
        """Returns the targets of a study's active run, in a series or in the newest."""
        query = sa.select(t.runs).where(_active(experiment, self._owner(experiment, study)))
        if series is not None:
            query = query.where(t.runs.c.series == series)
        row = self._database.first(query.order_by(t.runs.c.id.desc()))
        return None if row is None else _targets(row)

    def others(self, series: Mapping[str, str], study: str) -> dict[str, int]:
        """Returns the active runs of other studies by tag, given the series of experiments."""
        query = (
            sa.select(sa.func.min(t.tags.c.tag), t.runs.c.id, t.runs.c.digest, t.runs.c.series)
            .join(t.tags, t.NAMED_RUNS)
            .where(t.runs.c.superseded.is_(None), t.runs.c.owner.not_in(["", study]))
            .where(t.tags.c.study == t.tags.c.owner)
            .group_by(t.runs.c.id, t.runs.c.digest, t.runs.c.series)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return {tag: id for tag, id, digest, run_series in rows if series.get(digest) == run_series}

    def _owner(self, experiment: Experiment, study: str) -> str:
        """Returns the study whose runs a tag names: its own, unless the tag is a former one."""
        query = sa.select(t.tags.c.owner).where(
            t.tags.c.tag == experiment.tag, t.tags.c.digest == experiment.digest
        )
        return study or self._database.scalar(query) or ""

    def link_rubric(self, run: Run, rubric_id: int, is_swap: bool) -> None:
        """Records that a run scores with a rubric."""
        row = {"run_id": run.id, "rubric_id": rubric_id, "is_swap": is_swap}
        with self._database.begin() as connection:
            self._database.insert_new(connection, t.run_rubrics, [row])

    def rubrics(self, run: Run) -> dict[int, Rubric]:
        """Returns the rubrics that a run scores with, by id."""
        query = sa.select(t.run_rubrics.c.rubric_id).where(t.run_rubrics.c.run_id == run.id)
        rubrics = [self._rubrics.find(id=id) for id in self._database.scalars(query)]
        return {rubric.id: rubric for rubric in rubrics if isinstance(rubric, Rubric)}

    def active(self, tags: Sequence[str]) -> list[Run]:
        """Returns the active runs of experiments, each once even if it has several tags."""
        by_digest: dict[int, Run] = {}
        query = sa.select(t.runs).join(t.tags, t.NAMED_RUNS).order_by(t.runs.c.id)
        query = query.where(t.runs.c.superseded.is_(None))
        for tag in tags:
            experiment, study = self._experiments.find(tag)
            with self._database.read() as connection:
                rows = connection.execute(query.where(t.tags.c.tag == tag)).all()
            for row in rows:
                run = Run(row.id, experiment, study, row.series, *_targets(row))
                by_digest.setdefault(row.id, run)
        return list(by_digest.values())


def _active(experiment: Experiment, owner: str) -> sa.ColumnElement[bool]:
    runs = t.runs.c
    mine = sa.and_(runs.digest == experiment.digest, runs.owner == owner)
    return sa.and_(mine, runs.superseded.is_(None))


def _targets(row: sa.Row[Any]) -> Targets:
    return Targets(row.samples, tuple(row.rivals), row.probe, row.tolerance)
