"""Confines a process that runs a model's code (Linux); ours, because a container needs root, a daemon or an image.

Each layer is applied if the machine supports it, and reported by name:

``files``       Landlock: the process reads listed paths and writes to one folder
``calls``       a filter of system calls: no new process, program or socket, no signal to others (see ``system_calls``)
``namespaces``  a separate network and shared memory, in case the filter has a hole
``user``        a separate user, if the harness runs as root

The first two are ``NEEDED`` and work without privileges. Since the process cannot start another one, the limit on its
address space covers all memory that the code uses, and killing the process ends everything. The process cannot undo
any layer.

This module uses only the standard library, because processes of other interpreters import it too.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import resource
import signal
import struct
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ace_bench.core.system_calls import restrict_calls, set_process

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWNET = 0x08000000, 0x10000000, 0x40000000
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_SYSTEM_FILES = (
    *("/usr/share/zoneinfo", "/etc/localtime", "/etc/ld.so.cache", "/etc/mime.types"),
    *("/dev/urandom", "/dev/null"),
)
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 0b0001, 0b0010, 0b0100, 0b1000
_RIGHTS_BY_VERSION = {1: (13,), 2: (14,), 3: (15,), 4: (15, 2), 5: (16, 2), 6: (16, 2, 2)}
"""Numbers of rights that each version of Landlock's interface knows: to files, to TCP, and to reach other processes."""
NEEDED = frozenset({"calls", "files"})
"""The layers that are required to run a model's code, unless the user allows otherwise."""

_DESCRIPTIONS = {
    "files": "Landlock",
    "calls": "a filter of system calls",
    "namespaces": "namespaces",
    "user": "a user of its own",
}
_MISSING = {
    "files": "the kernel has no Landlock (Linux 5.13 or newer, switched on)",
    "calls": "system calls cannot be filtered (Linux on x86_64 or aarch64, with seccomp)",
}

_MIB = 1 << 20
_THREADS, _SPARE_THREADS = 64, 512
"""Threads that a process may have, and spare ones for other processes of the same user."""
_USERS = range(61184, 65520)
"""User ids that systems reserve for short-lived users; containers that map 65,536 users include them."""
_NUMBERS = itertools.count()

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """``folder`` is the only writable folder ("" for none); ``readable`` are readable paths with all they contain.

    ``uid`` is the user to switch to (``None``: stay), ``memory`` the limit of address space in bytes.
    """

    folder: str
    readable: Sequence[str]
    uid: int | None
    memory: int


def describe_layers(layers: Iterable[str]) -> str:
    """Return a description of layers for messages."""
    return ", ".join(description for layer, description in _DESCRIPTIONS.items() if layer in layers) or "nothing"


def missing_layers(layers: Iterable[str]) -> str:
    """Return why a required layer is missing, or ""."""
    return "; ".join(reason for layer, reason in _MISSING.items() if layer not in layers)


def own_user(reads: Path) -> int | None:
    """Return a user id for a confined process, another one at each call.

    ``None`` unless this process is root, and where other users cannot reach ``reads``, which the process must read.
    """
    if os.getuid() != 0 or not is_open_to_others(reads):
        return None
    return _USERS[(os.getpid() * 61 + next(_NUMBERS)) % len(_USERS)]


def is_open_to_others(folder: Path) -> bool:
    """Return whether other users may enter a folder and all the folders above it."""
    folder = folder.resolve()
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents))


def confine(bounds: Bounds, parent: int | None = None) -> list[str]:
    """Confine this process for good and return the names of the layers in force.

    The process must have one thread. If ``parent`` is given, the process ends with it (more exactly, with the thread
    that started it).
    """
    layers = []
    _limit(bounds)
    set_process(_PR_SET_NO_NEW_PRIVS, 1)
    # Without root, a new network namespace needs a new user namespace, which some kernels forbid.
    if _libc.unshare(_CLONE_NEWNET | _CLONE_NEWIPC | (_CLONE_NEWUSER if os.getuid() else 0)) == 0:
        layers.append("namespaces")
    if _landlock(sorted({*bounds.readable}), bounds.folder):
        layers.append("files")
    if bounds.uid is not None:
        os.setgroups([])
        os.setresgid(bounds.uid, bounds.uid, bounds.uid)
        os.setresuid(bounds.uid, bounds.uid, bounds.uid)
        layers.append("user")
    os.umask(0o077)
    os.chdir(bounds.folder or "/")
    os.environ["HOME"] = os.environ["TMPDIR"] = bounds.folder or "/nonexistent"
    tempfile.tempdir = None
    if parent is not None:
        die_with_parent(parent)
    if restrict_calls():
        layers.append("calls")
    return sorted(layers)


def libraries() -> list[str]:
    """Return the paths of the standard library, shared libraries and the system files that these read.

    Folders of installed packages are left out, because they may contain data.
    """
    standard = Path(os.__file__).parent
    folders = (Path(sys.base_prefix, "lib"), *map(Path, ("/lib", "/lib64", "/usr/lib", "/usr/lib64")))
    inside = [path for path in standard.iterdir() if path.name not in ("site-packages", "dist-packages")]
    for folder in folders:
        if folder.is_dir():
            inside += [path for path in folder.iterdir() if not path.name.startswith("python")]
    return [*map(str, inside), *_SYSTEM_FILES]


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that they can still be killed."""
    set_process(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Make the kernel end this process with its parent. Call it after a change of user, which would reset it."""
    set_process(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _limit(bounds: Bounds) -> None:
    limits = {
        resource.RLIMIT_AS: bounds.memory,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 256 * _MIB,
        resource.RLIMIT_NOFILE: 256,
    }
    # The limit counts all threads of the user; it does not apply to root.
    other_threads = _SPARE_THREADS + _threads_of(os.getuid()) if os.getuid() else 0
    limits[resource.RLIMIT_NPROC] = _THREADS + other_threads
    for kind, value in limits.items():
        _, hard = resource.getrlimit(kind)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


def _threads_of(uid: int) -> int:
    count = 0
    for process in os.scandir("/proc"):
        with suppress(OSError):  # it has ended meanwhile
            if process.name.isdigit() and process.stat().st_uid == uid:
                count += len(os.listdir(f"/proc/{process.name}/task"))
    return count


def _landlock(readable_paths: Sequence[str], writable: str) -> bool:
    """Forbid access to all other files; return whether the kernel supports it."""
    version = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    rights = [(1 << count) - 1 for count in _RIGHTS_BY_VERSION[min(version, max(_RIGHTS_BY_VERSION))]]
    attributes = struct.pack(f"={len(rights)}Q", *rights)
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    for path in readable_paths:
        _allow(ruleset, path, _READ_FILE | _READ_DIR)
    _allow(ruleset, "/dev/null", _READ_FILE | _WRITE_FILE)
    if writable:
        _allow(ruleset, writable, rights[0] & ~_EXECUTE)
    restricted = _libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return bool(restricted)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path needs no permission
    if not os.path.isdir(path):
        rights &= ~_READ_DIR
    _libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    os.close(descriptor)
