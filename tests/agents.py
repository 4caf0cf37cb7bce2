"""An agent's client, the SDK's own, for tests that are not asynchronous themselves."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from judge_gym.mcp.results import NOTICE

PATIENCE = 240.0


def sent(result: CallToolResult) -> Any:
    """The JSON of a result, which is sent once, on one line."""
    assert result.structured_content is None
    [text] = result.content
    assert isinstance(text, TextContent) and "\n" not in text.text
    return json.loads(text.text)


def plain(value: Any) -> Any:
    """A result without the marks of what others wrote."""
    match value:
        case {"untrusted": inner}:
            return inner
        case {"columns": columns, "rows": rows} if len(value) == 2:
            return [dict(zip(columns, map(plain, row), strict=True)) for row in rows]
        case dict():
            return {name: plain(part) for name, part in value.items()}
        case list():
            return [plain(part) for part in value]
    return value


def unpacked(result: CallToolResult) -> Any:
    """What a tool returned: the rows of a list as `items`, and others' words as they are."""
    value = sent(result)
    assert (value.pop("notice", None) == NOTICE) == ("untrusted" in json.dumps(value))
    value = plain(value)
    if {"columns", "rows", "next"} <= set(value):
        columns, rows = value.pop("columns"), value.pop("rows")
        value["items"] = [dict(zip(columns, row, strict=True)) for row in rows]
    return value


class Agent:
    """A client that is connected."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self.client = client
        self._portal = portal

    def do(self, verb: str, *words: Any) -> Any:
        """What a verb of the client returns."""
        return self._portal.call(getattr(self.client, verb), *words)

    def result(self, tool: str, **arguments: Any) -> CallToolResult:
        """What a tool says, good or bad."""
        found = self.do("call_tool", tool, arguments)
        assert isinstance(found, CallToolResult)
        return found

    def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool returns that does not refuse."""
        found = self.result(tool, **arguments)
        assert not found.is_error, sent(found)
        return unpacked(found)

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error of a tool that refuses."""
        found = self.result(tool, **arguments)
        value = sent(found)
        assert found.is_error and set(value) == {"error"}, value
        error: dict[str, Any] = value["error"]
        assert set(error) == {"kind", "message", "choices"}
        return error

    def settled(self, target: str) -> Any:
        """How something stands once nothing goes on any more."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = self.call("runs_wait", target=target)
            if not found["in_progress"]:
                return found
            assert time.monotonic() < deadline, found


@contextmanager
def connected(server: Any, *beside: Any) -> Iterator[Agent]:
    """A client of whatever the SDK's own connects to; what it needs beside ends after it."""
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        for one in beside:
            stack.enter_context(portal.wrap_async_context_manager(one))
        client = Client(server, read_timeout_seconds=PATIENCE)
        yield Agent(stack.enter_context(portal.wrap_async_context_manager(client)), portal)


@contextmanager
def over_stdio(folder: Path, *options: str) -> Iterator[Agent]:
    """A client of `judge-gym mcp` as a process of its own, in a folder."""
    words = ["-m", "judge_gym", "mcp", *options]
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    with connected(
        StdioServerParameters(command=sys.executable, args=words, env=kept, cwd=folder)
    ) as agent:
        yield agent


@contextmanager
def over_http(url: str, token: str | None = None, **headers: str) -> Iterator[Agent]:
    """A client of a server that is there, with a token."""
    sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **headers}
    http = httpx2.AsyncClient(headers=sent, timeout=PATIENCE)
    with connected(streamable_http_client(f"{url}/mcp", http_client=http), http) as agent:
        yield agent
