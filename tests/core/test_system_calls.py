"""What the filter decides, on machines that this one is and is not: a filter is a small program, which is read here."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from ace_bench.core import system_calls
from ace_bench.core.system_calls import _program

PID = 4321
ALLOWED, PRETENDED, KILLED = "allowed", 0, "killed"
NUMBERS = {
    "x86_64": {"read": 0, "openat": 257, "clone": 56, "clone3": 435, "execve": 59, "socket": 41, "kill": 62}
    | {"socketpair": 53, "fchmodat": 268, "setxattr": 188, "memfd_create": 319, "prlimit64": 302, "tgkill": 234}
    | {"unshare": 272, "fcntl": 72, "bpf": 321, "shmget": 29, "ptrace": 101, "io_uring_setup": 425, "connect": 42}
    | {"ioctl": 16},
    "aarch64": {"read": 63, "openat": 56, "clone": 220, "clone3": 435, "execve": 221, "socket": 198, "kill": 129}
    | {"socketpair": 199, "fchmodat": 53, "setxattr": 5, "memfd_create": 279, "prlimit64": 261, "tgkill": 131}
    | {"unshare": 97, "fcntl": 25, "bpf": 280, "shmget": 194, "ptrace": 117, "io_uring_setup": 425, "connect": 203}
    | {"ioctl": 29},
}
THREAD, FORK = 0x3D0F00, 17


def decision(machine, number, *arguments, kind=None):
    """Run the filter as the kernel would."""
    name = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[kind or machine]
    data = struct.pack("=iIQ6Q", number, name, 0, *(value % 2**64 for value in (*arguments, *[0] * 6)[:6]))
    program, at, register = _program(machine, PID), 0, 0
    while True:
        code, true, false, value = program[at]
        at += 1
        if code == 0x20:
            (register,) = struct.unpack_from("=I", data, value)
        elif code == 0x54:
            register &= value
        elif code == 0x15:
            at += true if register == value else false
        elif code == 0x35:
            at += true if register >= value else false
        else:
            assert code == 0x06
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(value, value & 0xFFFF)


@pytest.mark.parametrize("machine", NUMBERS)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("read", (), ALLOWED),
        ("openat", (0, 0, os.O_RDWR | os.O_CREAT | os.O_TRUNC), ALLOWED),
        ("openat", (0, 0, os.O_RDONLY | os.O_TRUNC), errno.EPERM),
        ("clone", (THREAD,), ALLOWED),
        ("clone", (FORK,), errno.EPERM),
        ("clone", (THREAD | 0x40000000,), errno.EPERM),
        ("clone3", (), errno.ENOSYS),
        ("kill", (PID, 15), ALLOWED),
        ("kill", (PID, 9), errno.EPERM),
        ("kill", (-1, 15), errno.EPERM),
        ("tgkill", (PID, PID, 6), ALLOWED),
        ("tgkill", (1, 1, 6), errno.EPERM),
        ("fcntl", (0, 3), ALLOWED),
        ("fcntl", (0, 8), errno.EPERM),
        *(("ioctl", (0, request), ALLOWED) for request in (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
        ("ioctl", (0, 0x5412), errno.EPERM),
        ("socketpair", (1, 1 | 0o2000000), ALLOWED),
        ("socketpair", (1, 2), errno.EPERM),
        ("prlimit64", (0, 7, 0), ALLOWED),
        ("prlimit64", (0, 7, 1 << 40), errno.EPERM),
        ("fchmodat", (), PRETENDED),
        ("setxattr", (), errno.ENOTSUP),
        ("io_uring_setup", (), errno.ENOSYS),
        *(
            (name, (), errno.EPERM)
            for name in ("execve", "socket", "connect", "memfd_create", "unshare", "bpf", "shmget")
        ),
        ("ptrace", (), errno.EPERM),
    ],
)
def test_the_list_decides(machine, name, arguments, expected):
    assert decision(machine, NUMBERS[machine][name], *arguments) == expected


def test_calls_in_the_manner_of_another_machine_are_not_let_through():
    assert decision("x86_64", 0, kind="aarch64") == KILLED
    assert decision("x86_64", 0x40000000) == errno.ENOSYS, "the same machine's other numbers"


def test_a_machine_without_a_table_gets_no_filter(monkeypatch):
    monkeypatch.setattr(system_calls, "_MACHINES", {})
    assert not system_calls.restrict_calls()
