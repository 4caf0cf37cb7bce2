"""Runs hostile code without network, with limited memory, disk and time.

A job runs on its own temporary disk. It sees the system's programs and its own files, read-only; no
file, process, variable or socket of its host. When root starts it, it runs as an unused user id.
Isolations differ in who sets up the view, bubblewrap or our own namespaces; the confinement of the
process within is the same (`inside`).
"""

import contextlib
import json
import os
import re
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from judge_gym.errors import DesignError, JudgeGymError, unknown
from judge_gym.suites.mounts import INSIDE, ISOLATIONS, Isolation, enter, program, view

Ended = Literal["exited", "time", "memory", "disk", "broken"]
REPORT, ASK, ANSWER = 3, 4, 5
"""A grader's descriptors: for its report, its requests for candidate runs, and their results."""
GRACE = 10.0
"""Seconds after its time limit in which a sandbox ends by itself."""
POLL = 0.2
"""Seconds between checks of the stop event."""
USERS = 1 << 30
Answer = Callable[[Any], Any]


class Interrupted(JudgeGymError):
    """A job was ended because its result is not needed, whatever the candidate does."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What all processes of a job may use together."""

    seconds: float = 20.0
    cpu_seconds: int = 20
    """For each process."""
    memory_mb: int = 512
    disk_mb: int = 64
    processes: int = 64
    """Processes and threads."""
    output_kb: int = 64
    """How much output is kept; the rest is read and dropped."""


@dataclass(frozen=True, slots=True)
class Job:
    """A command and its files."""

    command: Sequence[str]
    """`{work}`, `{kit}`, `{python}` and the names of mounts in braces are replaced by paths."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Written into its working folder before it starts."""
    kit: Mapping[str, str] = field(default_factory=dict)
    """Written beside its working folder: a grader, the settings of a tool."""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    """Further folders of the host that it may read, by name."""
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    limits: Limits = field(default_factory=Limits)
    tools: Sequence[str] = ()
    """Programs that it needs besides those of the system."""
    hidden: Sequence[Path] = ()
    """Folders that it must not see."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended."""

    ended: Ended
    code: int
    """The exit code; negative for a signal."""
    stdout: str
    stderr: str
    seconds: float
    isolation: str
    reason: str = ""
    report: str = ""
    """The report of a grader."""

    @property
    def passed(self) -> bool:
        """Whether it exited with code 0."""
        return self.ended == "exited" and self.code == 0

    @property
    def output(self) -> str:
        """Everything that it printed."""
        return "\n".join(part.rstrip("\n") for part in (self.stdout, self.stderr) if part.strip())


# --- isolation -----------------------------------------------------------------------------------


@cache
def isolations() -> tuple[Isolation, ...]:
    """Tries which isolations work on this machine, and lists them in order of preference."""
    return tuple(isolation for isolation in ISOLATIONS if _try(isolation))


def _try(isolation: Isolation) -> bool:
    if sys.platform != "linux" or not shutil.which(program(isolation)):
        return False
    return _run(Job(["{python}", "-I", "-S", "-c", ""]), isolation, None).passed


def choose(isolation: str | None = None, *, allow_unisolated: bool = False) -> Isolation:
    """Chooses the isolation to run in, or refuses where none works.

    Args:
        isolation: the requested one; by default the first that works.
        allow_unisolated: run with limits alone where nothing isolates. Candidates can then read
            and write what the user can.
    """
    available = isolations()
    if isolation is None:
        if available:
            return available[0]
        if allow_unisolated:
            return "none"
        raise DesignError(
            "no sandbox works here: candidates are hostile code, and neither bubblewrap nor"
            " namespaces isolate them; install bubblewrap, or allow unisolated runs explicitly",
            choices=ISOLATIONS,
        )
    choices = (*available, "none") if allow_unisolated else available
    for choice in choices:
        if choice == isolation:
            return choice
    raise DesignError(unknown("isolation", isolation, choices), choices=choices)


