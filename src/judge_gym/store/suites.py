"""Saving and finding suite runs: what was asked of a model, and what became of each eval."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.errors import ConflictError, NotFoundError
from judge_gym.records import digest, proper
from judge_gym.records.outcomes import (
    EvalResult,
    EvalSource,
    Failed,
    Inconclusive,
    Outcome,
    Passed,
    StepResult,
    SuiteResult,
    SuiteRun,
)
from judge_gym.store.database import Database
from judge_gym.store.ledger import Ledger, bodies_of, latest_attempt
from judge_gym.store.suite_tables import (
    code_tasks,
    suite_files,
    suite_results,
    suite_runs,
    suite_steps,
)
from judge_gym.store.tables import attempts, calls


class Generation(NamedTuple):
    """What the ledger holds of the newest attempt at a generation."""

    seconds: float
    usd: float | None
    error: str


class Suites:
    """The records of suite runs. Results are only added; the newest of an eval counts."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

    # --- runs ------------------------------------------------------------------------------------

    def save_tasks(self, suite: str, version: str, sources: Sequence[EvalSource]) -> None:
        """The files of every eval of a version; what is there stays."""
        with self._database.begin() as connection:
            rows = [
                {
                    "suite": suite,
                    "version": version,
                    "category": source.category,
                    "name": source.name,
                    "source": self._ledger.keep(connection, json.dumps(asdict(source))),
                }
                for source in sources
            ]
            self._database.add(connection, code_tasks, rows)

    def save_run(
        self,
        suite: str,
        version: str,
        model: str,
        experiment: str,
        condition: Mapping[str, Any],
        series: str,
        *,
        replicates: int,
        evals: Sequence[str],
        created: datetime | None = None,
    ) -> SuiteRun:
        """The run of a model under a condition in a series: found and its targets raised, or made.

        Args:
            suite: its name.
            version: of the benchmark.
            model: its id.
            experiment: the condition's name.
            condition: what it changes.
            series: of the draws; another one asks afresh.
            replicates: answers to each task.
            evals: paths; those that were asked for before stay.
            created: when it was made elsewhere; else now.
        """
        identity = [suite, version, model, experiment, condition, series]
        row = {
            "key": digest(identity),
            "suite": suite,
            "version": version,
            "model": model,
            "experiment": experiment,
            "condition": json.loads(json.dumps(dict(condition))),
            "series": series,
            "replicates": replicates,
            "evals": sorted(evals),
            "created": (created or datetime.now(UTC)).astimezone(UTC),
        }
        with self._database.begin() as connection:
            id = self._database.once(connection, suite_runs, row, "key")
            this = suite_runs.c.id == id
            found = connection.execute(sa.select(suite_runs).where(this)).one()
            raised = {
                "replicates": max(found.replicates, replicates),
                "evals": sorted({*found.evals, *evals}),
            }
            connection.execute(suite_runs.update().where(this).values(raised))
        return self.find_run(id)

    def find_run(self, id: int) -> SuiteRun:
        """A run by its number."""
        with self._database.read() as connection:
            query = sa.select(suite_runs).where(suite_runs.c.id == id)
            row = connection.execute(query).mappings().first()
        if row is None:
            raise NotFoundError(f"there is no suite run {id}; see judge-gym suite runs")
        return _run(row)

    def list_runs(self, *, suite: str | None = None, model: str | None = None) -> list[SuiteRun]:
        """All runs, or those of a suite or a model, oldest first."""
        query = sa.select(suite_runs).order_by(suite_runs.c.id)
        for column, value in ((suite_runs.c.suite, suite), (suite_runs.c.model, model)):
            query = query.where(column == value) if value is not None else query
        with self._database.read() as connection:
            return [_run(row) for row in connection.execute(query).mappings()]

    def sizes(self) -> dict[tuple[str, str], int]:
        """How many evals each version of a suite has, by its name and version."""
        t = code_tasks.c
        query = sa.select(t.suite, t.version, sa.func.count()).group_by(t.suite, t.version)
        with self._database.read() as connection:
            return {(suite, version): n for suite, version, n in connection.execute(query)}

    def paths(self, suite: str, version: str) -> list[str]:
        """The evals of a version of a suite."""
        t = code_tasks.c
        query = sa.select(t.category, t.name).where(t.suite == suite, t.version == version)
        with self._database.read() as connection:
            return sorted(f"{category}/{name}" for category, name in connection.execute(query))

    def source(self, run: SuiteRun, category: str, name: str) -> EvalSource:
        """The files behind an eval, as they were when a run was made."""
        with self._database.read() as connection:
            query = sa.select(code_tasks.c.source).where(
                code_tasks.c.suite == run.suite,
                code_tasks.c.version == run.version,
                code_tasks.c.category == category,
                code_tasks.c.name == name,
            )
            hash = connection.scalar(query)
            body = bodies_of(connection, [hash] if hash else []).get(hash or "")
        if body is None:
            raise NotFoundError(f"there is no eval {category}/{name} in the suite {run.suite!r}")
        return EvalSource(**json.loads(body))

    # --- results ---------------------------------------------------------------------------------

    def save_result(self, run: SuiteRun, result: EvalResult) -> int:
        """Add a result with its steps and files; its number."""
        with self._database.begin() as connection:
            return self._insert(connection, run, result, datetime.now(UTC))

    def take_result(self, run: SuiteRun, result: EvalResult, at: datetime) -> int:
        """Add what another lab made at a time, once; its number.

        Where an eval has a result that stays, another one is refused: whoever could replace it
        would choose among answers.
        """
        at = at.astimezone(UTC)
        r = suite_results.c
        with self._database.begin() as connection:
            # Whoever posts to the same run at once waits here.
            this = sa.select(suite_runs.c.id).where(suite_runs.c.id == run.id)
            connection.execute(this.with_for_update())
            query = (
                sa.select(suite_results, code_tasks.c.category, code_tasks.c.name)
                .join(code_tasks)
                .where(r.run_id == run.id, r.replicate == result.replicate)
                .where(code_tasks.c.category == result.category)
                .where(code_tasks.c.name == result.name)
            )
            for row in map(_result, connection.execute(query).mappings()):
                if row.at == at:
                    return row.id
                if row.result.settled:
                    raise ConflictError(
                        f"run {run.id} has a result of {result.path}, replicate "
                        f"{result.replicate}, from elsewhere; post under another series"
                    )
            return self._insert(connection, run, result, at)

    def _insert(
        self, connection: sa.Connection, run: SuiteRun, result: EvalResult, at: datetime
    ) -> int:
        task = sa.select(code_tasks.c.id).where(
            code_tasks.c.suite == run.suite,
            code_tasks.c.version == run.version,
            code_tasks.c.category == result.category,
            code_tasks.c.name == result.name,
        )
        row = {
            "run_id": run.id,
            "task_id": connection.execute(task).scalar_one(),
            "replicate": result.replicate,
            "outcome": result.outcome.kind,
            "why": getattr(result.outcome, "why", ""),
            "step": getattr(result.outcome, "step", ""),
            "reason": proper(getattr(result.outcome, "reason", "")),
            "call_id": result.call_id,
            "seconds": result.seconds,
            "usd": result.usd,
            "isolation": result.isolation,
            "at": at,
        }
        made = connection.execute(suite_results.insert(), row).inserted_primary_key
        assert made is not None
        id = int(made[0])
        steps = [
            {
                **asdict(step),
                "result_id": id,
                "position": position,
                "reason": proper(step.reason),
                "output": self._ledger.keep(connection, step.output),
            }
            for position, step in enumerate(result.steps)
        ]
        files = [
            {"result_id": id, "path": path, "text": self._ledger.keep(connection, text)}
            for path, text in result.files.items()
        ]
        for table, rows in ((suite_steps, steps), (suite_files, files)):
            if rows:
                connection.execute(table.insert(), rows)
        return id

    def results(self, *runs: int) -> dict[int, list[SuiteResult]]:
        """The newest result of every eval and replicate by run, without steps and files."""
        r = suite_results.c
        newest = sa.select(sa.func.max(r.id)).group_by(r.run_id, r.task_id, r.replicate)
        query = (
            sa.select(suite_results, code_tasks.c.category, code_tasks.c.name)
            .join(code_tasks)
            .order_by(r.run_id, code_tasks.c.category, code_tasks.c.name, r.replicate)
        )
        if runs:
            newest = newest.where(r.run_id.in_(runs))
        found: defaultdict[int, list[SuiteResult]] = defaultdict(list)
        with self._database.read() as connection:
            for row in connection.execute(query.where(r.id.in_(newest))).mappings():
                found[row["run_id"]].append(_result(row))
        return dict(found)

    def find_result(self, id: int) -> SuiteResult:
        """A result whole: with its steps, what they printed, and the candidate's files."""
        query = sa.select(suite_results, code_tasks.c.category, code_tasks.c.name).join(code_tasks)
        with self._database.read() as connection:
            row = connection.execute(query.where(suite_results.c.id == id)).mappings().first()
            if row is None:
                raise NotFoundError(f"there is no eval {id}; judge-gym suite show RUN lists some")
            steps = connection.execute(
                sa.select(suite_steps)
                .where(suite_steps.c.result_id == id)
                .order_by(suite_steps.c.position)
            ).mappings()
            listed = [dict(step) for step in steps]
            of = suite_files.c.result_id == id
            stored = connection.execute(sa.select(suite_files).where(of)).all()
            hashes = [*(step["output"] for step in listed), *(file.text for file in stored)]
            body = bodies_of(connection, hashes)
        for step in listed:
            del step["result_id"], step["position"]
            step["output"] = body[step["output"]]
        files = {file.path: body[file.text] for file in sorted(stored, key=lambda f: f.path)}
        return _result(row, tuple(StepResult(**step) for step in listed), files)

    def generation(self, call_id: int) -> Generation:
        """What the newest attempt at a call took, and why it brought nothing, if so."""
        query = (
            sa.select(attempts.c.seconds, attempts.c.usd, attempts.c.error)
            .join(calls, calls.c.id == attempts.c.call_id)
            .where(calls.c.id == call_id)
            .where(attempts.c.id == latest_attempt(calls.c.id, completed=False))
        )
        with self._database.read() as connection:
            seconds, usd, error = connection.execute(query).one()
        return Generation(seconds, usd, error or "")


def _run(row: sa.RowMapping) -> SuiteRun:
    stored = dict(row)
    stored["evals"] = tuple(stored["evals"])
    return SuiteRun(**{**stored, "created": _aware(stored["created"])})


def _result(
    row: sa.RowMapping,
    steps: tuple[StepResult, ...] = (),
    files: Mapping[str, str] | None = None,
) -> SuiteResult:
    fields = ("category", "name", "replicate", "call_id", "seconds", "usd", "isolation")
    result = EvalResult(
        outcome=_outcome(row),
        steps=steps,
        files=files or {},
        **{field: row[field] for field in fields},
    )
    return SuiteResult(row["id"], row["run_id"], _aware(row["at"]), result)


def _outcome(row: sa.RowMapping) -> Outcome:
    match row["outcome"]:
        case "passed":
            return Passed()
        case "failed":
            return Failed(row["step"], row["reason"])
        case _:
            return Inconclusive(row["why"], row["reason"], row["step"])


def _aware(at: datetime) -> datetime:
    """SQLite forgets the zone, which is UTC always."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at
