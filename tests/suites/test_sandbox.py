"""Hostile commands in every isolation of this machine: what they reach, use and leave behind."""

import json
import os
import secrets
import socket
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.suites import sandbox
from judge_gym.suites.sandbox import Job, JobResult, Limits, choose, run
from suites_kit import EACH_LANE, none_left

pytestmark = pytest.mark.parametrize("isolation", EACH_LANE)
SMALL = Limits(seconds=20, cpu_seconds=10, memory_mb=128, disk_mb=8, processes=16, output_kb=16)


def python(
    isolation: str, source: str, *args: str, limits: Limits = SMALL, **given: Any
) -> JobResult:
    command = ["{python}", "-I", "-c", source, *args]
    return run(Job(command, limits=limits, **given), isolation=isolation)


def told(ran: JobResult) -> Any:
    assert ran.passed, (ran.ended, ran.code, ran.reason, ran.output)
    return json.loads(ran.stdout)


def test_a_command_sees_its_files_and_says_how_it_ended(isolation: str) -> None:
    source = "import sys; print(open('a/b.txt').read(), sys.stdin.read()); sys.exit(3)"
    ran = python(isolation, source, files={"a/b.txt": "héllo"}, stdin="given")
    assert (ran.ended, ran.code, ran.stdout) == ("exited", 3, "héllo given\n")
    assert ran.isolation == isolation


def test_the_environment_is_empty_of_the_hosts(
    isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = secrets.token_hex(16)
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    source = """
import os
print(dict(os.environ))
for name in os.listdir("/proc"):
    for part in ("environ", "cmdline", "maps"):
        try:
            print(open(f"/proc/{name}/{part}", "rb").read())
        except OSError:
            pass
"""
    ran = python(isolation, source)
    assert ran.passed
    assert secret not in ran.output
    assert "PATH" in ran.output


def test_no_process_of_the_host_is_seen(isolation: str) -> None:
    source = "import json, os; print(json.dumps([p for p in os.listdir('/proc') if p.isdigit()]))"
    assert len(told(python(isolation, source))) == 2


def test_files_of_the_host_are_out_of_reach(isolation: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("secret")
    source = """
import json, os, sys
found = []
for path in sys.argv[1:]:
    for mode in ("r", "w", "a"):
        try:
            open(path, mode).close()
            found.append([path, mode])
        except OSError:
            pass
print(json.dumps(found))
"""
    shadow = "/etc/shadow"
    assert told(python(isolation, source, str(mine), shadow, str(Path(__file__)))) == []
    assert mine.read_text() == "secret"


def test_nothing_is_writable_but_its_own_disk(isolation: str) -> None:
    source = """
import json, os
found = []
for folder, folders, files in os.walk("/"):
    if folder.startswith("/proc"):
        folders.clear()
        continue
    if folder.count("/") > 2:
        folders.clear()
    try:
        open(os.path.join(folder, "probe"), "w").close()
        found.append(folder)
    except OSError:
        pass
print(json.dumps(found))
"""
    found = told(python(isolation, source))
    assert {path.split("/")[1] for path in found} <= {"box", "dev"}
    assert {path for path in found if path.startswith("/dev")} <= {"/dev/shm"}


def test_a_folder_that_it_is_given_is_read_and_not_written(isolation: str, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "data.txt").write_text("read me")
    given.chmod(0o777)
    (given / "data.txt").chmod(0o666)
    source = """
import json, sys
found = [open(sys.argv[1] + "/data.txt").read()]
for name in ("data.txt", "new.txt"):
    try:
        open(f"{sys.argv[1]}/{name}", "a").write("written")
        found.append(name)
    except OSError:
        pass
print(json.dumps(found))
"""
    assert told(python(isolation, source, "{given}", mounts={"given": given})) == ["read me"]
    assert [path.name for path in given.iterdir()] == ["data.txt"]
    assert (given / "data.txt").read_text() == "read me"


def test_it_is_no_one_and_stays_so(isolation: str) -> None:
    source = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "uid": os.getuid(),
    "capabilities": [status[k].strip() for k in ("CapPrm", "CapEff", "CapInh", "CapAmb")],
    "no_new_privs": status["NoNewPrivs"].strip(),
    "maps": open("/proc/self/uid_map").read().split(),
    "calls": [
        libc.unshare(0x10000000), libc.unshare(0x20000),
        libc.mount(b"x", b"/box", b"tmpfs", 0, None),
        libc.memfd_create(b"x", 0), libc.shmget(0, 4096, 0o1600), libc.ptrace(16, 1, 0, 0),
        libc.setuid(0) if os.getuid() else -1, libc.chroot(b"/box"),
    ],
}))
"""
    found = told(python(isolation, source))
    assert {int(value, 16) for value in found["capabilities"]} == {0}
    assert found["no_new_privs"] == "1"
    assert set(found["calls"]) == {-1}
    inside, outside, count = map(int, found["maps"][:3])
    who = found["uid"] - inside + outside
    assert inside <= found["uid"] < inside + count
    # Of another user, 0 is what an outer namespace calls him.
    assert who != 0 or os.getuid() != 0, "on the host it is root"


def test_no_network_is_reached(isolation: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        server.setblocking(False)
        name = f"\0judge-gym-{secrets.token_hex(8)}"
        named.bind(name)
        named.listen()
        named.setblocking(False)
        source = """