# --- running -------------------------------------------------------------------------------------


def run(
    job: Job,
    *,
    isolation: str | None = None,
    allow_unisolated: bool = False,
    answer: Answer | None = None,
    stop: threading.Event | None = None,
) -> JobResult:
    """Runs a job to its end, with all processes that it started.

    Args:
        job: the job.
        isolation: its isolation; by default the first that works.
        allow_unisolated: run even where nothing isolates.
        answer: for a grader: returns the result of a request, a JSON value or None if invalid.
        stop: once it is set, nothing starts, and a running job is ended.
    """
    return _run(job, choose(isolation, allow_unisolated=allow_unisolated), answer, stop)


def _run(
    job: Job, isolation: Isolation, answer: Answer | None, stop: threading.Event | None = None
) -> JobResult:
    stop = stop or threading.Event()
    _refuse(stop)
    seen = view(job.mounts, job.tools, job.hidden, job.limits.disk_mb)
    pipes = {
        name: os.pipe() for name in ("status", *(("report", "ask", "answer") if answer else ()))
    }
    child_ends = {name: ends[0 if name == "answer" else 1] for name, ends in pipes.items()}
    parent_ends = {name: ends[1 if name == "answer" else 0] for name, ends in pipes.items()}
    numbers = {"report": REPORT, "ask": ASK, "answer": ANSWER}
    for end in child_ends.values():
        os.fchmod(end, 0o666)  # a path such as /dev/fd/3 opens it anew, as another user
    names = {"python": sys.executable, "work": "{box}/work", "kit": "{box}/kit"}
    for name, path in {**job.mounts, "inside": INSIDE}.items():
        names[name] = str(path.resolve()) if isolation == "none" else f"/mnt/{name}"
    spec = {
        "isolation": isolation,
        "view": seen,
        "command": [_fill_in(word, names) for word in job.command],
        "env": {**_environment(job), **{k: _fill_in(v, names) for k, v in job.env.items()}},
        "files": {f"work/{path}": text for path, text in job.files.items()}
        | {f"kit/{path}": text for path, text in job.kit.items()},
        "stdin": job.stdin,
        "limits": {**asdict(job.limits), "processes": job.limits.processes + _others(isolation)},
        "uid": USERS + secrets.randbelow(USERS >> 1)
        if os.getuid() == 0 and isolation != "none"
        else None,
        "status": child_ends["status"],
        "channels": {numbers[name]: end for name, end in child_ends.items() if name != "status"},
    }
    started = time.monotonic()
    process = subprocess.Popen(
        enter(isolation, seen),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
        pass_fds=[*child_ends.values()],
        start_new_session=True,
    )
    try:
        for end in child_ends.values():
            os.close(end)
        output = _Output(process, parent_ends, job.limits, answer, stop)
        output.follow(json.dumps(spec).encode(), started + job.limits.seconds + GRACE)
    finally:
        _end(process)
        for end in parent_ends.values():
            os.close(end)
    _refuse(stop)
    return _ran(output, isolation, time.monotonic() - started)


def _refuse(stop: threading.Event) -> None:
    if stop.is_set():
        raise Interrupted("the run was stopped")


def _others(isolation: Isolation) -> int:
    """Counts the user's processes and threads, which a sandbox's limit includes.

    A namespace has its own count from Linux 5.14 on, and root's sandboxes have their own users;
    otherwise everything that the user runs is counted.
    """
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    if os.getuid() == 0 or (isolation != "none" and release >= (5, 14)):
        return 0
    count = 0
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if path.stat().st_uid == os.getuid():
                count += sum(1 for _ in (path / "task").iterdir())
    return count


def _fill_in(word: str, names: Mapping[str, str]) -> str:
    for name, path in names.items():
        word = word.replace(f"{{{name}}}", path)
    return word


