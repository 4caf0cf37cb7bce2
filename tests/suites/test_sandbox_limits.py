"""What a hostile command may use in every isolation of this machine, and what it leaves."""

import json
import secrets
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from judge_gym.suites.sandbox import Job, JobResult, Limits, run
from suites_kit import EACH_LANE, none_left, running

pytestmark = pytest.mark.parametrize("isolation", EACH_LANE)
SMALL = Limits(seconds=90, cpu_seconds=10, memory_mb=128, disk_mb=8, processes=16, output_kb=16)


def python(
    isolation: str, source: str, *args: str, limits: Limits = SMALL, **given: Any
) -> JobResult:
    command = ["{python}", "-I", "-c", source, *args]
    return run(Job(command, limits=limits, **given), isolation=isolation)


def told(ran: JobResult) -> Any:
    assert ran.passed, (ran.ended, ran.code, ran.reason, ran.output)
    return json.loads(ran.stdout)


def test_forks_without_end_are_few_and_end(isolation: str) -> None:
    token = secrets.token_hex(8)
    source = """
import os, sys
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
    limits = Limits(seconds=2, cpu_seconds=2, memory_mb=256, disk_mb=8, processes=16)
    ran = python(isolation, source, token, limits=limits)
    assert ran.ended in ("time", "exited")
    assert none_left(token)


def test_processes_are_counted(isolation: str) -> None:
    source = """
import os, json, time
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except OSError:
    pass
print(json.dumps(made))
"""
    assert 5 <= told(python(isolation, source)) < 16


def test_the_memory_of_one_process_is_limited(isolation: str) -> None:
    source = "x = bytearray(1 << 30)"
    ran = python(isolation, source)
    assert not ran.passed
    assert "MemoryError" in ran.stderr


def test_the_memory_of_all_processes_together_is_limited(isolation: str) -> None:
    token = secrets.token_hex(8)
    source = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        held = bytearray(os.urandom(1 << 20) * 40)
        time.sleep(60)
time.sleep(60)
"""
    ran = python(isolation, source, token)
    assert ran.ended == "memory"
    assert none_left(token)


def test_the_disk_is_limited_in_all(isolation: str) -> None:
    source = """
import json
written, fault = 0, 0
for number in range(64):
    try:
        with open(f"file{number}", "wb", buffering=0) as file:
            written += file.write(bytes(1 << 20))
    except OSError as error:
        fault = error.errno
        break
for folder in ("/tmp", "/dev/shm"):
    try:
        with open(f"{folder}/more", "wb", buffering=0) as file:
            written += file.write(bytes(4 << 20))
    except OSError:
        pass
print(json.dumps([written, fault]))
"""
    written, fault = told(python(isolation, source))
    assert fault == 28  # no space left
    assert 4 << 20 <= written <= 10 << 20


def test_so_many_empty_files_are_too_many(isolation: str) -> None:
    source = "n = 0\nwhile True:\n    open(f'{n}', 'w').close()\n    n += 1"
    assert python(isolation, source).ended == "disk"


def test_one_that_hangs_with_children_is_ended_with_them(isolation: str) -> None:
    token = secrets.token_hex(8)
    source = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = [sys.executable, "-I", "-c", "import time; time.sleep(600)", sys.argv[1]]
subprocess.Popen(child, start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
print("started", flush=True)
time.sleep(600)
"""
    limits = Limits(seconds=5, processes=16)  # it has begun by then, on a busy machine too
    ran = python(isolation, source, token, limits=limits)
    assert (ran.ended, ran.stdout) == ("time", "started\n")
    assert ran.seconds < 60
    assert none_left(token)


def test_children_end_with_a_command_that_ends_well(isolation: str) -> None:
    token = secrets.token_hex(8)
    source = """
import subprocess, sys
child = [sys.executable, "-I", "-c", "import time; time.sleep(600)", sys.argv[1]]
subprocess.Popen(child, start_new_session=True)
"""
    assert python(isolation, source, token).passed
    assert none_left(token)


def test_its_first_process_cannot_be_stopped_or_spoken_for(isolation: str) -> None:
    source = """
import os, signal, time
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
    try:
        os.kill(1, number)
    except OSError:
        pass
said = b'{"ended": "exited", "code": 0}'
for number in range(3, 256):
    for path in (f"/proc/1/fd/{number}", f"/proc/self/fd/{number}"):
        try:
            with open(path, "wb", buffering=0) as file:
                file.write(said)
        except OSError:
            pass
    try:
        os.write(number, said)
    except OSError:
        pass
time.sleep(600)
"""
    ran = python(isolation, source, limits=Limits(seconds=1.5))
    assert ran.ended == "time"


def test_output_is_kept_up_to_a_cap(isolation: str) -> None:
    source = "import sys\nfor _ in range(2000): print('x' * 1000)\nprint('y', file=sys.stderr)"
    ran = python(isolation, source)
    assert ran.passed
    assert len(ran.stdout) < (16 << 10) + 100
    assert ran.stdout.endswith("more bytes were not kept]")
    assert ran.stderr == "y\n"


@pytest.mark.slow
def test_eight_at_once_do_not_share_their_limits(isolation: str) -> None:
    source = """
import os, time
made = [os.fork() for _ in range(3)]
time.sleep(1 if all(made) else 600)
"""
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: python(isolation, source), range(8)))
    assert all(ran.passed for ran in done), [ran.output for ran in done]


def test_the_look_for_processes_sees_one(isolation: str) -> None:
    """Else every test of what is left would pass in vain."""
    token = secrets.token_hex(8)
    own = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", token])
    try:
        last = time.monotonic() + 60
        while own.pid not in running(token) and time.monotonic() < last:
            time.sleep(0.05)  # it is there a moment before it has its own command line
        assert own.pid in running(token)
    finally:
        own.kill()
        own.wait()
    assert none_left(token)


def test_it_ends_with_the_host_that_started_it(isolation: str) -> None:
    token = secrets.token_hex(8)
    source = f"""
from judge_gym.suites.sandbox import Job, Limits, run
command = ["{{python}}", "-I", "-c", "import time; time.sleep(600)", "inside-{token}"]
run(Job(command, limits=Limits(seconds=120)), isolation="{isolation}")
"""
    host = subprocess.Popen([sys.executable, "-c", source])
    last = time.monotonic() + 120
    try:
        while not _inside(token) and time.monotonic() < last:
            time.sleep(0.05)
        assert _inside(token)
    finally:
        host.kill()
        host.wait()
    assert none_left(token)


def _inside(token: str) -> bool:
    """Whether the candidate's own process runs; the host's command line holds the token too."""
    for pid in running(f"inside-{token}"):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if line.endswith(f"\0inside-{token}\0".encode()):
            return True
    return False
