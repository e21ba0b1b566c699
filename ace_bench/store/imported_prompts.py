"""Prompt sets that ``ace-bench prompts`` made of the authors' code: where files come from, and if they are whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ace_bench.core.errors import ConfigError

RECORD = "sources.json"
"""Its file in the folder of a set."""
UNKNOWN = "unknown"
"""The commit of a checkout without ``.git``."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A checkout: ``repository`` is its owner and name, ``read`` holds the SHA-256 of each file that was read."""

    repository: str
    commit: str
    licence: str
    read: dict[str, str]


class ImportedSet(msgspec.Struct, frozen=True, kw_only=True):
    """The checkouts of a set, and the SHA-256 of each file that was made from them."""

    sources: tuple[Source, ...]
    files: dict[str, str]

    @property
    def commits(self) -> Mapping[str, str]:
        """The commit of each repository."""
        return {source.repository: source.commit for source in self.sources}


def checksum(text: str) -> str:
    """Return the SHA-256 (hex) of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_imported(folder: Path) -> ImportedSet | None:
    """Return what is recorded of a set, ``None`` for one that was not imported.

    Raises ``ConfigError`` if a file is missing, was changed or cannot be read.
    """
    if not (folder / RECORD).exists():
        return None
    name = RECORD
    try:
        found = msgspec.json.decode((folder / RECORD).read_bytes(), type=ImportedSet)
        for name, expected in found.files.items():
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected:
                raise ConfigError(f"prompts={folder}: {name} has changed since it was imported: import the set anew")
    except (OSError, msgspec.DecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"prompts={folder}: {name} cannot be read ({reason}): import the set anew") from error
    return found
