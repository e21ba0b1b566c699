"""Entries of a playbook that a reflector without a model writes: what happened, and how it went."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage

from ace_bench.contexts.playbook.apply import Limits, apply
from ace_bench.contexts.playbook.bullets import clean, comparable
from ace_bench.contexts.playbook.deltas import Add, Operation, Tag, Votes
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.prompts import estimate_tokens

Outcome = Literal["success", "failure", "neutral"]
_COUNTERS = {"success": "helpful", "failure": "harmful", "neutral": "neutral"}
_LONGEST = 240
_LIMITS = Limits(kinds=("ADD", "TAG"))


@dataclass(frozen=True, kw_only=True)
class DeltaEntry:
    """One observation: the playbook section it belongs to (``category``), its text, and how it went."""

    category: str
    content: str
    outcome: Outcome = "neutral"


Reflect = Callable[[AIMessage], Iterable[Any]]
"""Returns what one reply teaches: values with the fields of ``DeltaEntry``."""
Refine = Callable[[Playbook, Collection[str], int], Playbook]
"""Returns a playbook refined at a step, given the ids of its bullets with new content."""


def observe(latest: AIMessage) -> Sequence[DeltaEntry]:
    """Note a reply: its tool calls, or else its first 240 characters.

    It calls no model and never says that something succeeded or failed, because a reply alone does not show it.
    """
    if latest.tool_calls:
        said = f"Called {'; '.join(calls_in_text(latest))}."
        return [DeltaEntry(category="tool_use", content=_cut(said))]
    said = str(latest.text).strip()
    return [DeltaEntry(category="final_answer", content=_cut(said))] if said else []


def calls_in_text(message: AIMessage) -> list[str]:
    """Return a reply's tool calls as ``name(key='value')``."""
    return [
        f"{call['name']}({', '.join(f'{k}={v!r}' for k, v in call['args'].items())})" for call in message.tool_calls
    ]


def entry_record(entry: Any) -> dict[str, str]:
    """Return an entry as JSON; raises ``ValueError`` for what has not the fields of ``DeltaEntry``."""
    try:
        record = {"category": str(entry.category), "content": str(entry.content), "outcome": str(entry.outcome)}
    except AttributeError as error:
        raise ValueError(f"reflect must return DeltaEntry values, not {type(entry).__name__}") from error
    if record["outcome"] not in _COUNTERS:
        raise ValueError(f"the outcome of an entry is one of {', '.join(_COUNTERS)}, not {record['outcome']!r}")
    return record


def with_entries(playbook: Playbook, entries: Sequence[Mapping[str, str]], *, step: int, refine: Refine) -> Playbook:
    """Add entries and refine: one that the playbook holds already adds its outcome to that bullet's counters."""
    touched: list[str] = []
    for entry in entries:
        playbook = _with_section(playbook, entry["category"])
        twin = playbook.index.saying(comparable(clean(entry["content"])))
        votes = Votes(**{_COUNTERS[entry["outcome"]]: 1})
        operation: Operation = Tag(id=twin, votes=votes) if twin else _addition(entry, votes)
        applied = apply(playbook, [operation], step=step, source="", limits=_LIMITS, count=estimate_tokens)
        playbook = applied.playbook
        touched += applied.touched
    return refine(playbook, touched, step)


def _addition(entry: Mapping[str, str], votes: Votes) -> Add:
    return Add(section=entry["category"], content=entry["content"], votes=votes)


def _with_section(playbook: Playbook, name: str) -> Playbook:
    sections = Playbook.start([*playbook.sections, name]).sections
    return playbook if sections == playbook.sections else playbook.having(sections=sections)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