def _environment(job: Job) -> dict[str, str]:
    """Builds the environment of a job, without any variable of the host."""
    folders = [os.path.dirname(sys.executable)]
    folders += [os.path.dirname(shutil.which(tool) or "") for tool in job.tools]
    return {
        "PATH": ":".join(dict.fromkeys([*filter(None, folders), "/usr/bin", "/bin"])),
        "HOME": "{box}/home",
        "TMPDIR": "{box}/tmp",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kills what is left of a job, whose first process ends with its parent."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


class _Output:
    """The output streams of a sandbox, each kept up to a cap."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        kept: Mapping[str, int],
        limits: Limits,
        answer: Answer | None,
        stop: threading.Event,
    ) -> None:
        self.stop = stop
        assert process.stdin and process.stdout and process.stderr
        self.process, self.kept, self.answer = process, kept, answer
        self.cap = limits.output_kb << 10
        self.streams = {process.stdout.fileno(): "stdout", process.stderr.fileno(): "stderr"}
        self.streams |= {kept[name]: name for name in ("status", "report", "ask") if name in kept}
        self.texts = {name: bytearray() for name in self.streams.values()}
        self.dropped = dict.fromkeys(self.texts, 0)

    def follow(self, spec: bytes, last: float) -> None:
        """Sends the specification, then reads until all streams end or the time is up."""
        stdin = self.process.stdin
        assert stdin
        os.set_blocking(stdin.fileno(), False)
        with selectors.DefaultSelector() as selector:
            for descriptor in self.streams:
                selector.register(descriptor, selectors.EVENT_READ)
            selector.register(stdin, selectors.EVENT_WRITE)
            while selector.get_map() and (left := last - time.monotonic()) > 0:
                if self.stop.is_set():
                    return
                for key, _ in selector.select(min(left, POLL)):
                    if key.fileobj is stdin:
                        try:
                            spec = spec[os.write(key.fd, spec) :]
                        except BrokenPipeError:
                            spec = b""
                        if not spec:
                            selector.unregister(stdin)
                            stdin.close()
                    elif not self._take(key.fd):
                        selector.unregister(key.fd)

    def _take(self, descriptor: int) -> bool:
        """Reads from a stream, and says whether there may be more."""
        name = self.streams[descriptor]
        part = os.read(descriptor, 1 << 16)
        text = self.texts[name]
        room = (self.cap if name != "ask" else 1 << 24) - len(text)
        text += part[:room]
        self.dropped[name] += len(part) - len(part[:room])
        while name == "ask" and b"\n" in text:
            line, _, rest = bytes(text).partition(b"\n")
            text[:] = rest
            self._reply(line)
        return bool(part)

    def _reply(self, line: bytes) -> None:
        assert self.answer
        try:
            question = json.loads(line)
        except ValueError:
            question = None
        reply = json.dumps(self.answer(question)).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # the grader has ended meanwhile
            while reply:
                reply = reply[os.write(self.kept["answer"], reply) :]

    def text(self, name: str) -> str:
        """The text of a stream, with a note of how much was dropped."""
        text = bytes(self.texts.get(name, b"")).decode("utf-8", "replace")
        more = self.dropped.get(name, 0)
        return f"{text}\n[{more} more bytes were not kept]" if more else text


def _ran(output: _Output, isolation: Isolation, seconds: float) -> JobResult:
    stdout, stderr, report = (output.text(name) for name in ("stdout", "stderr", "report"))
    try:
        status = json.loads(output.texts["status"])
    except ValueError:
        late = output.process.returncode == -signal.SIGKILL
        reason = "it did not end" if late else f"the sandbox did not start: {stderr.strip()[:500]}"
        status = {"ended": "time" if late else "broken", "code": -9, "reason": reason}
    return JobResult(
        ended=status["ended"],
        code=status["code"],
        stdout=stdout,
        stderr=stderr,
        seconds=status.get("seconds", seconds),
        isolation=isolation,
        reason=status.get("reason", ""),
        report=report,
    )
