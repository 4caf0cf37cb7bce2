"""Builds the web application and serves it."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from judge_gym.errors import ConflictError, DesignError, JudgeGymError
from judge_gym.lab import Lab
from judge_gym.records import palette
from judge_gym.records.build import version
from judge_gym.web.analysis_cache import AnalysisCache
from judge_gym.web.api import router
from judge_gym.web.api.streams import metrics
from judge_gym.web.connections import TimedProtocol
from judge_gym.web.events import RunWatcher
from judge_gym.web.middleware import (
    AGENTS,
    AccessMiddleware,
    Limits,
    error_response,
    response_to,
)
from judge_gym.web.pages import router as pages
from judge_gym.web.rendering import error_page
from judge_gym.web.reports import ReportBuilder
from judge_gym.web.security import LOOPBACK, Authenticator, is_loopback
from judge_gym.web.supervisor import WorkerSupervisor

PORT = 8642
LONGEST_SHOWN = 100
"""Characters of a refused value that an error message repeats."""
ABOUT = """
Everything that `judge_gym.Lab` does, over HTTP. Send a token: `Authorization: Bearer TOKEN`;
`judge-gym token create NAME` creates one. Errors have one shape:
`{error: {kind, message, choices}}`.
"""

App = ASGIApp
AgentApp = Callable[[App], AbstractAsyncContextManager[App]]
"""Opens an application for agents, which calls the API through its access checks."""


class Address(NamedTuple):
    """The server's URL, and a token for the person who started it."""

    url: str
    token: str | None
    """None if the server can be reached by others: then only tokens of the lab are valid."""


