"""Records with the answers that they were read from, for reading them again."""

import itertools
from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from judge_gym.records import Completion, Critique, Probe, Sample
from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.ledger import completion_columns, latest_attempt
from judge_gym.store.runs import Run, Runs
from judge_gym.store.verdicts import sample_of

PAGE = 256


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
