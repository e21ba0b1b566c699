"""A filter (seccomp) that allows only the system calls that a process needs; ours, because pyseccomp needs a C library.

It works on Linux on x86_64 and aarch64.

Landlock restricts access to files, but not to sockets in the file system, processes, signals, permissions, keyrings or
shared memory. This filter refuses every call that ``system_calls.txt`` does not list, above all new processes,
programs and sockets. A process that cannot start others has one address space, which a resource limit bounds, and
killing it ends everything.

This module uses only the standard library, because processes of other interpreters import it too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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

_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's name for each machine (AUDIT_ARCH), in the order of the numbers in the file."""
_FIRST_NEW = 424
"""From this number on, calls have equal numbers on all machines; libraries fall back to older calls on ENOSYS."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_SECCOMP, _FILTER = 22, 2

_ANSWERS = {"checked": _ALLOW, "allowed": _ALLOW, "pretended": _REFUSE, "unsupported": _REFUSE | errno.ENOTSUP}
_LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
_LISTED = [line.split() for line in _LINES if line and not line.startswith("#")]
"""An answer, followed by calls; read here, since a confined process cannot read the file."""

_Instruction = tuple[int, int, int, int]


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
    instructions = [struct.pack("=HBBI", *instruction) for instruction in _program(machine, os.getpid())]
    code = ctypes.create_string_buffer(b"".join(instructions))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(instructions), ctypes.addressof(code)))
    return set_process(_PR_SET_SECCOMP, _FILTER, program)


def set_process(option: int, value: int, argument: object = 0) -> bool:
    """Call ``prctl`` and return whether it succeeded."""
    return bool(ctypes.CDLL(None).prctl(option, value, argument, 0, 0) == 0)


def _conditions(pid: int) -> dict[str, tuple[_Only, ...]]:
    """Return what must hold of the arguments of the calls that are ``checked``."""
    modes = os.O_ACCMODE | os.O_TRUNC
    return {
        "openat": (_Only(2, _OPEN_MODES, modes),),
        "open": (_Only(1, _OPEN_MODES, modes),),
        "clone": (_Only(0, (_CLONE_THREAD,), _CLONE_THREAD | _CLONE_NAMESPACES),),
        "fcntl": (_Only(1, _FCNTLS),),
        "ioctl": (_Only(1, _IOCTLS),),
        "prctl": (_Only(0, _PRCTLS),),
        "kill": (_Only(0, (pid,)), _Only(1, _SIGNALS)),
        "tgkill": (_Only(0, (pid,)), _Only(2, _SIGNALS)),
        "prlimit64": (_Only(0, (0, pid)), _Only(2, (0,)), _Only(2, (0,), high=True)),  # read only
        "socketpair": (_Only(0, (1,)), _Only(1, (1,), 0xF)),  # two connected ends: datagrams could go elsewhere
    }


def _program(machine: str, pid: int) -> list[_Instruction]:
    conditions = _conditions(pid)
    program = [
        _step(_LOAD, _MACHINE_AT),
        _step(_EQUAL, _MACHINES[machine], true=1),
        _step(_RETURN, _KILL_PROCESS),
        _step(_LOAD, _NUMBER_AT),
    ]
    for answer, *calls in _LISTED:
        for name, *numbers in (call.split(":") for call in calls):
            number = dict(zip(_MACHINES, numbers, strict=True))[machine]
            if number != "-":
                checks = [
                    step
                    for condition in (conditions[name] if answer == "checked" else ())
                    for step in _check(condition)
                ]
                program += [_step(_EQUAL, int(number), false=len(checks) + 1), *checks]
                program.append(_step(_RETURN, _ANSWERS[answer]))
    return [
        *program,
        _step(_AT_LEAST, _FIRST_NEW, false=1),
        _step(_RETURN, _REFUSE | errno.ENOSYS),
        _step(_RETURN, _REFUSE | errno.EPERM),
    ]


def _step(code: int, value: int, *, true: int = 0, false: int = 0) -> _Instruction:
    """Return an instruction; a comparison skips ``true`` or ``false`` of the instructions after it."""
    return code, true, false, value


def _check(condition: _Only) -> Iterator[_Instruction]:
    """Yield instructions that continue after themselves if the condition holds and refuse the call otherwise."""
    yield _step(_LOAD, _ARGUMENTS_AT + 8 * condition.argument + 4 * condition.high)
    yield _step(_AND, condition.mask)
    for remaining, value in zip(range(len(condition.values), 0, -1), condition.values, strict=True):
        yield _step(_EQUAL, value, true=remaining)
    yield _step(_RETURN, _REFUSE | errno.EPERM)