import json, socket, sys
port, name = int(sys.argv[1]), sys.argv[2]
tries = [
    (socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET, ("192.0.2.1", 80)),
    (socket.AF_UNIX, "\\0" + name), (40, (2, 1024)),
]
reached = []
for family, address in tries:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(2)
            one.connect(address)
            reached.append(str(address))
    except OSError:
        pass
print(json.dumps(reached))
"""
        assert told(python(isolation, source, str(server.getsockname()[1]), name[1:])) == []
        for waiting in (server, named):
            with pytest.raises(BlockingIOError):
                waiting.accept()


def test_links_lead_to_nothing_of_the_host(isolation: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("secret")
    source = """
import os, sys
os.symlink(sys.argv[1], "link")
os.symlink("/proc/1/root" + sys.argv[1], "other")
for name in ("link", "other"):
    try:
        print(open(name).read())
    except OSError:
        pass
    try:
        open(name, "w").write("changed")
    except OSError:
        pass
"""
    ran = python(isolation, source, str(mine))
    assert ran.passed
    assert "secret" not in ran.output
    assert mine.read_text() == "secret"


def test_the_package_with_its_answers_is_hidden(
    isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed, it stands in a folder that sandboxes see; here a folder that tools come from.

    The folder of the shipped suite lies in the package, and is hidden with it.
    """
    package = tmp_path / "place" / "lib" / "judge_gym"
    (package / "suites" / "python").mkdir(parents=True)
    (package / "suites" / "python" / "answer.py").write_text("secret")
    (package / "beside.py").write_text("secret")
    tmp_path.chmod(0o755)
    monkeypatch.setattr("judge_gym.suites.mounts.PACKAGE", package)
    tool = tmp_path / "place" / "bin" / "some-tool"
    tool.parent.mkdir()
    tool.touch(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    source = """
import json, os, sys
print(json.dumps([f for _, _, files in os.walk(sys.argv[1]) for f in files]))
"""
    suite = package / "suites" / "python"
    ran = python(isolation, source, str(tmp_path / "place"), tools=["some-tool"], hidden=[suite])
    assert told(ran) == ["some-tool"]


def test_missing_command_is_reported(isolation: str) -> None:
    ran = run(Job(["no-such-program"]), isolation=isolation)
    assert ran.ended == "broken"
    assert "no-such-program" in ran.reason or "No such file" in ran.reason


def test_unisolated_runs_are_refused_unless_allowed(
    isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DesignError, match="unknown isolation 'none'"):
        choose("none")
    assert choose(isolation) == isolation
    monkeypatch.setattr(sandbox, "isolations", lambda: ())
    with pytest.raises(DesignError, match="no sandbox works here"):
        choose()
    assert choose(allow_unisolated=True) == "none"


def test_an_unisolated_run_says_so_and_leaves_nothing(
    isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    token = secrets.token_hex(8)
    source = """
import os, subprocess, sys
child = [sys.executable, "-I", "-c", "import time; time.sleep(600)", sys.argv[1]]
subprocess.Popen(child, start_new_session=True)
print(os.getcwd(), "OPENAI_API_KEY" in os.environ)
"""
    job = Job(["{python}", "-I", "-c", source, token], files={"a.txt": "x"}, limits=SMALL)
    ran = run(job, isolation="none", allow_unisolated=True)
    assert ran.passed, ran
    assert ran.isolation == "none"
    place, known = ran.stdout.split()
    assert known == "False"
    assert not Path(place).exists()
    assert none_left(token)
