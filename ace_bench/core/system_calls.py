"""A filter that allows only the system calls that a process needs (seccomp, Linux on x86_64 and aarch64).

Landlock restricts access to files, but not to sockets in the file system, processes, signals, permissions, keyrings or
shared memory. This filter refuses every call that ``system_calls.txt`` does not list, above all new processes,
programs and sockets. A process that cannot start others has one address space, which a resource limit bounds, and
killing it ends everything.

This module uses only the standard library, because processes of other interpreters import it too: pyseccomp would
have to be installed for each of them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_OPEN, _OPENAT = (2, None), (257, 56)
_CLONE = (56, 220)
_FCNTL, _IOCTL, _PRCTL = (72, 25), (16, 29), (157, 167)
_KILL, _TGKILL = (62, 129), (234, 131)
_PRLIMIT, _SOCKETPAIR = (302, 261), (53, 199)

_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000
_OPEN_MODES = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_TRUNC | os.O_WRONLY, os.O_TRUNC | os.O_RDWR)
"""Without read-only with truncation: before version 3, Landlock treats that as reading."""
_FCNTLS = (*range(8), 36, 37, 38, 1030, 1032)
"""Copies, flags and locks; not signals to other processes, leases and notifications."""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""
_PRCTLS = (15, 16)
"""PR_SET_NAME and PR_GET_NAME, as threads use them."""
_SIGNALS = tuple(number for number in range(65) if number != 9)
"""All but SIGKILL: a process that dies of SIGKILL was then killed by another process."""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column in the tables, and the kernel's name for the machine (AUDIT_ARCH)."""
_FIRST_NEW = 424
"""From this number on, calls have equal numbers on all machines; libraries fall back to older calls on ENOSYS."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_SECCOMP, _FILTER = 22, 2

_ANSWERS = {"allowed": _ALLOW, "pretended": _REFUSE | 0, "unsupported": _REFUSE | errno.ENOTSUP}
_LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
_LISTED = [line.split() for line in _LINES if line and not line.startswith("#")]
"""An answer, followed by calls; read here, since a confined process cannot read the file."""

_Instruction = tuple[int, int, int, int]
_Number = tuple[int | None, int | None]


@dataclass(frozen=True)
class _Only:
    """Allows a call if 32 masked bits of an argument are one of ``values``; ``high`` selects the upper half."""

    argument: int
    values: Sequence[int]
    mask: int = 0xFFFFFFFF
    high: bool = False


def restrict_calls() -> bool:
    """Restrict this process and its later threads for good; return whether kernel and machine support it.

    The process must have one thread, and must not be able to gain privileges (PR_SET_NO_NEW_PRIVS).
    """
    machine = os.uname().machine
    if machine not in _MACHINES:
        return False
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in _program(machine, os.getpid()))
    code = ctypes.create_string_buffer(program, len(program))
    about = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_SECCOMP, _FILTER, about, 0, 0) == 0)


def _conditional(pid: int) -> dict[_Number, tuple[_Only, ...]]:
    modes = os.O_ACCMODE | os.O_TRUNC
    return {
        _OPENAT: (_Only(2, _OPEN_MODES, modes),),
        _OPEN: (_Only(1, _OPEN_MODES, modes),),
        _CLONE: (_Only(0, (_CLONE_THREAD,), _CLONE_THREAD | _CLONE_NAMESPACES),),
        _FCNTL: (_Only(1, _FCNTLS),),
        _IOCTL: (_Only(1, _IOCTLS),),
        _PRCTL: (_Only(0, _PRCTLS),),
        _KILL: (_Only(0, (pid,)), _Only(1, _SIGNALS)),
        _TGKILL: (_Only(0, (pid,)), _Only(2, _SIGNALS)),
        _PRLIMIT: (_Only(0, (0, pid)), _Only(2, (0,)), _Only(2, (0,), high=True)),  # read only
        _SOCKETPAIR: (_Only(0, (1,)), _Only(1, (1,), 0xF)),  # two connected ends: datagrams could go elsewhere
    }


def _program(machine: str, pid: int) -> list[_Instruction]:
    column, name = _MACHINES[machine]
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, name),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for numbers, conditions in _conditional(pid).items():
        if (number := numbers[column]) is not None:
            checks = [instruction for condition in conditions for instruction in _check(condition)]
            program += [(_EQUAL, 0, len(checks) + 1, number), *checks, (_RETURN, 0, 0, _ALLOW)]
    for answer, *calls in _LISTED:
        for listed in (call.split(":")[1 + column] for call in calls):
            if listed != "-":
                program += [(_EQUAL, 0, 1, int(listed)), (_RETURN, 0, 0, _ANSWERS[answer])]
    return [
        *program,
        (_AT_LEAST, 0, 1, _FIRST_NEW),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
    ]


def _check(condition: _Only) -> Iterator[_Instruction]:
    """Yield instructions that continue after themselves if the condition holds and refuse the call otherwise."""
    yield _LOAD, 0, 0, _ARGUMENTS_AT + 8 * condition.argument + 4 * condition.high
    yield _AND, 0, 0, condition.mask
    left = len(condition.values)
    for value in condition.values:
        yield _EQUAL, left, 0, value
        left -= 1
    yield _RETURN, 0, 0, _REFUSE | errno.EPERM
