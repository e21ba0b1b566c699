"""What a process runs on: commit, packages, host. It may explain a difference between two runs, or within one."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ace_bench.core.resources import import_folder

_NAME = "ace-bench"
_PACKAGES = (
    *(_NAME, "dspy", "gepa", "httpx2", "hydra-core", "jinja2", "msgspec", "numpy", "sentence-transformers"),
    "sqlglot",
)
_VERSION = re.compile(r"^Version:(.+)$", re.MULTILINE)
_LIMIT_S = 5.0


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
    found = _VERSION.search(package.read_text("METADATA") or "")
    return found[1].strip() if found else package.version


def _commits() -> dict[str, dict[str, Any] | None]:
    """Return the commits of the code and, where it is another checkout, of the current folder.

    ``dirty`` tells whether files under version control differ from the commit. An installed copy knows its commit only
    if pip took it from a repository.
    """
    package = (import_folder() / "ace_bench").resolve()
    # A virtual environment may lie in the checkout of another project.
    init = _git(package, "ls-files", "--error-unmatch", "--full-name", "__init__.py")
    root = None if init is None else (package / "__init__.py").parents[init.count("/")]
    code = _installed_commit() if init is None else git_state(package)
    here = Path.cwd()
    # Most runs are started in the checkout's top folder, which needs no question.
    elsewhere = here != root and _git(here, "rev-parse", "--show-toplevel") not in (None, str(root))
    return {"code": code, "folder": git_state(here) if elsewhere else None}


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return commit and whether files differ from it (``dirty``); ``None`` where git knows no such checkout."""
    status = _git(folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    if status is None:
        return None
    heads = [line.split()[-1] for line in status.splitlines() if line.startswith("# branch.oid ")]
    commit = heads[0] if heads and heads[0] != "(initial)" else None
    return {"commit": commit, "dirty": any(not line.startswith("#") for line in status.splitlines())}


def _installed_commit() -> dict[str, Any] | None:
    try:
        source = json.loads(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return None
    commit = source.get("vcs_info", {}).get("commit_id")
    return None if commit is None else {"commit": commit, "dirty": None}


def _git(folder: Path, *words: str) -> str | None:
    # A status must neither write an index nor start the monitor that a repository names.
    return _output(["git", "-C", str(folder), "--no-optional-locks", "-c", "core.fsmonitor=false", *words])


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
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(errors="replace"), re.MULTILINE)
        if found:
            return found[1].strip()
    return _output(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.processor() or None


def _output(command: Sequence[str]) -> str | None:
    """Return what a program prints; ``None`` if it is missing, fails or takes too long."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
