"""What the filter decides, on machines that this one is and is not: a filter is a small program, which is read here."""

import errno
import os
import struct
from functools import cache

import pytest

from ace_bench.core import system_calls
from ace_bench.core.system_calls import _program

PID = 4321
program_for = cache(_program)
ALLOWED, PRETENDED, KILLED = "allowed", 0, "killed"
NAMES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "read": (0, 63), "open": (2, None), "openat": (257, 56), "clone": (56, 220), "clone3": (435, 435),
    "kill": (62, 129), "tgkill": (234, 131), "fcntl": (72, 25), "ioctl": (16, 29), "prctl": (157, 167),
    "socketpair": (53, 199), "prlimit64": (302, 261), "fchmodat": (268, 53), "setxattr": (188, 5),
    "execve": (59, 221), "socket": (41, 198), "connect": (42, 203), "memfd_create": (319, 279), "unshare": (272, 97),
    "bpf": (321, 280), "shmget": (29, 194), "ptrace": (101, 117), "first of the new": (424, 424),
    "last of the old": (423, 423),
}  # fmt: skip
THREAD, FORK = 0x3D0F00, 17


def decide(machine, number, *arguments, kind=None):
    """Run the filter as the kernel would, which refuses one that jumps elsewhere than after a comparison."""
    data = struct.pack(
        "=iIQ6Q", number, NAMES[kind or machine], 0, *[one % 2**64 for one in (*arguments, *[0] * 6)][:6]
    )
    program, at, register = program_for(machine, PID), 0, 0
    while True:
        code, true, false, value = program[at]
        at += 1
        if code == 0x15:
            at += true if register == value else false
        elif code == 0x35:
            at += true if register >= value else false
        else:
            assert (true, false) == (0, 0)
            if code == 0x20:
                (register,) = struct.unpack_from("=I", data, value)
            elif code == 0x54:
                register &= value
            else:
                assert code == 0x06
                return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(value, value & 0xFFFF)


@pytest.fixture(params=enumerate(NAMES), ids=NAMES)
def decision(request):
    """The filter's decision by the name of a call and its arguments, on each machine; ``None`` without such a call."""
    column, machine = request.param

    def found(name, *arguments):
        number = NUMBERS[name][column]
        return None if number is None else decide(machine, number, *arguments)

    return found


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        (ALLOWED, ["read"]),
        (PRETENDED, ["fchmodat"]),
        (errno.ENOTSUP, ["setxattr"]),
        (errno.ENOSYS, ["clone3", "first of the new"]),
        (errno.EPERM, ["last of the old", "execve", "socket", "connect", "memfd_create", "unshare", "bpf", "shmget"]),
        (errno.EPERM, ["ptrace"]),
    ],
)
def test_the_list_decides(decision, answer, calls):
    assert {decision(name) for name in calls} == {answer}


@pytest.mark.parametrize(
    ("name", "before", "values", "allowed"),
    [
        ("clone", (), [THREAD, FORK, *(THREAD | 1 << bit for bit in range(25, 31))], [THREAD]),
        ("fcntl", (0,), range(2048), [*range(8), 36, 37, 38, 1030, 1032]),  # copies, flags and locks
        ("ioctl", (0,), range(0x5400, 0x5500), [0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451]),
        ("prctl", (), range(80), [15, 16]),  # names of threads
        ("kill", (), [PID, 1, 0, -1, PID + 1], [PID]),
        ("kill", (PID,), range(-1, 70), [*range(9), *range(10, 65)]),  # all but SIGKILL
        ("tgkill", (), [PID, 1, 0, -1], [PID]),
        ("tgkill", (PID, 7), range(-1, 70), [*range(9), *range(10, 65)]),
        ("socketpair", (), range(20), []),
        ("socketpair", (1,), [0, 1, 2, 3, 5, 1 | 0o2000000], [1, 1 | 0o2000000]),  # streams of AF_UNIX
        ("socketpair", (2,), [1], []),
        ("prlimit64", (), [0, 1, PID], [0, PID]),
        ("prlimit64", (0, 7), [0, 1, 1 << 40], [0]),  # reading
    ],
)  # fmt: skip
def test_arguments_decide(decision, name, before, values, allowed):
    assert [value for value in values if decision(name, *before, value) == ALLOWED] == allowed
    assert {decision(name, *before, value) for value in values if value not in allowed} <= {errno.EPERM}


@pytest.mark.parametrize(("name", "before"), [("open", (0,)), ("openat", (0, 0))])
def test_files_are_not_cut_by_opening_them_to_read(decision, name, before):
    modes = [os.O_CREAT | cut | mode for cut in (0, os.O_TRUNC) for mode in range(4)]
    decisions = [decision(name, *before, mode) for mode in modes]
    no = errno.EPERM
    assert decisions in ([ALLOWED, ALLOWED, ALLOWED, no, no, ALLOWED, ALLOWED, no], [None] * 8)


def test_calls_in_the_manner_of_another_machine_are_not_let_through():
    assert decide("x86_64", 0, kind="aarch64") == KILLED
    assert decide("x86_64", 0x40000000) == errno.ENOSYS, "the same machine's other numbers"


def test_a_machine_without_a_table_gets_no_filter(monkeypatch):
    monkeypatch.setattr(system_calls, "_MACHINES", {})
    assert not system_calls.restrict_calls()
