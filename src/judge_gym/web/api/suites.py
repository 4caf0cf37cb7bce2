"""Suite runs: scores, what failed and why, what is due; and the runs that other labs post."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, ConfigDict, Field, StringConstraints
from starlette.responses import Response

from judge_gym.engine.suite_reports import SuiteReport, eval_row
from judge_gym.records.outcomes import (
    EvalResult,
    EvalSource,
    Failed,
    Inconclusive,
    InconclusiveReason,
    Outcome,
    Passed,
    StepResult,
    StepStatus,
)
from judge_gym.web import tables
from judge_gym.web.api.answers import (
    LARGEST,
    Body,
    Cursor,
    Limit,
    Name,
    OpenLab,
    Wanted,
    page,
    shows,
    shows_rows,
    table,
)
from judge_gym.web.middleware import Json

router = APIRouter(tags=["suites"])

Number = Annotated[int, Path(ge=1, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
# A part of an eval's path, which is category/name.
Part = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^/\x00]+$")]
Short = Annotated[str, StringConstraints(max_length=20_000)]
Long = Annotated[str, StringConstraints(max_length=4_000_000)]
Files = Annotated[dict[Name, Long], Field(max_length=500)]
OfSuite = Annotated[Name | None, Query(description="Only the suite of this name.")]

TASK: dict[str, Any] = {"category": "001-basics", "name": "001-slug", "task": "Write slug(text)."}
EVAL: dict[str, Any] = {
    **TASK,
    "path": "001-basics/001-slug",
    "replicate": 0,
    "outcome": "failed",
    "run": 1,
}
EVAL = {**EVAL, "step": "tests", "reason": "1 of 5 tests failed", "eval": 7}
RUN = {
    "run": 1,
    "suite": "python",
    "model": "openai:gpt-4.1",
    "experiment": "default",
    "status": "complete",
    "score": 0.875,
    "low": 0.64,
    "high": 0.97,
}
EXECUTION = ("calls", "reused", "usd")
"""What a report tells of the command that was just given; here none was."""


# --- what is posted ------------------------------------------------------------------------------


class Source(Body):
    """The files behind an eval."""

    category: Part
    name: Part
    task: Long
    answer: Files = {}
    grader: Files = {}
    gaps: Long = ""


class Tasks(Body):
    """Evals of a version of a suite; several requests may bring them."""

    suite: Name
    version: Name
    evals: Annotated[list[Source], Field(min_length=1, max_length=1000)]
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"suite": "python", "version": "3f9c", "evals": [TASK]}]}
    )


class Condition(Body):
    """What a model was given besides the task."""

    guidelines: bool = True
    without: Annotated[list[Name], Field(max_length=500)] = []
    web_search: bool = False
    extra: Long = ""


class Run(Body):
    """A model before a suite, under a condition, in a series of draws."""

    suite: Name
    version: Name
    model: Name
    experiment: Name = "default"
    condition: Condition = Condition()
    series: Name = "0"
    replicates: Annotated[int, Field(ge=1, le=1000)] = 1
    evals: Annotated[list[Name], Field(min_length=1, max_length=10_000, description="Paths.")]
    created: AwareDatetime | None = None
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "suite": "python",
                    "version": "3f9c",
                    "model": "openai:gpt-4.1",
                    "evals": ["001-basics/001-slug"],
                }
            ]
        }
    )


class WasPassed(Body):
    """Every step passed, and every test."""

    kind: Literal["passed"]


class WasFailed(Body):
    """The candidate's own fault."""

    kind: Literal["failed"]
    step: Part
    reason: Short


class WasInconclusive(Body):
    """Nothing was learnt."""

    kind: Literal["inconclusive"]
    why: InconclusiveReason
    step: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")] = ""
    reason: Short


class Step(Body):
    """One step of an eval."""

    name: Part
    status: StepStatus
    seconds: Amount
    reason: Short = ""
    output: Long = ""
    tests_passed: Count | None = None
    tests_collected: Count | None = None


class Eval(Body):
    """A result, with its steps and the files that the model wrote."""

    category: Part
    name: Part
    replicate: Count = 0
    outcome: Annotated[WasPassed | WasFailed | WasInconclusive, Field(discriminator="kind")]
    steps: Annotated[list[Step], Field(max_length=100)] = []
    files: Files = {}
    seconds: Annotated[Amount, Field(description="Of the generation.")] = 0.0
    usd: Amount | None = None
    isolation: Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")] = ""
    at: Annotated[AwareDatetime, Field(description="When it was made; sent twice, it is kept once")]
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "category": "001-basics",
                    "name": "001-slug",
                    "outcome": {"kind": "failed", "step": "tests", "reason": "1 of 5 failed"},
                    "steps": [{"name": "tests", "status": "failed", "seconds": 0.4}],
                    "files": {"solution.py": "def slug(text): ..."},
                    "at": "2026-02-06T12:00:00Z",
                }
            ]
        }
    )

    def result(self) -> EvalResult:
        """What `Lab` takes for it."""
        given = self.model_dump(exclude={"outcome", "steps", "at"})
        steps = tuple(StepResult(**step.model_dump()) for step in self.steps)
        return EvalResult(**given, outcome=self._outcome(), steps=steps)

    def _outcome(self) -> Outcome:
        match self.outcome:
            case WasPassed():
                return Passed()
            case WasFailed(step=step, reason=reason):
                return Failed(step, reason)
            case WasInconclusive(why=why, step=step, reason=reason):
                return Inconclusive(why, reason, step)


