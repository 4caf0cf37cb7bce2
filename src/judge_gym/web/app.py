"""Makes the application, and serves it."""

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
from importlib import metadata
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
from judge_gym.web.analysis_cache import AnalysisCache
from judge_gym.web.api import router
from judge_gym.web.connections import TimedProtocol
from judge_gym.web.events import Watch
from judge_gym.web.middleware import (
    AGENTS,
    AccessMiddleware,
    Json,
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
"""Characters of a refused value that are said back."""
ABOUT = """
Everything that `judge_gym.Lab` does, over HTTP. Send a token: `Authorization: Bearer TOKEN`;
`judge-gym token create NAME` makes one. Errors have one shape: `{error: {kind, message, choices}}`.
"""

App = ASGIApp
Face = Callable[[App], AbstractAsyncContextManager[App]]
"""Makes a face for agents, which asks the application behind its gate, and ends it."""


class Address(NamedTuple):
    """Where the server is, and what its own browser shows it."""

    url: str
    token: str | None
    """Of whoever started it; None where only tokens of the lab count."""


def make_app(
    lab: Lab,
    auth: Authenticator,
    watch: Watch,
    *,
    supervisor: WorkerSupervisor | None,
    limits: Limits,
    public: bool = False,
    face: Face | None = None,
) -> ASGIApp:
    """The application behind its gate.

    Args:
        lab: what is served.
        auth: authenticates callers.
        watch: sees what goes on.
        supervisor: starts workers; None where others run them.
        limits: what one client may ask.
        public: whether scores of suite runs may be read without a token.
        face: one for agents.
    """
    reports = ReportBuilder(lab)

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(reports.close)
            if face is not None:
                made = await stack.enter_async_context(face(gated))
                app.router.routes.append(Route(AGENTS, made))
            if supervisor is not None:
                supervisor.start()
                stack.push_async_callback(asyncio.to_thread, supervisor.stop)
            yield

    app = FastAPI(
        title="judge-gym",
        description=ABOUT,
        version=metadata.version("judge-gym"),
        openapi_url="/api/openapi.json",
        docs_url=None,  # its pages come from elsewhere
        redoc_url=None,
        lifespan=living,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,  # the name of the verb
        default_response_class=Json,
    )
    app.state.lab, app.state.watch = lab, watch
    app.state.reports, app.state.analyses = reports, AnalysisCache(lab)
    app.state.supervisor = supervisor
    app.include_router(router)
    app.include_router(pages)
    app.mount("/static", StaticFiles(packages=[("judge_gym.web", "static")]))
    app.add_exception_handler(RequestValidationError, _invalid)
    for kind in (JudgeGymError, HTTPException, OverflowError, RecursionError, Exception):
        app.add_exception_handler(kind, _refused)
    gated = AccessMiddleware(app, auth, limits, public=public)
    return gated


async def _invalid(request: Request, fault: Exception) -> Response:
    """What does not fit the description, in one sentence."""
    assert isinstance(fault, RequestValidationError)
    said = [_complaint(error) for error in fault.errors()[:5]]
    return error_page(request.scope, error_response(DesignError.status, "design", "; ".join(said)))


def _complaint(error: Mapping[str, Any]) -> str:
    """Where, what, and the value, unless it is long: a body's is whatever was sent."""
    value = error.get("input")
    shown = f", not {value!r}" if isinstance(value, str | int | float) else ""
    said = f"{'.'.join(map(str, error['loc']))}: {error['msg']}"
    return said + (shown if len(shown) <= LONGEST_SHOWN else "")


async def _refused(request: Request, fault: Exception) -> Response:
    return error_page(request.scope, response_to(fault))


@contextmanager
def within(
    lab: Lab, *, work: bool = True, options: tuple[str, ...] = ()
) -> Iterator[tuple[ASGIApp, str]]:
    """The application for a face in this process, and a token that may write.

    Args:
        lab: what is behind it.
        work: have runs carried out while nobody else does.
        options: of every verb, for the worker.
    """
    auth = Authenticator(lab.admin.find_token, hosts=LOOPBACK, local=True)
    assert auth.local is not None
    supervisor = WorkerSupervisor(lab, options) if work else None
    watch = Watch(lab)
    app = make_app(lab, auth, watch, supervisor=supervisor, limits=Limits())
    if supervisor is not None:
        supervisor.start()
    try:
        yield app, auth.local
    finally:
        watch.close()
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
    face: Face | None = None,
) -> Iterator[Address]:
    """Serve a lab while the context lasts.

    Args:
        lab: what is served.
        host: the address to listen at; one that others reach needs a token in the lab.
        port: 0 takes a free one.
        names: further names under which the server may be asked.
        work: have runs carried out while nobody else does.
        options: of every verb, for the worker.
        limits: what one client may ask.
        public_reads: scores of suite runs may be read without a token.
        face: one for agents.
    """
    local = is_loopback(host)
    if not local and not lab.admin.has_tokens():
        raise ConflictError(
            f"{host} can be reached by others, and the lab has no token; make one first: "
            "judge-gym token create NAME --scope read"
        )
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    hosts = {*names, *(LOOPBACK if local else (host,))}
    auth = Authenticator(lab.admin.find_token, hosts=hosts, local=local, cookie=f"judge-gym-{port}")
    supervisor = WorkerSupervisor(lab, options) if work else None
    watch = Watch(lab)
    app = make_app(
        lab,
        auth,
        watch,
        supervisor=supervisor,
        limits=limits or Limits(),
        public=public_reads,
        face=face,
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # an address may hold a token
        server_header=False,
        proxy_headers=False,  # anybody could write them
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
        shown = f"[{host}]" if ":" in host else host
        yield Address(f"http://{shown}:{port}", auth.local)
    finally:
        watch.close()
        server.should_exit = True
        thread.join()
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as fault:
        raise ConflictError(f"cannot listen at {host}:{port}: {fault.strerror}") from fault
