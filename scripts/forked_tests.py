"""Runs tests again and again, and imports the libraries that they need only once.

Started in a checkout, it reads requests from standard input, one JSON object per line: `words` for
pytest, a `log` file for what it prints, and after how many `seconds` it is ended. Each is run by a
child process, which imports judge_gym and the tests as they are then. The answer is a line, too:
pytest's exit code, or null where it was ended, and the CPU seconds of the child.
"""

import gc
import importlib
import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

LIBRARIES = (
    "_hypothesis_pytestplugin",
    "_pytest.junitxml",
    "_pytest.pastebin",
    "aiohttp",
    "alembic.command",
    "alembic.config",
    "anyio.pytest_plugin",
    "dbos",
    "fastapi.testclient",
    "httpx",
    "hypothesis.strategies",
    "jinja2",
    "markdown_it",
    "mcp",
    "pandas",
    "platformdirs.pytest_plugin",
    "psycopg",
    "pyarrow",
    "pydantic",
    "pytest",
    "pytest_timeout",
    "rich.console",
    "schemathesis.pytest.plugin",
    "scipy.optimize",
    "scipy.stats",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "typer.main",
    "uvicorn",
    "xdist.plugin",
    "yaml",
)
"""What many tests import; never anything of the checkout, and nothing that starts threads."""
LOOK = 0.02
"""Seconds between two looks whether a child has ended."""


def main() -> None:
    """Answers requests until there are no more."""
    sys.path[0] = str(Path.cwd())
    package = importlib.util.find_spec("judge_gym")
    if not package or not Path(str(package.origin)).is_relative_to(Path.cwd()):
        raise SystemExit(f"judge_gym is not imported from here, but from {package}")
    for name in LIBRARIES:
        importlib.import_module(name)
    assert "judge_gym" not in sys.modules
    gc.freeze()  # a child need not look through what it has from its parent
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            run(request)
        print(json.dumps(ended(child, request["seconds"])), flush=True)


def run(request: dict[str, Any]) -> None:
    """Runs tests and exits, as a process of its own would; what it starts is in its session."""
    os.setsid()
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
        os.dup2(file, stream)
    import pytest

    sys.exit(pytest.main(request["words"]))


def ended(child: int, seconds: float) -> tuple[int | None, float]:
    """Waits for a child, and ends it with the processes that it started where it takes longer."""
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        time.sleep(LOOK)
    os.killpg(child, signal.SIGKILL)
    _, _, used = os.wait4(child, 0)
    return None, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
