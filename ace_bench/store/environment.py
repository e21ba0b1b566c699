"""What a process runs on: commit, packages, host. It may explain a difference between two runs, or within one."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ace_bench.core.resources import import_folder

_NAME = "ace-bench"
_PACKAGES = (
    *(_NAME, "dspy", "genai-prices", "gepa", "hydra-core", "jinja2", "msgspec", "numpy"),
    *("sentence-transformers", "sqlglot"),
)
_VERSION = re.compile(r"^Version:(.+)$", re.MULTILINE)
_LIMIT_S = 5.0
_LARGE = 1 << 26
"""Bytes of a file of which only the size is compared."""
_LINK = "120000"
"""How git calls a symbolic link."""


def describe_environment() -> dict[str, Any]:
    """Return Python, platform, versions of the packages that affect results (if installed), commits and host.

    What cannot be found out is ``None``. There is no host name, user name or address of a repository among it.
    """
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _versions(),
        "git": _commits(),
        "host": _host(),
    }


def _versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = _version(metadata.distribution(name))
    return versions


def _version(package: metadata.Distribution) -> str:
    # Python parses a package's description as an e-mail, which takes three times as long.
    match = _VERSION.search(package.read_text("METADATA") or "")
    return match[1].strip() if match else package.version


def _commits() -> dict[str, dict[str, Any] | None]:
    """Return the commits of the code and, where it is another checkout, of the current folder.

    ``dirty`` tells whether files under version control differ from the commit. An installed copy knows its commit only
    if pip took it from a repository.
    """
    root, code = _code()
    current = Path.cwd()
    # Most runs are started in the checkout's top folder, which needs no question.
    elsewhere = current != root and _git(current, "rev-parse", "--show-toplevel") not in (None, str(root))
    return {"code": code, "folder": git_state(current) if elsewhere else None}


@cache
def _code() -> tuple[Path | None, dict[str, Any] | None]:
    """Return the checkout of the code, if it is in one, and its state. A process runs the code that it has loaded."""
    package = (import_folder() / "ace_bench").resolve()
    # A virtual environment may lie in the checkout of another project.
    init = _git(package, "ls-files", "--error-unmatch", "--full-name", "__init__.py")
    if init is None:
        return None, _installed_commit()
    return (package / "__init__.py").parents[init.count("/")], git_state(package)


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return commit and whether files differ from it (``dirty``); ``None`` where git knows no such checkout.

    The checkout may be a stranger's: ``git status`` would run the filters that its configuration names, so files are
    compared here, byte by byte, very large ones by their size. A file that a filter changes, as Git LFS does,
    therefore differs.
    """
    root = _git(folder, "rev-parse", "--show-toplevel")
    if root is None:
        return None
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if commit is None:
        return {"commit": None, "dirty": False}
    tree = _git(Path(root), "ls-tree", "-r", "-l", "-z", commit)
    return {"commit": commit, "dirty": None if tree is None else _any_differs(root, tree.split("\0"))}


def _any_differs(root: str, lines: Sequence[str]) -> bool | None:
    """Whether a file of a tree was changed, ``None`` if that takes too long to find out."""
    deadline = time.monotonic() + _LIMIT_S
    for line in lines:
        if time.monotonic() > deadline:
            return None
        if _differs(root, line):
            return True
    return False


def _differs(root: str, line: str) -> bool:
    """Whether a file is not the one of a line of ``git ls-tree -l``."""
    about, _, name = line.partition("\t")
    mode, kind, indexed, size = about.split() if name else ("", "", "", "")
    if kind != "blob":  # the end of the list, or the checkout of another repository
        return False
    path = os.path.join(root, name)
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode) != (mode == _LINK) or str(status.st_size) != size:
            return True
        if status.st_size > _LARGE:
            return False
        if not stat.S_ISREG(status.st_mode):
            content = os.fsencode(os.readlink(path))
        else:
            with open(path, "rb") as file:
                content = file.read()
    except (OSError, ValueError):
        return True
    make = hashlib.sha1 if len(indexed) == hashlib.sha1().digest_size * 2 else hashlib.sha256
    return make(f"blob {len(content)}\0".encode() + content).hexdigest() != indexed


def _installed_commit() -> dict[str, Any] | None:
    try:
        source = json.loads(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return None
    commit = source.get("vcs_info", {}).get("commit_id")
    return None if commit is None else {"commit": commit, "dirty": None}


def _git(folder: Path, *words: str) -> str | None:
    # A checkout's own configuration may name programs: of these no question here starts one. What lacks an object is
    # not fetched, and variables that point to another checkout do not count.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    return _output(["git", "-C", str(folder), "-c", "core.fsmonitor=false", *words], {**environment, **quiet})


@cache
def _host() -> dict[str, Any]:
    """Return processor, number of usable cores, memory in GiB and GPUs (``None`` without ``nvidia-smi``).

    ``id`` is a hash of the host's name: it shows which processes shared a machine without naming it.
    """
    gpus, memory = _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]), None
    with suppress(ValueError, OSError):  # some systems do not tell it
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return {
        "id": hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest(),
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": memory,
        "gpus": None if gpus is None else gpus.splitlines(),
    }


def _processor() -> str | None:
    with suppress(OSError):  # only Linux has it
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(errors="replace"), re.MULTILINE)
        if match:
            return match[1].strip()
    return _output(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.processor() or None


def _output(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str | None:
    """Return what a program prints; ``None`` if it is missing, fails or takes too long."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=True,
            errors="surrogateescape",
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