def make_app(
    lab: Lab,
    auth: Authenticator,
    watcher: RunWatcher,
    *,
    supervisor: WorkerSupervisor | None,
    limits: Limits,
    public: bool = False,
    agents: AgentApp | None = None,
) -> ASGIApp:
    """Returns the application behind its access checks."""
    lab.serving.refuse_model_paths()
    reports = ReportBuilder(lab)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(reports.close)
            if agents is not None:
                route = Route(AGENTS, await stack.enter_async_context(agents(checked)))
                app.router.routes.append(route)
            if supervisor is not None:
                supervisor.start()
                stack.push_async_callback(asyncio.to_thread, supervisor.stop)
            yield

    app = FastAPI(
        title="judge-gym",
        description=ABOUT,
        version=version(),
        openapi_url="/api/openapi.json",
        docs_url=None,  # its pages load scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.lab, app.state.watcher = lab, watcher
    app.state.reports, app.state.analyses = reports, AnalysisCache(lab)
    app.state.supervisor = supervisor
    # Not included, since FastAPI would analyse each of them once more, which takes a second.
    app.router.routes.extend([*router.routes, *pages.routes])
    app.add_route("/metrics", metrics, include_in_schema=False)
    app.add_route("/static/colours.css", colours, include_in_schema=False)
    app.mount("/static/fonts", StaticFiles(directory=palette.FONTS))
    app.mount("/static", StaticFiles(packages=[("judge_gym.web", "static")]))
    app.add_exception_handler(RequestValidationError, _invalid)
    for kind in (JudgeGymError, HTTPException, OverflowError, RecursionError, Exception):
        app.add_exception_handler(kind, _refused)
    checked = AccessMiddleware(app, auth, limits, public=public)
    return checked


async def colours(request: Request) -> Response:
    """Sends the colours of pages and figures as a style sheet."""
    return Response(palette.style_sheet(), media_type="text/css")


async def _invalid(request: Request, error: Exception) -> Response:
    """Returns the first mistakes of a request that does not fit its schema, in one message."""
    assert isinstance(error, RequestValidationError)
    describe = _mistake if request.url.path.startswith("/api") else _mistake_on_page
    message = "; ".join(map(describe, error.errors()[:5]))
    return error_page(request.scope, error_response(DesignError.status, "design", message))


def _mistake(error: Mapping[str, Any]) -> str:
    """Returns where a mistake is and what it is, with the value unless that is long."""
    received = _received(error)
    message = f"{'.'.join(map(str, error['loc']))}: {error['msg']}"
    return f"{message}, not {received}" if received else message


def _mistake_on_page(error: Mapping[str, Any]) -> str:
    """Returns a mistake in words for whoever opened the address."""
    name, received = error["loc"][-1], _received(error)
    if error["type"] in ("literal_error", "enum"):
        return f"{name} cannot be {received or 'this'}; choose {error['ctx']['expected']}"
    message = error["msg"].replace("Input should", "it should")
    return f"{name} cannot be {received}: {message}" if received else f"{name}: {message}"


def _received(error: Mapping[str, Any]) -> str:
    """Returns the value that was refused; empty if it is long or no single value."""
    value = error.get("input")
    received = repr(value) if isinstance(value, str | int | float) else ""
    return received if len(received) <= LONGEST_SHOWN else ""


async def _refused(request: Request, error: Exception) -> Response:
    return error_page(request.scope, response_to(error))


@contextmanager
def in_process(
    lab: Lab, *, work: bool = True, options: tuple[str, ...] = ()
) -> Iterator[tuple[ASGIApp, str]]:
    """Yields an application to be called in this process, and a token that may write."""
    auth = Authenticator(lab.tokens.find, hosts=LOOPBACK, local=True)
    assert auth.local is not None
    supervisor = WorkerSupervisor(lab, options) if work and lab.serving.may_write() else None
    watcher = RunWatcher(lab)
    app = make_app(lab, auth, watcher, supervisor=supervisor, limits=Limits())
    if supervisor is not None:
        supervisor.start()
    try:
        yield app, auth.local
    finally:
        watcher.close()
        if supervisor is not None:
            supervisor.stop()


@contextmanager
def serve(
    lab: Lab,
    host: str = "127.0.0.1",
    port: int = PORT,
    *,
    names: Collection[str] = (),
    work: bool = True,
    options: tuple[str, ...] = (),
    limits: Limits | None = None,
    public_reads: bool = False,
    agents: AgentApp | None = None,
) -> Iterator[Address]:
    """Serves a lab until the context ends.

    Args:
        lab: the lab that is served.
        host: the address to listen on; one that others can reach needs a token in the lab.
        port: 0 takes a free one.
        names: further names by which clients may address the server.
        work: whether to start a worker when runs are queued and no other worker is running.
        options: global command-line options for the worker.
        limits: limits on what one client may send.
        public_reads: whether scores of suite runs may be read without a token.
        agents: opens an application for agents, to be served too.
    """
    local = is_loopback(host)
    if not local and not lab.tokens.any_valid():
        raise ConflictError(
            f"{host} can be reached by others, and the lab has no token; create one first: "
            "judge-gym token create NAME --scope read"
        )
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    hosts = {*names, *(LOOPBACK if local else (host,))}
    auth = Authenticator(lab.tokens.find, hosts=hosts, local=local, cookie=f"judge-gym-{port}")
    lab.addresses |= {*names, *(f"{name}:{port}" for name in hosts)}
    supervisor = WorkerSupervisor(lab, options) if work and lab.serving.may_write() else None
    watcher = RunWatcher(lab)
    app = make_app(
        lab,
        auth,
        watcher,
        supervisor=supervisor,
        limits=limits or Limits(),
        public=public_reads,
        agents=agents,
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # a URL may contain a token
        server_header=False,
        proxy_headers=False,  # any client could send them
        http=TimedProtocol,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="server", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise ConflictError(f"the server at {host}:{port} did not start")
            thread.join(0.02)
        host_name = f"[{host}]" if ":" in host else host
        yield Address(f"http://{host_name}:{port}", auth.local)
    finally:
        watcher.close()
        server.should_exit = True
        thread.join()
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ConflictError(f"cannot listen on {host}:{port}: {error.strerror}") from error
