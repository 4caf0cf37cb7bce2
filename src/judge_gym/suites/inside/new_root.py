"""Sets up the root of a sandbox without bubblewrap: a new file system with few mounts."""

import ctypes
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .confinement import LIBC, check_result

RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
DETACH, AT_FDCWD, RECURSIVE, MOUNT_SETATTR = 2, -100, 0x8000, 442
DEVICES = ("null", "zero", "full", "random", "urandom")
BASE = "/tmp"
"""Where the new root is set up; the old root stays reachable until it is left."""


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    words = [text.encode() for text in (source, target, kind)]
    done = LIBC.mount(words[0], words[1], words[2] or None, flags, data.encode() or None)
    check_result(done, f"mount {source} on {target}")


def _read_only(target: str) -> None:
    """Makes a bound tree read-only, with all that is mounted in it."""
    attributes = ctypes.create_string_buffer(struct.pack("QQQQ", RDONLY | NOSUID, 0, 0, 0))
    call = LIBC.syscall(
        MOUNT_SETATTR, AT_FDCWD, target.encode(), RECURSIVE, attributes, ctypes.c_size_t(32)
    )
    check_result(call, f"read-only {target}")


def _bind(source: str, target: str) -> None:
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    _mount(source, target, flags=BIND | REC)


def _tmpfs(target: str, megabytes: int, mode: str) -> None:
    Path(target).mkdir(parents=True, exist_ok=True)
    _mount("tmpfs", target, "tmpfs", NOSUID | NODEV, f"size={megabytes}m,mode={mode}")


def enter_root(view: Mapping[str, Any]) -> None:
    """Changes to a root with what the view lists, and nothing of the old one.

    Args:
        view: `binds` (outside, inside), `links` (target, inside), `hidden` folders, `box` and
            `disk_mb`.
    """
    _mount("none", "/", flags=REC | PRIVATE)
    _tmpfs(BASE, 16, "0755")
    old = f"{BASE}/old"
    Path(old).mkdir()
    new = f"{BASE}/new"
    Path(new).mkdir()
    _mount(new, new, flags=BIND)
    check_result(LIBC.syscall(_pivot_root(), BASE.encode(), old.encode()), "pivot_root")
    os.chdir("/")
    _fill("/new", "/old", view)
    if LIBC.umount2(b"/old", DETACH) != 0:
        raise OSError(ctypes.get_errno(), "the old root cannot be left")
    os.chroot("/new")
    os.chdir("/")
    _mount("none", "/", flags=REMOUNT | BIND | RDONLY | NOSUID | NODEV)


def _fill(root: str, old: str, view: Mapping[str, Any]) -> None:
    binds: Sequence[tuple[str, str]] = view["binds"]
    for source, target in binds:
        _bind(old + os.path.realpath(old + source).removeprefix(old), root + target)
        _read_only(root + target)
    for folder in view["hidden"]:
        _tmpfs(root + folder, 1, "0555")
        _read_only(root + folder)
    for target, link in view["links"]:
        (Path(root) / link.lstrip("/")).symlink_to(target)
    Path(root, "proc").mkdir()
    _mount("proc", f"{root}/proc", "proc", NOSUID | NODEV | NOEXEC)
    for device in DEVICES:
        _bind(f"{old}/dev/{device}", f"{root}/dev/{device}")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        Path(root, "dev", name).symlink_to(f"/proc/self/fd/{number}")
    Path(root, "dev/fd").symlink_to("/proc/self/fd")
    _tmpfs(f"{root}/dev/shm", 1, "1777")
    _tmpfs(root + view["box"], view["disk_mb"], "0777")


def _pivot_root() -> int:
    return {"x86_64": 155, "aarch64": 41}[os.uname().machine]
