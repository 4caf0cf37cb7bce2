"""Restricts a candidate's process before it starts: user, capabilities, limits, system calls."""

import ctypes
import os
import platform
import resource
import struct
from collections.abc import Iterator, Mapping
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
SET_DUMPABLE, SET_NO_NEW_PRIVS, SET_SECCOMP, SET_SUBREAPER = 4, 38, 22, 36
NAMESPACE_FLAGS = 0x7E020000
"""Every CLONE_NEW* flag: in its own namespace, a candidate could mount without a limit."""
FAMILIES = (1, 2, 10, 16)
"""Sockets that a network namespace confines: unix, inet, inet6, netlink; not vsock."""

# Memory of no process (memfd, System V), other processes, mounts, keys, kernel programs.
DENIED = {
    "x86_64": "29 64 68 101 155 161 165 166 240 248 249 250 272 298 308 310 311 319 321 323",
    "aarch64": "39 40 41 51 97 117 180 186 190 194 217 218 219 241 268 270 271 279 280 282",
}
DENIED_EVERYWHERE = "425 428 429 430 431 432 433 442 447"
"""Calls with the same number on all machines: io_uring, the newer mount calls, memfd_secret."""
ARCH = {"x86_64": (0xC000003E, 56, 41), "aarch64": (0xC00000B7, 220, 198)}
"""The machine's name in a filter, and its numbers of `clone` and `socket`."""
CLONE3, ENOSYS, EPERM = 435, 38, 1
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def can_filter_calls() -> bool:
    """Tells whether the system calls of this machine are known, so that they can be filtered."""
    return platform.machine() in ARCH


def _program() -> Iterator[tuple[int, int, int, int]]:
    """Yields a filter of system calls: per instruction a code, two jumps and a value."""
    machine = platform.machine()
    arch, clone, socket = ARCH[machine]
    yield LOAD, 0, 0, 4
    yield EQUAL, 1, 0, arch
    yield RETURN, 0, 0, KILL
    yield LOAD, 0, 0, 0
    yield AT_LEAST, 0, 1, 0x40000000  # the second set of numbers of x86
    yield RETURN, 0, 0, ERRNO | ENOSYS
    for number in f"{DENIED[machine]} {DENIED_EVERYWHERE}".split():
        yield EQUAL, 0, 1, int(number)
        yield RETURN, 0, 0, ERRNO | EPERM
    # A filter cannot read its flags, behind a pointer; without it libraries use `clone`.
    yield EQUAL, 0, 1, CLONE3
    yield RETURN, 0, 0, ERRNO | ENOSYS
    yield EQUAL, 0, 4, clone
    yield LOAD, 0, 0, 16
    yield ANY_BIT, 0, 1, NAMESPACE_FLAGS
    yield RETURN, 0, 0, ERRNO | EPERM
    yield RETURN, 0, 0, ALLOW
    yield EQUAL, 0, len(FAMILIES) + 2, socket
    yield LOAD, 0, 0, 16
    for index, family in enumerate(FAMILIES):
        yield EQUAL, len(FAMILIES) - index, 0, family
    yield RETURN, 0, 0, ERRNO | EPERM
    yield RETURN, 0, 0, ALLOW


def check_result(value: int, what: str) -> None:
    """Raises the system's error, and what failed, unless a call returned 0."""
    if value != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def prctl(option: int, value: Any) -> None:
    """Sets an attribute of this process."""
    check_result(LIBC.prctl(option, value, 0, 0, 0), f"prctl {option}")


def _filter_calls() -> None:
    code = b"".join(struct.pack("HBBI", *line) for line in _program())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    prctl_filter = ctypes.create_string_buffer(program, len(program))
    check_result(LIBC.prctl(SET_SECCOMP, 2, prctl_filter, 0, 0), "seccomp")


def _limit(limits: Mapping[str, Any]) -> None:
    megabyte = 1 << 20
    maxima = {
        resource.RLIMIT_CPU: int(limits["cpu_seconds"]),
        # Writable memory, not address space: engines such as V8 reserve far more than they use.
        resource.RLIMIT_DATA: limits["memory_mb"] * megabyte,
        resource.RLIMIT_FSIZE: limits["disk_mb"] * megabyte,
        resource.RLIMIT_NPROC: limits["processes"],
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    for name, most in maxima.items():
        hard = resource.getrlimit(name)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(name, (most, most))


def confine(limits: Mapping[str, Any], uid: int | None, *, isolated: bool) -> None:
    """Gives up, irrevocably, what a candidate must not have.

    Args:
        limits: see `judge_gym.suites.sandbox.Limits`.
        uid: the user to become, which no other process has, so that its processes are counted
            separately; None to stay.
        isolated: whether it runs in namespaces, whose capabilities are dropped.
    """
    os.umask(0o022)
    _limit(limits)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if isolated:
        header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
        check_result(LIBC.capset(header, ctypes.create_string_buffer(24)), "capset")
    prctl(SET_NO_NEW_PRIVS, 1)
    if isolated and can_filter_calls():
        _filter_calls()
