"""Suite runs: the tasks, the runs and the result of each eval."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.errors import ConflictError, NotFoundError, Remedy
from judge_gym.records import digest, storable
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
from judge_gym.store.tables import (
    attempts,
    calls,
    code_tasks,
    suite_files,
    suite_results,
    suite_runs,
    suite_steps,
)


class Generation(NamedTuple):
    """The cost and the error of the newest attempt at a generation."""

    seconds: float
    usd: float | None
    error: str


class Suites:
    """Saves and finds suite runs. Results are only added; the newest of an eval counts."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

    # --- runs ------------------------------------------------------------------------------------

    def save_tasks(self, suite: str, version: str, sources: Sequence[EvalSource]) -> None:
        """Saves the files of evals of a version; stored files do not change."""
        with self._database.begin() as connection:
            rows = [
                {
                    "suite": suite,
                    "version": version,
                    "category": source.category,
                    "name": source.name,
                    "source": self._ledger.save_text(connection, json.dumps(asdict(source))),
                }
                for source in sources
            ]
            self._database.insert_new(connection, code_tasks, rows)

    def save_run(
        self,
        suite: str,
        version: str,
        model: str,
        condition: str,
        settings: Mapping[str, Any],
        series: str,
        *,
        replicates: int,
        evals: Sequence[str],
        created: datetime | None = None,
    ) -> SuiteRun:
        """Creates the run of a model under a condition in a series, or raises its targets.

        The evals of other paths keep their targets; `created` is by default now.
        """
        row = {
            "key": digest([suite, version, model, condition, settings, series]),
            "suite": suite,
            "version": version,
            "model": model,
            "condition": condition,
            "settings": json.loads(json.dumps(dict(settings))),
            "series": series,
            "replicates": replicates,
            "evals": dict.fromkeys(sorted(evals), replicates),
            "created": created or datetime.now(UTC),
        }
        with self._database.begin() as connection:
            id = self._database.insert_or_find(connection, suite_runs, row, "key")
            this = suite_runs.c.id == id
            stored = connection.execute(sa.select(suite_runs).where(this)).one()
            before = _run(stored._mapping).replicates_of
            raised = {path: max(before.get(path, 0), replicates) for path in evals}
            targets = dict(sorted({**before, **raised}.items()))
            values = {"replicates": max(targets.values(), default=0), "evals": targets}
            connection.execute(suite_runs.update().where(this).values(values))
        return self.find_run(id)

    def find_same(
        self,
        suite: str,
        version: str,
        model: str,
        condition: str,
        settings: Mapping[str, Any],
        series: str,
    ) -> SuiteRun | None:
        """Returns the run that `save_run` would continue; None where it would create one."""
        key = digest([suite, version, model, condition, settings, series])
        rows = self._database.rows(sa.select(suite_runs).where(suite_runs.c.key == key))
        return _run(rows[0]) if rows else None

    def find_run(self, id: int) -> SuiteRun:
        """Returns a run by its number."""
        rows = self._database.rows(sa.select(suite_runs).where(suite_runs.c.id == id))
        if not rows:
            raise NotFoundError(f"there is no suite run {id}", remedy=Remedy("suites.list_runs"))
        return _run(rows[0])

    def list_runs(self, *, suite: str | None = None, model: str | None = None) -> list[SuiteRun]:
        """Returns all runs, or those of a suite or a model, oldest first."""
        query = sa.select(suite_runs).order_by(suite_runs.c.id)
        for column, value in ((suite_runs.c.suite, suite), (suite_runs.c.model, model)):
            query = query.where(column == value) if value is not None else query
        return [_run(row) for row in self._database.rows(query)]

    def sizes(self) -> dict[tuple[str, str], int]:
        """Returns the number of evals by name and version of a suite."""
        t = code_tasks.c
        query = sa.select(t.suite, t.version, sa.func.count()).group_by(t.suite, t.version)
        with self._database.read() as connection:
            return {(suite, version): n for suite, version, n in connection.execute(query)}

    def paths(self, suite: str, version: str) -> list[str]:
        """Returns the paths of the evals of a version of a suite."""
        t = code_tasks.c
        query = sa.select(t.category, t.name).where(t.suite == suite, t.version == version)
        with self._database.read() as connection:
            return sorted(f"{category}/{name}" for category, name in connection.execute(query))

    def source(self, run: SuiteRun, category: str, name: str) -> EvalSource:
        """Returns the files of an eval in the version of a run."""
        with self._database.read() as connection:
            query = sa.select(code_tasks.c.source).where(_task(run, category, name))
            hash = connection.scalar(query)
            body = bodies_of(connection, [hash] if hash else []).get(hash or "")
        if body is None:
            raise NotFoundError(f"there is no eval {category}/{name} in the suite {run.suite!r}")
        return EvalSource(**json.loads(body))

    # --- results ---------------------------------------------------------------------------------

    def save_result(self, run: SuiteRun, result: EvalResult) -> int:
        """Adds a result with its steps and files, and returns its number."""
        with self._database.begin() as connection:
            return self._insert(connection, run, result, datetime.now(UTC))

    def save_posted_result(self, run: SuiteRun, result: EvalResult, at: datetime) -> int:
        """Adds a result that another lab made at a time, once, and returns its number.

        A settled result is never replaced, since a client could then choose among answers.
        """
        r = suite_results.c
        with self._database.begin() as connection:
            # Concurrent posts to the same run wait here.
            this = sa.select(suite_runs.c.id).where(suite_runs.c.id == run.id)
            connection.execute(this.with_for_update())
            query = (
                sa.select(suite_results, code_tasks.c.category, code_tasks.c.name)
                .join(code_tasks)
                .where(r.run_id == run.id, r.replicate == result.replicate)
                .where(_task(run, result.category, result.name))
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
        task = sa.select(code_tasks.c.id).where(_task(run, result.category, result.name))
        row = {
            "run_id": run.id,
            "task_id": connection.execute(task).scalar_one(),
            "replicate": result.replicate,
            "outcome": result.outcome.kind,
            "why": getattr(result.outcome, "why", ""),
            "step": getattr(result.outcome, "step", ""),
            "reason": storable(getattr(result.outcome, "reason", "")),
            "call_id": result.call_id,
            "seconds": result.seconds,
            "usd": result.usd,
            "isolation": result.isolation,
            "at": at,
        }
        inserted = connection.execute(suite_results.insert(), row).inserted_primary_key
        assert inserted is not None
        id = int(inserted[0])
        steps = [
            {
                **asdict(step),
                "result_id": id,
                "position": position,
                "reason": storable(step.reason),
                "output": self._ledger.save_text(connection, step.output),
            }
            for position, step in enumerate(result.steps)
        ]
        files = [
            {"result_id": id, "path": path, "text": self._ledger.save_text(connection, text)}
            for path, text in result.files.items()
        ]
        for table, rows in ((suite_steps, steps), (suite_files, files)):
            if rows:
                connection.execute(table.insert(), rows)
        return id

    def missing(
        self, run: SuiteRun, selection: Mapping[str, int] | None = None
    ) -> list[tuple[str, int]]:
        """Returns the path and replicate of each eval of a run that has no settled result.

        Args:
            run: the run.
            selection: only these evals, and as many replicates of each.
        """
        rows = self.results(run.id).get(run.id, [])
        settled = {(row.result.path, row.result.replicate) for row in rows if row.result.settled}
        targets = run.replicates_of if selection is None else selection
        return [
            (path, replicate)
            for path, replicates in targets.items()
            for replicate in range(replicates)
            if (path, replicate) not in settled
        ]

    def results(self, *runs: int) -> dict[int, list[SuiteResult]]:
        """Returns the newest result of every eval and replicate by run, without steps and files."""
        r = suite_results.c
        newest = sa.select(sa.func.max(r.id)).group_by(r.run_id, r.task_id, r.replicate)
        query = (
            sa.select(suite_results, code_tasks.c.category, code_tasks.c.name)
            .join(code_tasks)
            .order_by(r.run_id, code_tasks.c.category, code_tasks.c.name, r.replicate)
        )
        if runs:
            newest = newest.where(r.run_id.in_(runs))
        by_run: defaultdict[int, list[SuiteResult]] = defaultdict(list)
        for row in self._database.rows(query.where(r.id.in_(newest))):
            by_run[row["run_id"]].append(_result(row))
        return dict(by_run)

    def find_result(self, id: int) -> SuiteResult:
        """Returns a result with its steps, their output and the candidate's files."""
        query = sa.select(suite_results, code_tasks.c.category, code_tasks.c.name).join(code_tasks)
        with self._database.read() as connection:
            row = connection.execute(query.where(suite_results.c.id == id)).mappings().first()
            if row is None:
                raise NotFoundError(
                    f"there is no eval {id}", remedy=Remedy("suites.show_run", {"run": "RUN"})
                )
            s, f = suite_steps.c, suite_files.c
            columns = [column for column in s if column.name not in ("result_id", "position")]
            query = sa.select(*columns).where(s.result_id == id).order_by(s.position)
            steps = [dict(step) for step in connection.execute(query).mappings()]
            files = connection.execute(
                sa.select(f.path, f.text).where(f.result_id == id).order_by(f.path)
            ).all()
            hashes = [*(step["output"] for step in steps), *(file.text for file in files)]
            bodies = bodies_of(connection, hashes)
        for step in steps:
            step["output"] = bodies[step["output"]]
        texts = {file.path: bodies[file.text] for file in files}
        return _result(row, tuple(StepResult(**step) for step in steps), texts)

    def generation(self, call_id: int) -> Generation:
        """Returns the cost of the newest attempt at a call, and its error."""
        query = (
            sa.select(attempts.c.seconds, attempts.c.usd, attempts.c.error)
            .join(calls, calls.c.id == attempts.c.call_id)
            .where(calls.c.id == call_id)
            .where(attempts.c.id == latest_attempt(calls.c.id, completed=False))
        )
        seconds, usd, error = self._database.first(query)
        return Generation(seconds, usd, error or "")


def _task(run: SuiteRun, category: str, name: str) -> sa.ColumnElement[bool]:
    t = code_tasks.c
    identity = {t.suite: run.suite, t.version: run.version, t.category: category, t.name: name}
    return sa.and_(*(column == value for column, value in identity.items()))


def _run(row: Mapping[Any, Any]) -> SuiteRun:
    columns = dict(row)
    del columns["replicates"]
    return SuiteRun(replicates_of=columns.pop("evals"), **columns)


def _result(
    row: Mapping[Any, Any],
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
    return SuiteResult(row["id"], row["run_id"], row["at"], result)


def _outcome(row: Mapping[Any, Any]) -> Outcome:
    match row["outcome"]:
        case "passed":
            return Passed()
        case "failed":
            return Failed(row["step"], row["reason"])
        case _:
            return Inconclusive(row["why"], row["reason"], row["step"])
