"""Putting evidence before judges: plan, start, pause, resume, cancel, retry, retune, and watch."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import ConfigDict, Field, model_validator
from starlette.responses import Response

from judge_gym.engine import Plan, StagePlan, Workflow
from judge_gym.lab import Lab
from judge_gym.lab.prepare import PreparedStudy
from judge_gym.web import uploads
from judge_gym.web.api.answers import (
    LARGEST,
    PILOT,
    PILOT_TAG,
    STREAM_ERRORS,
    Body,
    Name,
    OpenLab,
    shows,
)
from judge_gym.web.events import Watch
from judge_gym.web.middleware import Json

router = APIRouter(tags=["runs"])
Budget = Annotated[
    dict[str, int | float | None],
    Field(description="usd, calls, tokens, minutes, or run.usd ... of each run; over the study's."),
]
Samples = Annotated[int, Field(ge=1, le=10_000, description="Replicates of each cell.")]
Series = Annotated[Name, Field(description="Draw scores and probes afresh under this name.")]
STUDY = "study: pilot\nevidence: {here: {pool: january}}\ntasks: ...\njudges: [sim:balanced]\n"
STAGE = {"calls": 60, "in_ledger": 0, "input_tokens": 40000, "output_tokens": 6000, "usd": 0.1}
PLAN = {"study": PILOT, "experiments": [{"tag": PILOT_TAG}], "stages": {"scorer": STAGE}}


class Asked(Body):
    """A study by its name, an experiment by its tag, or a study file's text."""

    target: Name | None = None
    study: Annotated[str | None, Field(description="The text of a study file (YAML).")] = None
    overrides: Annotated[dict[str, Any], Field(description="Knobs over those of the text.")] = {}
    series: Series | None = None
    samples: Samples | None = None

    @model_validator(mode="after")
    def _one(self) -> "Asked":
        if (self.target is None) == (self.study is None):
            raise ValueError("give either target or study")
        if self.target is not None and self.overrides:
            raise ValueError("overrides change a study's text; a target has its design")
        return self

    def of(self, request: Request, lab: Lab) -> str | PreparedStudy:
        """What `Lab` takes for it."""
        if self.study is None:
            return uploads.named(str(self.target))
        return uploads.prepared(lab, self.study, request.app.state.folder, self.overrides)


