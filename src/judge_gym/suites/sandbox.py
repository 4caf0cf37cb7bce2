"""A place to run hostile code: no network, little memory, disk and time, and nothing to reach.

A job runs on a disk of its own that is gone afterwards. It sees the system's programs and what it
is given, both read-only; no file, process, variable or socket of its host. Where root starts it,
it runs as a user whom no one else is. The lanes differ in who makes the view: bubblewrap, or
namespaces of our own making; what confines the process within is the same (`inside`).
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
from judge_gym.suites.views import INSIDE, LANES, Lane, enter, program, view

Ended = Literal["exited", "time", "memory", "disk", "broken"]
REPORT, ASK, ANSWER = 3, 4, 5
"""Descriptors of a grader: where it reports, asks for a candidate's run, and is answered."""
GRACE = 10.0
"""Seconds after its time limit in which a sandbox ends by itself."""
GLANCE = 0.2
"""Seconds between looks at whether it is to stop."""
USERS = 1 << 30
Answer = Callable[[Any], Any]


class Interrupted(JudgeGymError):
    """A job was ended because nobody waits for it any more; it says nothing of the candidate."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job may use, all its processes together."""

    seconds: float = 20.0
    cpu_seconds: int = 20
    """Of each process."""
    memory_mb: int = 512
    disk_mb: int = 64
    processes: int = 64
    """And threads."""
    output_kb: int = 64
    """Kept of what is printed; the rest is read and dropped."""


@dataclass(frozen=True, slots=True)
class Job:
    """A command and what it is given."""

    command: Sequence[str]
    """`{work}`, `{kit}`, `{python}` and the names of mounts in braces stand for their paths."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Written into its folder before it starts."""
    kit: Mapping[str, str] = field(default_factory=dict)
    """Written beside its folder: a grader, the settings of a tool."""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    """By name, folders of the host that it may read besides."""
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    limits: Limits = field(default_factory=Limits)
    tools: Sequence[str] = ()
    """Programs, by name, that it needs besides those of the system."""
    hidden: Sequence[Path] = ()
    """Folders that it must not see, wherever they are."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a job ended."""

    ended: Ended
    code: int
    """The exit code; negative where a signal ended it."""
    stdout: str
    stderr: str
    seconds: float
    isolation: str
    reason: str = ""
    report: str = ""
    """What a grader reported."""

    @property
    def passed(self) -> bool:
        """Whether it ended by itself, and well."""
        return self.ended == "exited" and self.code == 0

    @property
    def output(self) -> str:
        """All that it printed."""
        return "\n".join(part.rstrip("\n") for part in (self.stdout, self.stderr) if part.strip())


# --- lanes ---------------------------------------------------------------------------------------


@cache
def lanes() -> tuple[Lane, ...]:
    """The lanes that work on this machine, the preferred one first; found out by trying."""
    return tuple(lane for lane in LANES if _try(lane))


def _try(lane: Lane) -> bool:
    if sys.platform != "linux" or not shutil.which(program(lane)):
        return False
    return _run(Job(["{python}", "-I", "-S", "-c", ""]), lane, None).passed


def choose(lane: str | None = None, *, allow_unisolated: bool = False) -> Lane:
    """The lane to run in, or a refusal where there is none.

    Args:
        lane: the one that is wanted; else the first that works.
        allow_unisolated: run with limits alone where nothing isolates. Candidates can then read
            and write what the user can.
    """
    found = lanes()
    if lane is None:
        if found:
            return found[0]
        if allow_unisolated:
            return "none"
        raise DesignError(
            "no sandbox works here: candidates are hostile code, and neither bubblewrap nor"
            " namespaces isolate them; install bubblewrap, or allow unisolated runs explicitly",
            choices=LANES,
        )
    choices = (*found, "none") if allow_unisolated else found
    for choice in choices:
        if choice == lane:
            return choice
    raise DesignError(unknown("isolation", lane, choices), choices=choices)


# --- running -------------------------------------------------------------------------------------


def run(
    job: Job,
    *,
    lane: str | None = None,
    allow_unisolated: bool = False,
    answer: Answer | None = None,
    stop: threading.Event | None = None,
) -> Ran:
    """Run a job to its end; whatever it started has ended too.

    Args:
        job: what to run.
        lane: how it is isolated; else the first lane that works here.
        allow_unisolated: run even where nothing isolates.
        answer: of a grader: what it asks, a JSON value or None if it is none, becomes what it is
            answered.
        stop: once it is set, nothing begins, and what runs is ended.
    """
    return _run(job, choose(lane, allow_unisolated=allow_unisolated), answer, stop)


