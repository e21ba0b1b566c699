"""What the filter decides, on machines that this one is and is not: a filter is a small program, which is read here."""

import errno
import os
import struct
from functools import cache
from itertools import groupby

import pytest

from ace_bench.core import system_calls
from ace_bench.core.system_calls import _program
from tests.outcomes import outcomes

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


VALUES = (*range(-1, 80), *range(1024, 1040), PID, PID + 1, 1 << 40, 1 | 0o2000000, THREAD)
VALUES += tuple(THREAD | 1 << bit for bit in range(25, 31))
VALUES += tuple(os.O_CREAT | os.O_TRUNC | mode for mode in range(4))


def spans(values):
    """Write numbers that follow each other as the first and the last one."""
    groups = [[*group] for _, group in groupby(enumerate(values), lambda one: one[1] - one[0])]
    return ", ".join(f"{group[0][1]}" if len(group) == 1 else f"{group[0][1]} to {group[-1][1]}" for group in groups)


def decisions(column, machine, case):
    """Return what the filter decides on a call, by the values of its first argument that the case does not give."""
    name, *before = case.split(" | ")
    given = [PID if one == "PID" else int(one) for one in before]
    number = NUMBERS[name][column]
    if number is None:
        return "no such call"
    found = {}
    for value in range(0x5400, 0x5460) if name == "ioctl" else sorted(VALUES):
        decision = decide(machine, number, *given, value)
        found.setdefault(errno.errorcode.get(decision, decision), []).append(value)
    most = max(found, key=lambda one: len(found[one]))
    return "; ".join([f"{most}", *(f"{one} for {spans(values)}" for one, values in found.items() if one != most)])


CALLS = [
    "read",
    "fchmodat",
    "setxattr",
    "clone3",
    "first of the new",
    "last of the old",
    "execve",
    "socket",
    "connect",
    "memfd_create",
    "unshare",
    "bpf",
    "shmget",
    "ptrace",
    "clone",
    "fcntl | 0",
    "ioctl | 0",
    "prctl",
    "kill",
    "kill | PID",
    "tgkill",
    "tgkill | PID | 7",
    "socketpair",
    "socketpair | 1",
    "socketpair | 2",
    "prlimit64",
    "prlimit64 | 0 | 7",
    "open | 0",
    "openat | 0 | 0",
]


@pytest.mark.parametrize(("column", "machine"), [*enumerate(NAMES)])
def test_the_list_and_the_arguments_of_calls_decide(snapshot, column, machine):
    assert outcomes(lambda case: decisions(column, machine, case), CALLS) == snapshot


def test_calls_in_the_manner_of_another_machine_are_not_let_through():
    assert decide("x86_64", 0, kind="aarch64") == KILLED
    assert decide("x86_64", 0x40000000) == errno.ENOSYS, "the same machine's other numbers"


def test_a_machine_without_a_table_gets_no_filter(monkeypatch):
    monkeypatch.setattr(system_calls, "_MACHINES", {})
    assert not system_calls.restrict_calls()
