"""Machines that this one is not: an ordinary user's, and those whose kernels lack something.

    python -m tests.hostile.machines '{"user": 54321, "home": "/a/folder", "without": ["landlock"]}' COMMAND ...

runs a command as it would run there. An ordinary user is a process that has given up root for good, in a view of the
file system in which the interpreter and this checkout can be read; what a kernel lacks is answered by a filter with the
error that such a kernel gives. Needs root for a user, and one of the kernels that the sandboxes need.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

_CALLS = {
    "x86_64": (0xC000003E, {"landlock": (444, 445, 446), "namespaces": (272,), "seccomp": (317,), "prctl": 157}),
    "aarch64": (0xC00000B7, {"landlock": (444, 445, 446), "namespaces": (97,), "seccomp": (277,), "prctl": 167}),
}
_ERRORS = {"landlock": errno.ENOSYS, "namespaces": errno.EPERM, "seccomp": errno.ENOSYS}
_NEWNS, _BIND, _REC, _PRIVATE = 0x20000, 4096, 16384, 1 << 18
_SET_SECCOMP, _NO_NEW_PRIVS = 22, 38

_libc = ctypes.CDLL(None, use_errno=True)


def command_on(about: Mapping[str, Any], command: Sequence[str]) -> list[str]:
    """Return a command that runs another one as on such a machine; to be run from the checkout."""
    return [sys.executable, "-m", "tests.hostile.machines", json.dumps(about), *command]


def main() -> None:
    """Become a process of the machine described and run the command."""
    about = json.loads(sys.argv[1])
    user = about.get("user")
    if "home" in about:  # so that root can give processes users of their own, and an ordinary user can start any
        _open_to_all([Path(sys.base_prefix), ROOT, Path(about["home"])])
    if user is not None:
        for folder, _, files in os.walk(about["home"]):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                os.chown(path, user, user)
        os.environ |= {"HOME": about["home"], "USER": str(user)}
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        _check(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    if without := about.get("without"):
        _leave_out(without)
    os.execvp(sys.argv[2], sys.argv[2:])


def _open_to_all(needed: Sequence[Path]) -> None:
    """Let all users reach some folders, for this process and its children alone.

    A folder above that is closed is covered by one that is open and holds nothing but the way.
    """
    _check(_libc.unshare(_NEWNS))
    _mount("none", "/", _REC | _PRIVATE)
    closed: dict[Path, list[Path]] = {}
    for path in needed:
        above = next((folder for folder in reversed(path.parents) if not folder.stat().st_mode & 0o001), None)
        if above is not None:
            closed.setdefault(above, []).append(path)
    for folder, paths in closed.items():
        cover = Path(tempfile.mkdtemp(dir="/dev/shm"))
        cover.chmod(0o755)
        _mount("none", str(cover), 0, b"tmpfs")
        for path in paths:
            shown = cover / path.relative_to(folder)
            shown.mkdir(parents=True)
            _mount(str(path), str(shown), _BIND | _REC)
        _mount(str(cover), str(folder), _BIND | _REC)
        _check(_libc.umount2(os.fsencode(cover), 2))
        cover.rmdir()


def _mount(source: str, target: str, flags: int, kind: bytes | None = None) -> None:
    _check(_libc.mount(os.fsencode(source), os.fsencode(target), kind, ctypes.c_ulong(flags), None))


def _leave_out(parts: Sequence[str]) -> None:
    """Answer system calls as a kernel does that lacks them."""
    machine, calls = _CALLS[os.uname().machine]
    program = [(0x20, 0, 0, 4), (0x15, 1, 0, machine), (0x06, 0, 0, 0x80000000), (0x20, 0, 0, 0)]
    for part in parts:
        for number in calls[part]:
            program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | _ERRORS[part])]
    if "seccomp" in parts:  # its other door
        program += [
            (0x15, 0, 3, calls["prctl"]),
            (0x20, 0, 0, 16),
            (0x15, 0, 1, _SET_SECCOMP),
            (0x06, 0, 0, 0x50000 | errno.EINVAL),
        ]
    program.append((0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    about = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    _check(_libc.prctl(_SET_SECCOMP, 2, about, 0, 0))


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def ran_on(about: Mapping[str, Any], command: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as on such a machine and return what it gave."""
    return subprocess.run(
        command_on(about, command),
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    main()
