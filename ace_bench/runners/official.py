"""Which state of the authors' code ``protocol=official`` follows, and whether a run's prompts come from that state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Method
from ace_bench.core.task import Task
from ace_bench.store.imported_prompts import APPWORLD, FINANCE, UNKNOWN, is_at

_OFFICIAL = "protocol=official"
_AGENT = "agent"


def with_commit_apart(words: Sequence[str]) -> list[str]:
    """Write ``protocol=official@COMMIT`` as two settings: the commit is checked, the option is that of the protocol."""
    apart: list[str] = []
    for word in words:
        protocol, at, commit = word.partition("@")
        apart += [protocol, f"official_commit='{commit}'"] if at and protocol == _OFFICIAL else [word]
    return apart


def state_followed(method: Method[Any], task: Task) -> str:
    """Return the repository and commit that a run follows, as OWNER/NAME@COMMIT."""
    state: str = getattr(method, "follows", "")
    return state or (APPWORLD if task.prompt_group == _AGENT else FINANCE)


def notes_on_state(state: str, commit: str | None, imported: Mapping[str, str]) -> Iterator[str]:
    """Say what differs from the state that a run follows: the ``commit`` that was named, or that of imported prompts.

    Raises ``ConfigError`` for a commit that is not known. ``imported`` are commits by repository.
    """
    repository, _, followed = state.partition("@")
    if commit is not None:
        known = dict.fromkeys((FINANCE, APPWORLD, state))
        named = next((one for one in known if commit.startswith(one.partition("@")[2])), None)
        if named is None:
            raise ConfigError(f"protocol=official@{commit}: there is no such state; known are {', '.join(known)}")
        if named != state:
            yield f"protocol=official@{commit} names a state of {named.partition('@')[0]}; this run follows {state}."
    theirs = imported.get(repository, followed)
    if not is_at(theirs, followed):
        theirs = "an unknown commit" if theirs == UNKNOWN else theirs
        yield f"The imported prompts are of {repository} at {theirs}; protocol=official follows {followed}."
