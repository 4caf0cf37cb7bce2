"""Saving and finding experiments, runs, samples and probes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.axes import Design, complete
from judge_gym.errors import NotFoundError
from judge_gym.records import Rubric
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.evidence import EvidenceRecords
from judge_gym.store.ledger import Ledger
from judge_gym.store.materials import Materials
from judge_gym.store.queries import Queries
from judge_gym.store.verdicts import Verdicts
from judge_gym.studies import Experiment, Task


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


class Runs(Verdicts):
    """The records of experiments. Every write has a unique key, so a second one is nothing."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        evidence: EvidenceRecords,
        materials: Materials,
    ) -> None:
        super().__init__(database)
        self._ledger = ledger
        self._evidence = evidence
        self._materials = materials

    # --- experiments and runs --------------------------------------------------------------------

    def save_study(self, name: str, file: str, budget: Mapping[str, Any]) -> None:
        """A study as it is run now."""
        with self._database.begin() as connection:
            row = {"name": name, "file": self._ledger.keep(connection, file), "budget": budget}
            insert = self._database.insert(t.studies).values(row)
            connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_=row))

    def save_budget(self, study: str, budget: Mapping[str, Any]) -> None:
        """What a study may spend from now on."""
        with self._database.begin() as connection:
            row = {"name": study, "file": self._ledger.keep(connection, ""), "budget": budget}
            insert = self._database.insert(t.studies).values(row)
            change = {"budget": row["budget"]}
            connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_=change))

    def find_budget(self, study: str) -> Mapping[str, Any]:
        """The budget of a study as it was last run; empty where there is none."""
        with self._database.read() as connection:
            query = sa.select(t.studies.c.budget).where(t.studies.c.name == study)
            return connection.scalar(query) or {}

    def save_experiment(self, experiment: Experiment, study: str) -> None:
        """An experiment under its tag; what the tag meant before is kept as `tag@digest`."""
        task = experiment.task
        with self._database.begin() as connection:
            row = {
                "digest": experiment.digest,
                "task_type": task.type,
                "concept": task.concept,
                "country": task.country,
                "pool_id": task.pool.id,
                "rubric_id": task.rubric.id if task.rubric else None,
                "seed": experiment.seed,
                "design": experiment.design.values(),
            }
            self._database.add(connection, t.experiments, [row])
            older = (
                connection.execute(sa.select(t.tags).where(t.tags.c.tag == experiment.tag))
                .mappings()
                .first()
            )
            if older and older["digest"] != experiment.digest:
                kept = dict(older) | {"tag": f"{experiment.tag}@{older['digest'][:8]}", "study": ""}
                connection.execute(
                    self._database.insert(t.tags).values(kept).on_conflict_do_nothing()
                )
                connection.execute(t.tags.delete().where(t.tags.c.tag == experiment.tag))
            tag = {
                "tag": experiment.tag,
                "digest": experiment.digest,
                "study": study,
                "pool_name": task.pool_name,
                "pool_id": task.pool.id,
                "dose": task.dose,
                "truth": dict(task.truth) if task.truth else None,
            }
            insert = self._database.insert(t.tags).values(tag)
            connection.execute(insert.on_conflict_do_update(index_elements=["tag"], set_=tag))

    def find_experiment(self, tag: str) -> tuple[Experiment, str]:
        """An experiment by its tag, and the study that named it."""
        with self._database.read() as connection:
            named = [column for column in t.tags.c if column.name not in ("digest", "pool_id")]
            pool_id = t.tags.c.pool_id.label("tag_pool")
            query = sa.select(t.experiments, *named, pool_id).join(
                t.tags, t.tags.c.digest == t.experiments.c.digest
            )
            row = connection.execute(query.where(t.tags.c.tag == tag)).mappings().first()
        if row is None:
            raise Queries(self._database).no_such(tag)
        rubric = self._materials.find_rubric(id=row["rubric_id"]) if row["rubric_id"] else None
        task = Task(
            type=row["task_type"],
            concept=row["concept"],
            pool_name=row["pool_name"],
            pool=self._evidence.find_pool(row["tag_pool"]),
            rubric=rubric if isinstance(rubric, Rubric) else None,
            dose=row["dose"],
            truth=row["truth"],
        )
        return Experiment(tag, task, Design.of(complete(row["design"])), row["seed"]), row["study"]

    def save_run(
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

    def find_run(self, id: int, tag: str) -> Run:
        """A run by its row, under the name that it was started by."""
        experiment, study = self.find_experiment(tag)
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

    def delete_experiment(self, tag: str, *, ledger: bool) -> dict[str, int]:
        """Forget an experiment's runs and rows; with `ledger`, the calls that only it used."""
        experiment, _ = self.find_experiment(tag)
        with self._database.begin() as connection:
            runs = sa.select(t.runs.c.id).where(t.runs.c.digest == experiment.digest)
            mine = sa.select(t.samples.c.id).where(t.samples.c.run_id.in_(runs))
            counts = {
                "runs": _count(connection, runs),
                "samples": _count(connection, mine),
                "probes": _count(
                    connection, sa.select(t.probes.c.id).where(t.probes.c.sample_id.in_(mine))
                ),
                "calls": 0,
            }
            used = sa.union(
                sa.select(t.samples.c.call_id).where(t.samples.c.run_id.in_(runs)),
                sa.select(t.probes.c.call_id).where(t.probes.c.sample_id.in_(mine)),
            )
            calls = [id for (id,) in connection.execute(used)] if ledger else []
            others = connection.scalar(
                sa.select(sa.func.count()).where(
                    t.tags.c.digest == experiment.digest, t.tags.c.tag != tag
                )
            )
            if others:  # the experiment has another name: only this one goes
                connection.execute(t.tags.delete().where(t.tags.c.tag == tag))
                return dict.fromkeys(counts, 0)
            connection.execute(
                t.experiments.delete().where(t.experiments.c.digest == experiment.digest)
            )
            if calls:
                counts["calls"] = _delete_unused_calls(connection, calls)
        return counts


def _count(connection: sa.Connection, query: sa.Select[Any]) -> int:
    return int(connection.scalar(sa.select(sa.func.count()).select_from(query.subquery())) or 0)


def _delete_unused_calls(connection: sa.Connection, ids: list[int]) -> int:
    """Delete calls that no record refers to any more."""
    owners = (t.samples, t.probes, t.views, t.rubrics, t.critiques)
    deleted = 0
    for start in range(0, len(ids), 500):
        free = sa.and_(
            t.calls.c.id.in_(ids[start : start + 500]),
            *(~sa.exists().where(owner.c.call_id == t.calls.c.id) for owner in owners),
        )
        gone = [id for (id,) in connection.execute(sa.select(t.calls.c.id).where(free))]
        connection.execute(t.attempts.delete().where(t.attempts.c.call_id.in_(gone)))
        connection.execute(t.calls.delete().where(t.calls.c.id.in_(gone)))
        deleted += len(gone)
    return deleted


def targets_of(row: sa.Row[Any]) -> Targets:
    """What a stored run is asked for."""
    return Targets(row.samples, tuple(row.rivals), row.probe, row.tolerance)