class Planned(Asked):
    """What is to be planned."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"study": STUDY}]})


class Started(Asked):
    """What is to be carried out."""

    new_run: bool = False
    workflows: Annotated[list[Workflow], Field(min_length=1, max_length=5)] | None = None
    rivals: Annotated[list[Name], Field(max_length=50)] = []
    budget: Budget = {}
    pause_after: Workflow | None = None
    only_failed: bool = False
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"target": PILOT, "workflows": ["score"], "budget": {"usd": 5}}]
        }
    )


class Steered(Body):
    """Whose unfinished runs are meant."""

    target: Name
    model_config = ConfigDict(json_schema_extra={"examples": [{"target": PILOT}]})


class Reread(Steered):
    """Whose stored answers are read again."""

    write: Annotated[bool, Field(description="Change the records; else only look.")] = False


class Resumed(Steered):
    """What goes on, and how far."""

    budget: Budget = {}
    pause_after: Workflow | None = None


class Limits(Body):
    """Limits in every process that is at work."""

    rpm: Annotated[int, Field(ge=1, le=LARGEST)] | None = None
    tpm: Annotated[int, Field(ge=1, le=LARGEST)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None


class Retuned(Steered):
    """What changes while runs go on."""

    budget: Budget = {}
    limits: Limits = Limits()
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"target": PILOT, "limits": {"rpm": 100}}]}
    )


@router.post("/plan", responses=shows(PLAN))
def plan(request: Request, lab: OpenLab, body: Planned) -> Response:
    """What a study would ask at most, cost and take, and what the ledger answers already."""
    made, prepared = lab.runs.plan(body.of(request, lab), series=body.series, samples=body.samples)
    return Json(_planned(made, prepared))


@router.post("/runs", status_code=202, responses=shows({"started": [PILOT_TAG]}, status=202))
def start(request: Request, lab: OpenLab, body: Started) -> Response:
    """Order runs and return at once; whoever works on the lab carries them out."""
    fields = {"new_run", "workflows", "rivals", "budget", "pause_after", "only_failed"}
    given = body.model_dump(include=fields, exclude_none=True)
    target = body.of(request, lab)
    return _ordered(request, lab, target, series=body.series, samples=body.samples, **given)


@router.post("/runs/resume", status_code=202, responses=shows({"started": [PILOT_TAG]}, status=202))
def resume(request: Request, lab: OpenLab, body: Resumed) -> Response:
    """Go on with what was paused, interrupted or over its budget."""
    target = uploads.named(body.target)
    return _ordered(request, lab, target, budget=body.budget, pause_after=body.pause_after)


@router.post("/runs/retry", status_code=202, responses=shows({"started": [PILOT_TAG]}, status=202))
def retry(request: Request, lab: OpenLab, body: Steered) -> Response:
    """Ask again for what no attempt brought an answer to, and for nothing else."""
    return _ordered(request, lab, uploads.named(body.target), only_failed=True)


@router.post("/runs/pause", responses=shows({"paused": [PILOT_TAG]}))
def pause(lab: OpenLab, body: Steered) -> Response:
    """Begin no further call of unfinished runs; those in flight are awaited and recorded."""
    return Json({"paused": lab.runs.pause(uploads.named(body.target))})


@router.post("/runs/cancel", responses=shows({"cancelled": [PILOT_TAG]}))
def cancel(lab: OpenLab, body: Steered) -> Response:
    """Begin no further call of unfinished runs, for good; what was paid for stays."""
    return Json({"cancelled": lab.runs.cancel(uploads.named(body.target))})


@router.post("/runs/retune", responses=shows({"budget": {"usd": 30}, "limits": {"rpm": 100}}))
def retune(lab: OpenLab, body: Retuned) -> Response:
    """Change the budget or the limits while runs go on."""
    limits = body.limits.model_dump(exclude_none=True)
    now = lab.runs.retune(uploads.named(body.target), budget=body.budget, limits=limits)
    return Json({"budget": now.model_dump(exclude_none=True), "limits": limits})


@router.post("/reparse", responses=shows({"written": False, "read": {}, "changes": []}))
def reparse(lab: OpenLab, body: Reread) -> Response:
    """Read stored answers with today's parsers, and tell what changes; nothing is asked anew."""
    return Json(lab.runs.reparse(uploads.named(body.target), write=body.write).to_json())


def _watched(
    request: Request,
    lab: OpenLab,
    target: Annotated[
        Name | None, Query(description="A study's name or a tag; everything where none is given.")
    ] = None,
) -> str | None:
    """Refuse before the stream begins: afterwards an error has no status."""
    watch: Watch = request.app.state.watch
    watch.refuse_crowd()
    if target is not None:
        lab.experiments.find(uploads.named(target))
    return target


@router.get(
    "/events",
    response_class=EventSourceResponse,
    responses=STREAM_ERRORS
    | {200: {"content": {"text/event-stream": {"example": "event: status\ndata: {...}\n\n"}}}},
)
async def events(
    request: Request,
    target: Annotated[str | None, Depends(_watched)],
    last_event_id: Annotated[
        int, Header(ge=0, le=LARGEST, description="Go on after this event.")
    ] = 0,
) -> AsyncIterator[ServerSentEvent]:
    """What goes on: `event` for each thing that happened, `status` when one changes, `end`."""
    watch: Watch = request.app.state.watch
    async for event in watch.follow(target, last_event_id):
        yield event


def _ordered(request: Request, lab: Lab, target: str | PreparedStudy, **given: Any) -> Response:
    tags = lab.runs.start(target, **given)
    if request.app.state.supervisor is not None:
        request.app.state.supervisor.request_worker()
    return Json({"started": tags}, 202)


def _planned(plan: Plan, prepared: PreparedStudy) -> dict[str, Any]:
    stages: dict[str, StagePlan] = dict(plan.stages.items())
    stages["all"] = plan.total()
    return {
        "study": prepared.study,
        "experiments": [{"tag": tag, **counts} for tag, counts in plan.experiments.items()],
        "stages": {
            name: {**asdict(stage), "to_pay": stage.to_pay} for name, stage in stages.items()
        },
        "folded": dict(prepared.sweep.folded),
        "skipped_swaps": list(prepared.sweep.skipped_swaps),
        "warnings": list(prepared.warnings),
    }
