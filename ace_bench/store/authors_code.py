"""The authors' code: the prompt sets that are made of it, and the state of it that ``protocol=official`` follows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.method import Method
from ace_bench.core.task import Task
from ace_bench.store.environment import git_state

RECORD = "sources.json"
"""Its file in the folder of a set."""
UNKNOWN = "unknown"
"""The commit of a checkout without ``.git``."""
FINANCE, APPWORLD = "ace-agent/ace@ba78d34", "ace-agent/ace-appworld@748a9dc"
"""The states of the authors' code that are followed, as OWNER/NAME@COMMIT."""
_SAME_CALLS = {"ba78d34": ("d241ef8", "bcb7cea"), "bcb7cea": ("ba78d34", "d241ef8")}
"""Other commits by the one that is followed, with the same prompts and, for what both have, the same calls.

``make test-official`` compares.
"""
_AGENT = "agent"
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
    """Return where the prompts of a checkout come from, and the text of its licence; raises ``DataError``."""
    state = git_state(checkout) if (checkout / ".git").exists() else None
    commit = f"{state['commit']}{', with changes' * state['dirty']}" if state and state["commit"] else UNKNOWN
    try:
        texts = [path.read_text("utf-8", errors="replace") for path in sorted(checkout.glob("LICEN[CS]E*"))[:1]]
    except OSError as error:
        raise DataError(f"{error.filename} cannot be read: {error.strerror}") from error
    names = [name for marker, name in _LICENCES.items() if marker in "".join(texts)]
    licence = (names or ["of its own" if texts else "none found"])[0]
    return Source(repository=repository, commit=commit, licence=licence), next(iter(texts), None)


def is_at(commit: str, followed: str) -> bool:
    """Whether a checkout without changes is at the commit that begins with ``followed``, or at one with its calls."""
    return commit.startswith((followed, *_SAME_CALLS.get(followed, ()))) and commit.isalnum()


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
        record = msgspec.json.decode((folder / RECORD).read_bytes(), type=ImportedSet)
        for name, expected in record.files.items():
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected:
                raise ConfigError(f"prompts={folder}: {name} has changed since it was imported: import the set anew")
    except (OSError, msgspec.DecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"prompts={folder}: {name} cannot be read ({reason}): import the set anew") from error
    return record


def state_followed(method: Method[Any], task: Task) -> str:
    """Return the repository and commit that a run follows, as OWNER/NAME@COMMIT."""
    state: str = getattr(method, "follows", "")
    return state or (APPWORLD if task.prompt_group == _AGENT else FINANCE)


def check_commit(commit: str, state: str) -> str:
    """Return the state that a commit names, the run's or another known one; else raise ``ConfigError``."""
    states = {known: known.partition("@")[2] for known in (FINANCE, APPWORLD, state)}
    exact = (known for known, followed in states.items() if commit.startswith(followed) and commit.isalnum())
    alike = (known for known, followed in states.items() if is_at(commit, followed))
    matching = next(chain(exact, alike), None)
    if matching is None:
        others = chain.from_iterable(_SAME_CALLS.get(followed, ()) for followed in states.values())
        known_states = ", ".join(dict.fromkeys([*states, *others]))
        raise ConfigError(f"protocol=official@{commit}: there is no such state; known are {known_states}")
    return matching


def notes_on_state(state: str, commit: str | None, imported: Mapping[str, str]) -> Iterator[str]:
    """Say what differs from the state that a run follows: the ``commit`` named, or the commit of imported prompts.

    ``imported`` are commits by repository.
    """
    repository, _, followed = state.partition("@")
    if commit is not None and (named_state := check_commit(commit, state)) != state:
        yield f"protocol=official@{commit} names a state of {named_state.partition('@')[0]}; this run follows {state}."
    imported_state = imported.get(repository, followed)
    if not is_at(imported_state, followed):
        imported_state = "an unknown commit" if imported_state == UNKNOWN else imported_state
        yield f"The imported prompts are of {repository} at {imported_state}; protocol=official follows {followed}."
