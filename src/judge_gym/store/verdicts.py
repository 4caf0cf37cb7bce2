"""Samples and probes of runs: which are missing, and what answers they were read from."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from judge_gym.records import Completion, Critique, Display, Evidence, Probe, Rubric, Sample
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import completion_columns, latest_attempt
from judge_gym.store.runs import Run, Runs
from judge_gym.store.study_results import record_correction

FAILED = ("provider_error",)
"""The status of a failed call. A later answer replaces it; answers are never replaced."""
PAGE = 256
"""Records in memory at once."""


class Verdicts:
    """Saves and finds the samples and probes of runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def replicate_counts(
        self, run: Run, rubric_id: int, is_swap: bool
    ) -> dict[int, tuple[int, int]]:
        """Returns the numbers of answered and failed samples with a rubric, by replicate."""
        s = t.samples.c
        failed = sa.func.sum(sa.case((s.status == "provider_error", 1), else_=0))
        query = (
            sa.select(s.replicate, sa.func.count(), failed)
            .where(s.run_id == run.id, s.rubric_id == rubric_id, s.is_swap == is_swap)
            .group_by(s.replicate)
        )
        with self._database.read() as connection:
            rows = connection.execute(query)
            return {replicate: (count - failed, failed) for replicate, count, failed in rows}

    def sample_keys(
        self,
        run: Run,
        rubric_id: int,
        is_swap: bool,
        first: int,
        last: int,
        items: Sequence[Evidence] | None = None,
    ) -> dict[tuple[int, int, bool], str]:
        """Returns statuses by item, replicate and order, of replicates from `first` to `last`.

        Given `items` bound the ids of the items: samples of others may be among them.
        """
        s = t.samples.c
        query = sa.select(s.evidence_id, s.replicate, s.flipped, s.status).where(
            s.run_id == run.id,
            s.rubric_id == rubric_id,
            s.is_swap == is_swap,
            s.replicate >= first,
            s.replicate < last,
        )
        if items:
            ids = [item.id for item in items]
            query = query.where(s.evidence_id.between(min(ids), max(ids)))
        with self._database.read() as connection:
            return {
                (evidence_id, replicate, flipped): status
                for evidence_id, replicate, flipped, status in connection.execute(query)
            }

    def save_samples(self, run: Run, samples: Sequence[Sample]) -> None:
        """Saves samples of a run; they replace only failed ones."""
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
                "display": display_text(sample.display),
                "call_id": sample.call_id,
            }
            for sample in samples
        ]
        key = ("run_id", "rubric_id", "evidence_id", "replicate", "flipped", "is_swap")
        with self._database.begin() as connection:
            self._database.insert_or_replace(connection, t.samples, rows, key=key, statuses=FAILED)

    def unprobed_ranges(self, run: Run, size: int, *, only_failed: bool) -> list[list[int]]:
        """Returns ranges (after, last) of ids of scored samples without an answered probe.

        With `only_failed`, only where an attempt at the probe, or at the sample before it, failed.
        """
        query = sa.select(t.samples.c.id).select_from(_WITH_PROBES)
        query = query.where(_scored(run), _unprobed(only_failed)).order_by(t.samples.c.id)
        with self._database.read() as connection:
            parts = connection.scalars(query).partitions(size)
            return [[part[0] - 1, part[-1]] for part in parts]

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
        """Returns scored samples of a range without an answered probe, with the answer if asked."""
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
        return [
            (
                sample_of(row, rubrics[row["rubric_id"]], evidence[row["evidence_id"]]),
                row.get("body", ""),
            )
            for row in self._database.rows(query)
        ]

    def save_probes(self, run: Run, probes: Iterable[Probe]) -> None:
        """Saves probes of samples; they replace only failed ones."""
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
            self._database.insert_or_replace(
                connection, t.probes, rows, key=("sample_id",), statuses=FAILED
            )


_WITH_PROBES = t.samples.outerjoin(t.probes, t.probes.c.sample_id == t.samples.c.id)


def _unprobed(only_failed: bool) -> sa.ColumnElement[bool]:
    """Returns the condition: no answered probe; with `only_failed`, because a call failed."""
    missing = sa.or_(t.probes.c.id.is_(None), t.probes.c.status == "provider_error")
    if not only_failed:
        return missing
    a = t.attempts.c
    failed = sa.exists().where(a.call_id == t.samples.c.call_id, a.completed.is_(False))
    return sa.and_(missing, sa.or_(t.probes.c.id.is_not(None), failed))


def _scored(run: Run) -> sa.ColumnElement[bool]:
    return sa.and_(t.samples.c.run_id == run.id, t.samples.c.status == "scored")


def display_text(display: Display) -> str:
    """Returns a display as the text as which it is stored."""
    pairs = zip(display.labels, display.stages, strict=True)
    return " ".join(f"{label}={stage}" for label, stage in pairs)


