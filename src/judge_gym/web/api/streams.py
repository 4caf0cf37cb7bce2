"""The routes that are no verbs: health, session, live events, and files to download."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.responses import Response, StreamingResponse

from judge_gym.errors import DatabaseGone, NotReadyError, StoreError
from judge_gym.lab import Lab
from judge_gym.lab.suite_files import File, zip_parts
from judge_gym.records.build import build, version
from judge_gym.records.requests import Include, TargetName
from judge_gym.web import tables
from judge_gym.web.api.errors import ERRORS, STREAM_ERRORS
from judge_gym.web.api.parameters import LARGEST, Id, OpenLab, from_app
from judge_gym.web.events import SUITE_RUN, RunWatcher
from judge_gym.web.metrics import TYPE, metrics_text
from judge_gym.web.security import Caller

public = APIRouter(tags=["server"])
router = APIRouter(tags=["server"])
TEXT = {"schema": {"type": "string"}}
Watcher = Annotated[RunWatcher, from_app("watcher")]
Targets = Annotated[
    list[TargetName] | None,
    Query(max_length=1000, description="Tags and studies; everything where none is given."),
]


@public.get("/health")
def health(lab: OpenLab) -> dict[str, str]:
    """Returns whether the server and its database answer (503 if not); needs no token."""
    try:
        lab.serving.may_write()
    except StoreError:  # its message names the server, and anybody may ask
        raise DatabaseGone("the database does not answer") from None
    return {"status": "ok", "version": version(), "build": build()}


@public.get("/ready", responses={503: ERRORS[503]})
def ready(lab: OpenLab) -> dict[str, str]:
    """Returns whether the lab can execute what it is asked (503 and why if not); needs no token."""
    state = lab.serving.readiness()
    if not state["ready"]:
        raise NotReadyError("; ".join(state["reasons"]))
    return {"status": "ready", "version": version(), "build": build(), "worker": state["worker"]}


@router.get("/session")
def session(request: Request) -> dict[str, str | None]:
    """Returns who asks, and what a browser must send in X-CSRF-Token when it writes."""
    caller: Caller = request.state.caller
    return asdict(caller)


def metrics(request: Request) -> Response:
    """Returns counts for Prometheus; what was spent only to callers with a token."""
    lab: Lab = request.app.state.lab
    money = request.state.caller is not None
    return Response(metrics_text(lab.serving.metrics(), money=money), media_type=TYPE)


@router.get(
    "/samples/file",
    response_class=Response,
    responses={200: {"content": {tables.TYPES["csv"]: TEXT, tables.TYPES["parquet"]: TEXT}}},
)
def samples_file(
    lab: OpenLab,
    target: Targets = None,
    format: Literal["csv", "parquet"] = "csv",
    include: Annotated[Include, Query()] = (),
) -> Response:
    """Returns all samples as a file, with a column per knob."""
    parts = lab.pages.sample_parts(*(target or ()), include=include)
    return tables.download(parts, format, "samples")


@router.get(
    "/report/file",
    response_class=Response,
    responses={200: {"content": {"text/html": TEXT, "text/markdown": TEXT}}},
)
def report_file(
    lab: OpenLab, target: TargetName, format: Literal["html", "markdown"] = "html"
) -> Response:
    """Returns the report on a study or an experiment as a page or as text."""
    report = lab.reports.build(target)
    if format == "markdown":
        return Response(report.markdown(), media_type="text/markdown")
    attached = {"Content-Disposition": 'attachment; filename="report.html"'}
    return Response(report.html(), media_type="text/html", headers=attached)


ZIP = "application/zip"
Archive: dict[int | str, dict[str, Any]] = {
    200: {"content": {ZIP: {"schema": {"type": "string", "format": "binary"}}}}
}


@router.get("/suites/runs/{run}/zip", response_class=Response, responses=Archive)
def suite_run_zip(lab: OpenLab, run: Id) -> Response:
    """Returns the files of a suite run: task, reply, output and step logs of each eval."""
    lab.suites.find_run(run)
    return _archive(lab.suites.files(run), f"suite-run-{run}")


@router.get("/suites/evals/{eval}/zip", response_class=Response, responses=Archive)
def suite_eval_zip(lab: OpenLab, eval: Id) -> Response:
    """Returns the files of one result of a suite run."""
    row = lab.suites.find_result(eval)
    return _archive(lab.suites.files(row.run_id, eval=eval), f"suite-eval-{eval}")


def _archive(files: Iterator[File], name: str) -> Response:
    attached = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return StreamingResponse(zip_parts(files), media_type=ZIP, headers=attached)


def _watched(watcher: Watcher, lab: OpenLab, target: TargetName | None = None) -> str | None:
    """Refuses an unknown target before the stream starts: later, an error has no status."""
    watcher.check_capacity()
    if target is not None and target.startswith(SUITE_RUN):
        lab.runs.status(target)
    elif target is not None:
        lab.studies.find(target)
    return target


@router.get(
    "/events",
    response_class=EventSourceResponse,
    responses=STREAM_ERRORS
    | {200: {"content": {"text/event-stream": {"example": "event: status\ndata: {...}\n\n"}}}},
)
async def events(
    watcher: Watcher,
    target: Annotated[str | None, Depends(_watched)],
    last_event_id: Annotated[
        int, Header(ge=0, le=LARGEST, description="Continue after this event.")
    ] = 0,
) -> AsyncIterator[ServerSentEvent]:
    """Streams `event` for each event of a run, `status` for each change, and `end`."""
    async for event in watcher.follow(target, last_event_id):
        yield event
