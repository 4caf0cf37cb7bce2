"""The first process of a sandbox: it furnishes, lets a command run confined, and watches it.

It is process 1 there, so no one inside can stop it, and its end is the end of all the others. It
reads what to do as JSON from standard input and says how it ended on a pipe that only it holds.
"""

import fcntl
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .confinement import SET_DUMPABLE, SET_SUBREAPER, confine, prctl

GLANCE = 20
"""Milliseconds between two looks at the clock and at the memory in use."""
FILES = 20_000
"""Files and folders on a candidate's disk; empty ones too take memory."""
BROKEN, TELL = 125, 99
"""The exit code, and the descriptor, by which a child says that it could not start the command."""
Spec = Mapping[str, Any]


def main() -> None:
    """Do what the specification on standard input says, and report."""
    spec: Spec = json.load(sys.stdin)
    status: int = spec["status"]
    box = spec["view"]["box"]
    try:
        if spec["isolation"] == "namespaces":
            from .new_root import furnish

            furnish(spec["view"])
        isolated = spec["isolation"] != "none"
        if not isolated:
            box = tempfile.mkdtemp(prefix="judge-gym-")
            prctl(SET_SUBREAPER, 1)
        prctl(SET_DUMPABLE, 0)  # its memory and descriptors are closed to the candidate
        started = time.monotonic()
        said = _run({**spec, "box": box}, isolated)
        said["seconds"] = time.monotonic() - started
        if not isolated:
            _end_descendants()
            shutil.rmtree(box, ignore_errors=True)
    except OSError as fault:
        said = {"ended": "broken", "reason": str(fault), "code": BROKEN}
    os.write(status, json.dumps(said).encode())
    os._exit(0)


def _run(spec: Spec, isolated: bool) -> dict[str, Any]:
    heard, tell = os.pipe()
    given = os.memfd_create("stdin")
    with open(given, "w", encoding="utf-8", closefd=False) as file:
        file.write(spec["stdin"])
    os.lseek(given, 0, os.SEEK_SET)
    child = os.fork()
    if child == 0:
        wanted = {0: given, 1: 1, 2: 2, **{int(k): v for k, v in spec["channels"].items()}}
        # Out of the way first, each where nothing is: one may stand where another has to go.
        moved = {to: fcntl.fcntl(at, fcntl.F_DUPFD, TELL + 1) for to, at in wanted.items()}
        os.dup2(tell, TELL, inheritable=False)  # closed where the command takes over
        try:
            _become(spec, moved, isolated)
        except BaseException as fault:
            os.write(TELL, str(fault).encode()[:4000])
        finally:
            os._exit(BROKEN)
    os.close(tell)
    os.close(given)
    for descriptor in [0, 1, 2, *spec["channels"].values()]:
        os.close(descriptor)  # else a reader waits for an end that does not come
    said = _watch(child, spec)
    if said["ended"] == "exited" and said["code"] == BROKEN:
        os.set_blocking(heard, False)
        try:
            told = os.read(heard, 4000).decode(errors="replace")
        except BlockingIOError:  # a child of the child holds the other end: it was executed
            told = ""
        if told:
            return {"ended": "broken", "reason": told, "code": BROKEN}
    return said


def _become(spec: Spec, moved: Mapping[int, int], isolated: bool) -> None:
    """The child: confined from here on, it writes the files and turns into the command."""
    os.setsid()
    for to, at in moved.items():
        os.dup2(at, to)
    os.closerange(max(moved) + 1, TELL)
    os.closerange(TELL + 1, 1024)
    confine(spec["limits"], spec["uid"], isolated=isolated)
    box = Path(spec["box"])
    for folder in ("work", "kit", "home", "tmp"):
        (box / folder).mkdir()
    for path, text in spec["files"].items():
        place = box / path
        place.parent.mkdir(parents=True, exist_ok=True)
        with open(place, "x", encoding="utf-8", newline="") as file:
            file.write(text)
    os.chdir(box / "work")
    words = [word.replace("{box}", str(box)) for word in spec["command"]]
    env = {name: value.replace("{box}", str(box)) for name, value in spec["env"].items()}
    os.execvpe(words[0], words, env)


def _watch(child: int, spec: Spec) -> dict[str, Any]:
    limits = spec["limits"]
    last = time.monotonic() + limits["seconds"]
    most = limits["memory_mb"] << 20
    host = select.poll()
    host.register(spec["status"], 0)  # an error there: whoever started this is gone
    while True:
        pid, code = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            return {"ended": "exited", "code": os.waitstatus_to_exitcode(code)}
        if pid:
            continue
        if time.monotonic() >= last:
            return {"ended": "time", "code": -signal.SIGKILL}
        if spec["isolation"] != "none":
            disk = os.statvfs(spec["box"])
            if disk.f_files - disk.f_ffree > FILES:
                return {"ended": "disk", "code": -signal.SIGKILL}
            if _memory() > most:
                return {"ended": "memory", "code": -signal.SIGKILL}
        if host.poll(GLANCE):
            return {"ended": "time", "code": -signal.SIGKILL}


def _memory() -> int:
    """Bytes that all processes of this sandbox hold, but for files that they read."""
    total = 0
    for name in os.listdir("/proc"):
        if not name.isdigit() or name == "1":
            continue
        try:
            with open(f"/proc/{name}/status", encoding="ascii", errors="replace") as file:
                for line in file:
                    if line.startswith(("RssAnon:", "RssShmem:")):
                        total += int(line.split()[1]) << 10
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
    return total


def _end_descendants() -> None:
    """Without a namespace: whatever loses its parent becomes a child of this process."""
    with suppress(ChildProcessError):
        while True:
            listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
            for pid in map(int, listed.split()):
                os.kill(pid, signal.SIGKILL)  # a child that has ended is there until waited for
            os.waitpid(-1, 0)
