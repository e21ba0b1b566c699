"""Cache folders shared by all runs of a user; their contents can be made again."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from ace_bench.store.files import replace_files, writing

CACHE_VARIABLE = "ACE_BENCH_CACHE"
_SEAL = sha256().digest_size
"""Bytes of the checksum in front of a sealed file."""


def cache_folder(name: str) -> Path:
    """Return the folder for caches called ``name``; it need not exist yet.

    The root is ``$ACE_BENCH_CACHE``, else ``$XDG_CACHE_HOME/ace-bench``, else ``~/.cache/ace-bench``.
    """
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own).expanduser() / name
    shared = os.environ.get("XDG_CACHE_HOME")
    root = Path(shared).expanduser() if shared else Path.home() / ".cache"
    return root / "ace-bench" / name


def write_cached(path: Path, content: bytes) -> None:
    """Write a file of a cache atomically, since other runs may read it; raises ``FileUnwritable``."""
    with writing(path, elsewhere=f"set {CACHE_VARIABLE} to a folder"):
        replace_files({path: content})


def read_sealed(path: Path) -> bytes | None:
    """Return what ``write_sealed`` wrote; ``None`` where it is missing or damaged, since others may write it, too."""
    try:
        sealed = path.read_bytes()
    except OSError:
        return None
    content = sealed[_SEAL:]
    return content if content and sealed[:_SEAL] == sha256(content).digest() else None


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file of a cache with its checksum; raises ``FileUnwritable``."""
    write_cached(path, sha256(content).digest() + content)
