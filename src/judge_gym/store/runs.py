"""Saving and finding experiments, runs, samples and probes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.axes import Design
from judge_gym.errors import NotFoundError
from judge_gym.records import Display, Evidence, Probe, Rubric, Sample
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.evidence import EvidenceRecords
from judge_gym.store.ledger import Ledger, latest_attempt
from judge_gym.store.materials import Materials
from judge_gym.store.queries import Queries
from judge_gym.studies import Experiment, Task

UNANSWERED = ("provider_error",)
"""A sample or probe without a completion gives way to one with; any completion stays."""


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
    """The records of experiments. Every write has a unique key, so a second one is nothing."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        evidence: EvidenceRecords,
        materials: Materials,
    ) -> None:
        self._database = database
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
                "design": experiment.design.chosen(),
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
        return Experiment(tag, task, Design.of(row["design"]), row["seed"]), row["study"]

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

    # --- samples and probes ----------------------------------------------------------------------

    def replicate_counts(
        self, run: Run, rubric_id: int, is_swap: bool
    ) -> dict[int, tuple[int, int]]:
        """Of each replicate under a rubric, how many samples are answered and how many are not."""
        s = t.samples.c
        failed = sa.func.sum(sa.case((s.status == "provider_error", 1), else_=0))
        query = (
            sa.select(s.replicate, sa.func.count(), failed)
            .where(s.run_id == run.id, s.rubric_id == rubric_id, s.is_swap == is_swap)
            .group_by(s.replicate)
        )
        with self._database.read() as connection:
            rows = connection.execute(query)
            return {replicate: (count - lost, lost) for replicate, count, lost in rows}

    def sample_keys(
        self, run: Run, rubric_id: int, is_swap: bool, first: int, last: int
    ) -> dict[tuple[int, int, bool], str]:
        """The statuses of samples by item, replicate and order, of replicates below `last`."""
        s = t.samples.c
        query = sa.select(s.evidence_id, s.replicate, s.flipped, s.status).where(
            s.run_id == run.id,
            s.rubric_id == rubric_id,
            s.is_swap == is_swap,
            s.replicate >= first,
            s.replicate < last,
        )
        with self._database.read() as connection:
            return {
                (evidence_id, replicate, flipped): status
                for evidence_id, replicate, flipped, status in connection.execute(query)
            }

    def save_samples(self, run: Run, samples: Sequence[Sample]) -> None:
        """Samples of a run; one without a completion gives way to one with."""
        rows = [
            {
                "run_id": run.id,
                "rubric_id": sample.rubric.id,
                "evidence_id": sample.evidence.id,
                "replicate": sample.replicate,
                "flipped": sample.flipped,
                "is_swap": sample.is_swap,
                "status": sample.status,
                "stages": " ".join(map(str, sample.stages)),
                "display": _shown(sample.display),
                "call_id": sample.call_id,
            }
            for sample in samples
        ]
        key = ("run_id", "rubric_id", "evidence_id", "replicate", "flipped", "is_swap")
        with self._database.begin() as connection:
            self._database.better(connection, t.samples, rows, key=key, over=UNANSWERED)

    def unprobed_ranges(self, run: Run, size: int, *, only_failed: bool) -> list[list[int]]:
        """Scored samples without an answered probe, as ranges of at most so many: (after, last).

        Args:
            run: whose they are.
            size: the most of a range.
            only_failed: those whose probe failed, or was not asked since the sample itself had.
        """
        found: list[list[int]] = []
        query = sa.select(t.samples.c.id).select_from(_WITH_PROBES)
        query = query.where(_scored(run), _unprobed(only_failed)).order_by(t.samples.c.id)
        with self._database.read() as connection:
            ids = connection.scalars(query)
            for part in ids.partitions(size):
                found.append([part[0] - 1, part[-1]])
        return found

    def unprobed(
        self,
        run: Run,
        rubrics: Mapping[int, Rubric],
        after: int,
        last: int,
        *,
        answers: bool,
        only_failed: bool = False,
    ) -> list[tuple[Sample, str]]:
        """Scored samples of a range without an answered probe, with the answer if wanted."""
        s = t.samples.c
        query = sa.select(t.samples).select_from(_WITH_PROBES)
        if answers:
            query = (
                query.add_columns(t.texts.c.body)
                .join(t.attempts, t.attempts.c.id == latest_attempt(s.call_id, completed=True))
                .join(t.texts, t.texts.c.hash == t.attempts.c.text)
            )
        within = sa.and_(s.id > after, s.id <= last)
        query = query.where(_scored(run), _unprobed(only_failed), within).order_by(s.id)
        evidence = {item.id: item for item in run.experiment.task.pool.items}
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [
            (
                sample_of(row, rubrics[row["rubric_id"]], evidence[row["evidence_id"]]),
                row.get("body", ""),
            )
            for row in rows
        ]

    def save_probes(self, run: Run, probes: Iterable[Probe]) -> None:
        """Probes of samples; one without a completion gives way to one with."""
        rows = [
            {
                "sample_id": probe.sample.id,
                "run_id": run.id,
                "status": probe.status,
                "probability": probe.probability,
                "call_id": probe.call_id,
            }
            for probe in probes
        ]
        with self._database.begin() as connection:
            self._database.better(connection, t.probes, rows, key=("sample_id",), over=UNANSWERED)


_WITH_PROBES = t.samples.outerjoin(t.probes, t.probes.c.sample_id == t.samples.c.id)


def _unprobed(only_failed: bool) -> sa.ColumnElement[bool]:
    """Without an answered probe; or only those where an attempt failed, at it or at the sample."""
    missing = sa.or_(t.probes.c.id.is_(None), t.probes.c.status == "provider_error")
    if not only_failed:
        return missing
    a = t.attempts.c
    failed = sa.exists().where(a.call_id == t.samples.c.call_id, a.completed.is_(False))
    return sa.and_(missing, sa.or_(t.probes.c.id.is_not(None), failed))


def _scored(run: Run) -> sa.ColumnElement[bool]:
    return sa.and_(t.samples.c.run_id == run.id, t.samples.c.status == "scored")


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


def _shown(display: Display) -> str:
    pairs = zip(display.labels, display.stages, strict=True)
    return " ".join(f"{label}={stage}" for label, stage in pairs)


def targets_of(row: sa.Row[Any]) -> Targets:
    """What a stored run is asked for."""
    return Targets(row.samples, tuple(row.rivals), row.probe, row.tolerance)


def sample_of(row: sa.RowMapping, rubric: Rubric, evidence: Evidence) -> Sample:
    """A stored sample."""
    shown = [pair.split("=") for pair in row["display"].split()]
    return Sample(
        rubric=rubric,
        evidence=evidence,
        replicate=row["replicate"],
        display=Display(
            tuple(label for label, _ in shown), tuple(int(stage) for _, stage in shown)
        ),
        status=row["status"],
        stages=tuple(map(int, row["stages"].split())),
        flipped=row["flipped"],
        is_swap=row["is_swap"],
        call_id=row["call_id"],
        id=row["id"],
    )
