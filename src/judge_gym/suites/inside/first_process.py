"""The first process of a sandbox: it sets up the root, runs a confined command and watches it.

It is process 1, so that no process inside can stop it, and all others end with it. It reads its
specification as JSON from standard input and writes the result to a pipe that only it has.
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

POLL = 20
"""Milliseconds between two checks of the clock and of the memory in use."""
FILES = 20_000
"""The most files and folders on a candidate's disk; empty ones take memory, too."""
BROKEN, ERROR_PIPE = 125, 99
"""The exit code and the descriptor by which a child reports that it could not start the command."""
Spec = Mapping[str, Any]


def main() -> None:
    """Executes the specification on standard input and reports the result."""
    spec: Spec = json.load(sys.stdin)
    status: int = spec["status"]
    box = spec["view"]["box"]
    try:
        if spec["isolation"] == "namespaces":
            from .new_root import enter_root

            enter_root(spec["view"])
        isolated = spec["isolation"] != "none"
        if not isolated:
            box = tempfile.mkdtemp(prefix="judge-gym-")
            prctl(SET_SUBREAPER, 1)
        prctl(SET_DUMPABLE, 0)  # the candidate cannot read its memory and descriptors
        started = time.monotonic()
        result = _run({**spec, "box": box}, isolated)
        result["seconds"] = time.monotonic() - started
        if not isolated:
            _end_descendants()
            shutil.rmtree(box, ignore_errors=True)
    except OSError as error:
        result = {"ended": "broken", "reason": str(error), "code": BROKEN}
    os.write(status, json.dumps(result).encode())
    os._exit(0)


def _run(spec: Spec, isolated: bool) -> dict[str, Any]:
    errors, error_pipe = os.pipe()
    stdin = os.memfd_create("stdin")
    with open(stdin, "w", encoding="utf-8", closefd=False) as file:
        file.write(spec["stdin"])
    os.lseek(stdin, 0, os.SEEK_SET)
    child = os.fork()
    if child == 0:
        targets = {0: stdin, 1: 1, 2: 2, **{int(k): v for k, v in spec["channels"].items()}}
        # First to unused numbers, because one may have the number that another needs.
        moved = {to: fcntl.fcntl(at, fcntl.F_DUPFD, ERROR_PIPE + 1) for to, at in targets.items()}
        os.dup2(error_pipe, ERROR_PIPE, inheritable=False)  # closed when the command is executed
        try:
            _execute(spec, moved, isolated)
        except BaseException as error:
            os.write(ERROR_PIPE, str(error).encode()[:4000])
        finally:
            os._exit(BROKEN)
    os.close(error_pipe)
    os.close(stdin)
    for descriptor in [0, 1, 2, *spec["channels"].values()]:
        os.close(descriptor)  # otherwise readers would never see their end
    result = _watch(child, spec)
    if result["ended"] == "exited" and result["code"] == BROKEN:
        os.set_blocking(errors, False)
        try:
            reason = os.read(errors, 4000).decode(errors="replace")
        except BlockingIOError:  # a child of the child has the other end: the command was executed
            reason = ""
        if reason:
            return {"ended": "broken", "reason": reason, "code": BROKEN}
    return result


def _execute(spec: Spec, moved: Mapping[int, int], isolated: bool) -> None:
    """Confines the child, writes the files and executes the command."""
    os.setsid()
    for to, at in moved.items():
        os.dup2(at, to)
    os.closerange(max(moved) + 1, ERROR_PIPE)
    os.closerange(ERROR_PIPE + 1, 1024)
    confine(spec["limits"], spec["uid"], isolated=isolated)
    box = Path(spec["box"])
    for folder in ("work", "kit", "home", "tmp"):
        (box / folder).mkdir()
    for path, text in spec["files"].items():
        target = box / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "x", encoding="utf-8", newline="") as file:
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
    host.register(spec["status"], 0)  # an error there means that the host process has ended
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
        if host.poll(POLL):
            return {"ended": "time", "code": -signal.SIGKILL}


def _memory() -> int:
    """Sums the bytes that all processes of this sandbox use, without files that they read."""
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
    """Kills all descendants, which include orphans where there is no namespace."""
    with suppress(ChildProcessError):
        while True:
            listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
            for pid in map(int, listed.split()):
                os.kill(pid, signal.SIGKILL)  # an ended child exists until it is waited for
            os.waitpid(-1, 0)
