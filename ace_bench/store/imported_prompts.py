"""Prompt sets that ``ace-bench prompts`` made of the authors' code: where files come from, and if they are whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ace_bench.core.errors import ConfigError
from ace_bench.store.environment import git_state

RECORD = "sources.json"
"""Its file in the folder of a set."""
UNKNOWN = "unknown"
"""The commit of a checkout without ``.git``."""
FINANCE, APPWORLD = "ace-agent/ace@ba78d34", "ace-agent/ace-appworld@748a9dc"
"""The states of the authors' code that are followed, as OWNER/NAME@COMMIT."""
_LICENCES = {"Apache License": "Apache-2.0", "MIT License": "MIT"}


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A checkout; ``repository`` is its owner and name."""

    repository: str
    commit: str
    licence: str


class ImportedSet(msgspec.Struct, frozen=True, kw_only=True):
    """The checkouts of a set, and the SHA-256 of each file that was made from them."""

    sources: tuple[Source, ...]
    files: dict[str, str]

    @property
    def commits(self) -> Mapping[str, str]:
        """The commit of each repository."""
        return {source.repository: source.commit for source in self.sources}


def describe_checkout(checkout: Path, repository: str) -> tuple[Source, str | None]:
    """Return where the prompts of a checkout come from, and the text of its licence."""
    state = git_state(checkout) if (checkout / ".git").exists() else None
    commit = UNKNOWN if state is None else f"{state['commit']}{', with changes' * state['dirty']}"
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(checkout.glob("LICEN[CS]E*"))[:1]]
    names = [name for words, name in _LICENCES.items() if words in "".join(texts)]
    licence = (names or ["of its own" if texts else "none found"])[0]
    return Source(repository=repository, commit=commit, licence=licence), next(iter(texts), None)


def is_at(commit: str, followed: str) -> bool:
    """Whether the commit of a checkout without changes is the one that begins with ``followed``."""
    return commit.startswith(followed) and commit.isalnum()


def with_record(files: Mapping[str, str], sources: Sequence[Source]) -> dict[str, str]:
    """Return the files of a set with the record of their sources."""
    checksums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    record = msgspec.json.encode(ImportedSet(sources=tuple(sources), files=checksums))
    return {**files, RECORD: f"{msgspec.json.format(record).decode()}\n"}


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