def _run(job: Job, lane: Lane, answer: Answer | None, stop: threading.Event | None = None) -> Ran:
    stop = stop or threading.Event()
    _refuse(stop)
    seen = view(job.mounts, job.tools, job.hidden, job.limits.disk_mb)
    pipes = {
        name: os.pipe() for name in ("status", *(("report", "ask", "answer") if answer else ()))
    }
    given = {name: ends[0 if name == "answer" else 1] for name, ends in pipes.items()}
    kept = {name: ends[1 if name == "answer" else 0] for name, ends in pipes.items()}
    numbers = {"report": REPORT, "ask": ASK, "answer": ANSWER}
    for end in given.values():
        os.fchmod(end, 0o666)  # a path such as /dev/fd/3 opens it anew, as another user
    names = {"python": sys.executable, "work": "{box}/work", "kit": "{box}/kit"}
    for name, path in {**job.mounts, "inside": INSIDE}.items():
        names[name] = str(path.resolve()) if lane == "none" else f"/mnt/{name}"
    spec = {
        "lane": lane,
        "view": seen,
        "command": [_filled(word, names) for word in job.command],
        "env": {**_environment(job), **{k: _filled(v, names) for k, v in job.env.items()}},
        "files": {f"work/{path}": text for path, text in job.files.items()}
        | {f"kit/{path}": text for path, text in job.kit.items()},
        "stdin": job.stdin,
        "limits": {**asdict(job.limits), "processes": job.limits.processes + _others(lane)},
        "uid": USERS + secrets.randbelow(USERS >> 1)
        if os.getuid() == 0 and lane != "none"
        else None,
        "status": given["status"],
        "channels": {numbers[name]: end for name, end in given.items() if name != "status"},
    }
    started = time.monotonic()
    process = subprocess.Popen(
        enter(lane, seen),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
        pass_fds=[*given.values()],
        start_new_session=True,
    )
    try:
        for end in given.values():
            os.close(end)
        heard = _Heard(process, kept, job.limits, answer, stop)
        heard.follow(json.dumps(spec).encode(), started + job.limits.seconds + GRACE)
    finally:
        _end(process)
        for end in kept.values():
            os.close(end)
    _refuse(stop)
    return _ran(heard, lane, time.monotonic() - started)


def _refuse(stop: threading.Event) -> None:
    if stop.is_set():
        raise Interrupted("the run was stopped")


def _others(lane: Lane) -> int:
    """Processes and threads of the user that count against a sandbox's own limit.

    A namespace has a count of its own from Linux 5.14 on, and root's sandboxes have users of
    their own; elsewhere all that the user runs is counted.
    """
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    if os.getuid() == 0 or (lane != "none" and release >= (5, 14)):
        return 0
    count = 0
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if path.stat().st_uid == os.getuid():
                count += sum(1 for _ in (path / "task").iterdir())
    return count


def _filled(word: str, names: Mapping[str, str]) -> str:
    for name, path in names.items():
        word = word.replace(f"{{{name}}}", path)
    return word


def _environment(job: Job) -> dict[str, str]:
    """All that a job knows of its surroundings: no variable of the host is among it."""
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
    """Kill what is left of a job; the first process dies with the one that started it."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


class _Heard:
    """Everything that comes out of a sandbox, each kept up to a cap."""

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
        """Hand over the specification, then listen until all is said or the time is up."""
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
                for key, _ in selector.select(min(left, GLANCE)):
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
        """Whether there may be more to read."""
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
            asked = json.loads(line)
        except ValueError:
            asked = None
        said = json.dumps(self.answer(asked)).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # the grader has ended meanwhile
            while said:
                said = said[os.write(self.kept["answer"], said) :]

    def text(self, name: str) -> str:
        """What was said there, and how much more."""
        said = bytes(self.texts.get(name, b"")).decode("utf-8", "replace")
        more = self.dropped.get(name, 0)
        return f"{said}\n[{more} more bytes were not kept]" if more else said


def _ran(heard: _Heard, lane: Lane, seconds: float) -> Ran:
    stdout, stderr, report = (heard.text(name) for name in ("stdout", "stderr", "report"))
    try:
        said = json.loads(heard.texts["status"])
    except ValueError:
        late = heard.process.returncode == -signal.SIGKILL
        reason = "it did not end" if late else f"the sandbox did not start: {stderr.strip()[:500]}"
        said = {"ended": "time" if late else "broken", "code": -9, "reason": reason}
    return Ran(
        ended=said["ended"],
        code=said["code"],
        stdout=stdout,
        stderr=stderr,
        seconds=said.get("seconds", seconds),
        isolation=lane,
        reason=said.get("reason", ""),
        report=report,
    )