def sample_of(row: Mapping[Any, Any], rubric: Rubric, evidence: Evidence) -> Sample:
    """Returns the sample of a row."""
    return Sample(
        rubric=rubric,
        evidence=evidence,
        replicate=row["replicate"],
        display=Display.parse(row["display"]),
        status=row["status"],
        stages=tuple(map(int, row["stages"].split())),
        flipped=row["flipped"],
        is_swap=row["is_swap"],
        call_id=row["call_id"],
        id=row["id"],
    )


class CompletedRecords:
    """Finds and rewrites records that have a completion."""

    def __init__(self, database: Database, runs: Runs) -> None:
        self._database = database
        self._runs = runs

    def samples(self, run: Run) -> Iterator[list[tuple[Sample, Completion]]]:
        """Yields the samples of a run, in pages."""
        rubrics = self._runs.rubrics(run)
        evidence = {item.id: item for item in run.experiment.task.pool.items}
        for page in self._pages(t.samples, t.samples.c.run_id == run.id):
            yield [
                (sample_of(row, rubrics[row["rubric_id"]], evidence[row["evidence_id"]]), answer)
                for row, answer in page
            ]

    def probes(self, samples: Sequence[Sample]) -> list[tuple[Probe, Completion]]:
        """Returns the probes of samples."""
        by_id = {sample.id: sample for sample in samples}
        pages = self._pages(t.probes, t.probes.c.sample_id.in_(by_id))
        return [
            (
                Probe(by_id[row["sample_id"]], row["status"], row["probability"], row["call_id"]),
                answer,
            )
            for row, answer in itertools.chain.from_iterable(pages)
        ]

    def count_probes(self, samples: Sequence[Sample]) -> int:
        """Returns how many of these samples have a probe."""
        mine = t.probes.c.sample_id.in_([sample.id for sample in samples])
        return int(self._database.scalar(sa.select(sa.func.count()).where(mine)))

    def critiques(self, run: Run) -> list[tuple[Critique, Completion]]:
        """Returns the critiques of the rubrics that a run scores with."""
        rubrics = self._runs.rubrics(run)
        maker = sa.select(t.runs.c.critic_maker).where(t.runs.c.id == run.id).scalar_subquery()
        c = t.critiques.c
        pages = self._pages(t.critiques, c.rubric_id.in_(rubrics), c.maker == maker)
        return [
            (
                Critique(
                    rubrics[row["rubric_id"]],
                    row["critic"],
                    row["status"],
                    row["observability"],
                    row["discriminability"],
                    row["call_id"],
                ),
                answer,
            )
            for row, answer in itertools.chain.from_iterable(pages)
        ]

    def write(
        self, samples: Sequence[Sample], probes: Sequence[Probe], critiques: Sequence[Critique]
    ) -> None:
        """Rewrites records; a changed sample loses its probe."""
        with self._database.begin() as connection:
            for sample in samples:
                values = {"status": sample.status, "stages": " ".join(map(str, sample.stages))}
                row = t.samples.c.id == sample.id
                connection.execute(t.samples.update().where(row).values(values))
                # The probe was about the old verdict; the ledger keeps its answer.
                connection.execute(t.probes.delete().where(t.probes.c.sample_id == sample.id))
            for probe in probes:
                read = {"status": probe.status, "probability": probe.probability}
                row = t.probes.c.sample_id == probe.sample.id
                connection.execute(t.probes.update().where(row).values(read))
            for critique in critiques:
                scores = {
                    "status": critique.status,
                    "observability": critique.observability,
                    "discriminability": critique.discriminability,
                }
                row = sa.and_(
                    t.critiques.c.rubric_id == critique.rubric.id,
                    t.critiques.c.call_id == critique.call_id,
                )
                connection.execute(t.critiques.update().where(row).values(scores))
            if samples or probes or critiques:
                record_correction(connection, "verdicts")

    def _pages(
        self, table: sa.Table, *mine: sa.ColumnElement[bool]
    ) -> Iterator[list[tuple[sa.RowMapping, Completion]]]:
        """Yields rows that have an answer, in the order of their ids, with the answer."""
        parts = [column.label(f"answer_{n}") for n, column in enumerate(completion_columns())]
        answered = (
            sa.select(table, *parts)
            .select_from(table)
            .join(t.attempts, t.attempts.c.id == latest_attempt(table.c.call_id, completed=True))
            .join(t.texts, t.texts.c.hash == t.attempts.c.text)
            .where(*mine, table.c.status != "provider_error")
            .order_by(table.c.id)
            .limit(PAGE)
        )
        after = 0
        while True:
            with self._database.read() as connection:
                rows = connection.execute(answered.where(table.c.id > after)).mappings().all()
            if not rows:
                return
            after = rows[-1]["id"]
            yield [(row, Completion(*(row[column.key] for column in parts))) for row in rows]
