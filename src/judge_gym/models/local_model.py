"""Runs GGUF files on this machine: `local:smollm2`, `local:PATH.gguf`.

A model is served by a child process on loopback, which is started by the first call and shared by
all processes of the user on this machine. It ends after its last user.
"""

import asyncio
import json
import os
import platform
import secrets
import socket
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock

from judge_gym.errors import ProviderError, RejectedError, UnavailableError
from judge_gym.models import llama_server
from judge_gym.models.event_loops import LoopResources
from judge_gym.models.http_model import HttpModel
from judge_gym.models.local_files import cache_folder, local_file, write_private
from judge_gym.models.model_card import ModelCard
from judge_gym.records import Completion, Request, digest

EXTRA = "local"
SECONDS_TO_GREET = 10.0
OVERFLOW = "context size"
"""Words of llama.cpp about a prompt that is too long."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a server is started with; processes with the same settings share one."""

    path: str
    alias: str
    """The name under which it reports the model: its file and the start of its hash."""
    context: int
    """Tokens of a prompt and its answer."""
    threads: int
    slots: int
    """Calls that it answers at once."""


class LocalModel:
    """A model of a file on this machine.

    Raises:
        ImportError: the extra `local` is not installed.
        DesignError: the file is missing, damaged or in another format.
    """

    def __init__(self, card: ModelCard, *, context: int, threads: int, slots: int) -> None:
        if find_spec("xllamacpp") is None:  # only its child process imports it
            raise ImportError("xllamacpp is not installed", name="xllamacpp")
        self.id = card.id
        self._card = card
        file = local_file(card.name)
        alias = f"{file.path.stem}@{file.sha256[:12]}"
        self._settings = ServerSettings(
            str(file.path), alias, context, threads or default_threads(), slots
        )

    def __repr__(self) -> str:
        return f"LocalModel({self.id})"

    async def complete(self, request: Request) -> Completion:
        """Returns the model's answer; starts its server where none runs."""
        servers = await _servers.get(_open_servers)
        server = await servers.get(self.id, self._settings)
        model = HttpModel(
            self.id,
            base_url=f"{server.url}/v1",
            name=self._settings.alias,
            key=server.key,
            timeout=self._card.deadline,
            structured=self._card.structured,
            seeded=self._card.takes_seed,
            price=self._card.price,
            where=self.id,
        )
        try:
            return await model.complete(request)
        except UnavailableError as error:
            if server.alive:
                raise
            raise UnavailableError(
                f"{self.id}: its server ended during the call; the next call starts it again"
            ) from error
        except RejectedError as error:
            if OVERFLOW not in error.message:
                raise
            raise RejectedError(
                f"{error.message}; each call has {self._settings.context} tokens: set context "
                f'under [models."{self.id}"] in judge-gym.models.toml'
            ) from error


def default_threads() -> int:
    """Returns half of the processors: threads of llama.cpp that have to share one stall."""
    ours = getattr(os, "sched_getaffinity", None)  # only Linux has it
    return max(1, (len(ours(0)) if ours else os.cpu_count() or 1) // 2)


# --- servers -------------------------------------------------------------------------------------


class Server:
    """A running server that this process uses; it lives at least as long as the connection."""

    def __init__(self, url: str, key: str, connection: socket.socket) -> None:
        self.url = url
        self.key = key
        self._connection = connection

    @property
    def alive(self) -> bool:
        """Whether the process runs: it keeps the connection open and sends nothing on it."""
        try:
            return self._connection.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def leave(self) -> None:
        """Ends this use."""
        self._connection.close()


class Servers:
    """The servers that one event loop uses."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._used: dict[ServerSettings, Server] = {}

    async def get(self, id: str, settings: ServerSettings) -> Server:
        """Returns a running server, shared with other processes."""
        async with self._lock:
            server = self._used.get(settings)
            if server is None or not server.alive:
                if server is not None:
                    server.leave()
                server = await asyncio.to_thread(use_server, id, settings)
                self._used[settings] = server
            return server

    def leave(self) -> None:
        """Ends the use of all."""
        for server in self._used.values():
            server.leave()


_servers = LoopResources[Servers]()


async def _open_servers(stack: AsyncExitStack) -> Servers:
    servers = Servers()
    stack.callback(servers.leave)
    return servers


def use_server(id: str, settings: ServerSettings) -> Server:
    """Connects to the server of these settings on this machine; starts it where none runs."""
    folder = cache_folder() / "servers"
    folder.mkdir(exist_ok=True, mode=0o700)
    # The folder may be shared between machines; the path is no part, since names of a file differ.
    shared = {**asdict(settings), "path": "", "machine": platform.node()}
    state = folder / f"{digest(shared)[:16]}.json"
    with FileLock(state.with_suffix(".lock")):
        if server := _connected(_read(state)):
            return server
        started = _start(id, settings, state.with_suffix(".log"))
        write_private(state, started)
        if server := _connected(started):
            return server
    raise UnavailableError(f"{id}: its server ended as soon as it had started")


def _read(state: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(state.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _connected(state: dict[str, Any]) -> Server | None:
    """Returns the server that a state file describes; None where it has ended."""
    try:
        key, address = str(state["key"]), ("127.0.0.1", int(state["control"]))
        connection = socket.create_connection(address, SECONDS_TO_GREET)
    except (KeyError, ValueError, OSError):
        return None
    try:
        connection.sendall(f"{key}\n".encode())
        greeted = connection.recv(3) == b"ok\n"
        connection.setblocking(False)
    except OSError:
        greeted = False
    if not greeted:
        connection.close()
        return None
    return Server(str(state["url"]), key, connection)


def _start(id: str, settings: ServerSettings, log: Path) -> dict[str, Any]:
    """Starts a server and returns its state when the model is loaded."""
    key = secrets.token_urlsafe(24)
    with os.fdopen(os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as errors:
        child = subprocess.Popen(
            [sys.executable, "-P", llama_server.__file__],
            stdin=subprocess.PIPE,  # not an argument, which others could see
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C here does not end it for others
        )
    assert child.stdin and child.stdout
    with child.stdin, child.stdout:
        try:
            child.stdin.write(json.dumps({**asdict(settings), "key": key}).encode())
            child.stdin.close()
        except OSError:
            pass  # it ended already; its log says why
        line = child.stdout.readline()
    if not line:
        raise _not_started(id, log)
    if hasattr(os, "fork"):
        child.wait()  # the server is a child of it that goes on
    return {**json.loads(line), "key": key}


def _not_started(id: str, log: Path) -> ProviderError:
    """Returns the error for a server that did not start, with the first complaint of its log."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines:
        return UnavailableError(f"{id}: its server was killed while it started")
    complaints = [line.partition(" E ")[2] for line in lines if " E " in line] or lines[-1:]
    return RejectedError(f"{id}: llama.cpp cannot load it: {complaints[0].strip()[:200]}")