@router.post(
    "/suites/tasks", status_code=201, responses=shows({"evals": [EVAL["path"]]}, status=201)
)
def keep_tasks(lab: OpenLab, body: Tasks) -> Response:
    """Keep the files of evals; what is there stays. All evals of the version come first."""
    sources = [EvalSource(**source.model_dump()) for source in body.evals]
    return Json({"evals": lab.suites.save_tasks(body.suite, body.version, sources)}, 201)


@router.post("/suites/runs", status_code=201, responses=shows({"run": 1}, status=201))
def keep_run(lab: OpenLab, body: Run) -> Response:
    """Begin a run that another lab makes, or find it and raise its targets."""
    made = lab.suites.save_run(**{**dict(body), "condition": body.condition.model_dump()})
    return Json({"run": made.id}, 201)


@router.post("/suites/runs/{run}/evals", status_code=201, responses=shows({"eval": 7}, status=201))
def keep_eval(lab: OpenLab, run: Number, body: Eval) -> Response:
    """Keep a result of a run; a second one of the same eval only where the first told nothing."""
    return Json({"eval": lab.suites.save_eval(run, body.result(), body.at)}, 201)


# --- what is there -------------------------------------------------------------------------------


@router.get("/suites/tasks", responses=shows({"evals": [EVAL["path"]]}))
def suite_tasks(lab: OpenLab, suite: Name, version: Name) -> Response:
    """The evals of a version of a suite whose files are here, by their paths."""
    return Json({"evals": lab.suites.list_tasks(suite, version)})


@router.get("/suites/runs", responses=shows_rows(RUN))
def suite_runs(
    lab: OpenLab,
    suite: OfSuite = None,
    model: Annotated[Name | None, Query(description="Only this model's.")] = None,
    format: Wanted = "json",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Runs with their scores, oldest first."""
    rows = [told(report) for report in lab.suites.list_runs(suite=suite, model=model)]
    return table(rows, format, "suite-runs", key="run", cursor=cursor, limit=limit)


@router.get("/suites/runs/{run}", responses=shows({**RUN, "evals": [EVAL]}))
def suite_run(lab: OpenLab, run: Number) -> Response:
    """A run with all its evals."""
    report = lab.suites.show_run(run)
    return Json({**told(report), "evals": [eval_row(row) for row in report.results]})


@router.get("/suites/runs/{run}/failed", responses=shows_rows(EVAL))
def failed_evals(
    lab: OpenLab, run: Number, format: Wanted = "json", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """The evals of a run that did not pass, with the step and the reason."""
    rows = lab.suites.list_failed(run)
    return table(rows, format, "failed", key="eval", cursor=cursor, limit=limit)


@router.get("/suites/evals/{eval}", responses=shows({**EVAL, "steps": [], "files": {}}))
def eval_debug(lab: OpenLab, eval: Number) -> Response:
    """All that there is about one eval: task, steps, output files, answer, grader, gaps."""
    return Json(lab.suites.show_eval(eval))


@router.get("/suites/leaderboard", responses=shows_rows({**RUN, "runs": 3, "sd": 0.02}))
def leaderboard(lab: OpenLab, suite: OfSuite = None, format: Wanted = "json") -> Response:
    """The last complete runs of each model, experiment and version; the best first."""
    rows = lab.suites.leaderboard_rows(suite=suite)
    return page(rows) if format == "json" else tables.of_rows(rows, format, "leaderboard")


@router.get(
    "/suites/schedule",
    responses=shows_rows({"model": "openai:gpt-4.1", "due": True, "due_from": None, "days": 12.5}),
)
def schedule(
    lab: OpenLab,
    suite: Annotated[Name, Query(description="Its name.")] = "python",
    model: Annotated[
        list[Name] | None, Query(max_length=200, description="Only these ids; else all known.")
    ] = None,
) -> Response:
    """When each model is due for another run of a suite; those that are due first."""
    return page(
        [
            {
                **{k: v for k, v in asdict(one).items() if k != "interval"},
                "days": one.interval.total_seconds() / 86400,
            }
            for one in lab.suites.due(suite, models=list(dict.fromkeys(model or ())))
        ]
    )


def told(report: SuiteReport) -> dict[str, Any]:
    """A run as it is sent."""
    made = {name: value for name, value in report.to_json().items() if name not in EXECUTION}
    return {**made, "created": report.run.created}
