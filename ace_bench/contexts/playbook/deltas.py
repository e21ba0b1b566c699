"""Typed operations on a playbook, and their parser.

ADD, UPDATE, TAG and REMOVE come from richer descriptions of ACE, MERGE from the paper's merging of bullets (section
3.2); the official code applies ADD only and ignores the others silently. The parser accepts these deviations and
rejects all others with a reason:

- the type and a tag may be in any case;
- ``bullet_id`` is read where there is no ``id``;
- counters may be in ``metadata`` (``{"helpful": 1}``) instead of with the other fields;
- a TAG may have ``"tag": "helpful"``, which is one vote;
- unknown fields are ignored.

Counters in an operation are always votes to be added, never new totals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import msgspec

from ace_bench.contexts.playbook.bullets import tidy
from ace_bench.core.encoding import converted
from ace_bench.core.types import Record

COUNTERS = ("helpful", "harmful", "neutral")
Kind = Literal["ADD", "UPDATE", "MERGE", "REMOVE", "TAG"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All operation types, in the order prompts list them."""

MAX_VOTES = 100
"""Most votes that one operation may add to a counter, so that one reply cannot decide over a bullet for good."""

_LONGEST_ECHO = 200

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_VOTES)]


class Votes(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation adds to a bullet's counters."""

    helpful: _Count = 0
    harmful: _Count = 0
    neutral: _Count = 0

    def record(self) -> Record:
        """The votes that are not zero."""
        return {name: votes for name in COUNTERS if (votes := getattr(self, name))}

    def __bool__(self) -> bool:
        """Whether there is any vote."""
        return bool(self.helpful or self.harmful or self.neutral)


class _Operation(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.upper):
    @property
    def kind(self) -> str:
        """The operation's type as a reply names it."""
        return str(self.__struct_config__.tag)


class Add(_Operation, frozen=True, kw_only=True):
    """Add a bullet; its id is assigned."""

    section: str
    content: str
    votes: Votes = Votes()


class Update(_Operation, frozen=True, kw_only=True):
    """Replace a bullet's content, or add to its counters, or both; section and id stay."""

    id: str
    content: str | None = None
    votes: Votes = Votes()


class Merge(_Operation, frozen=True, kw_only=True):
    """Join bullets into the oldest of them; without ``content`` the oldest one's is kept."""

    ids: tuple[str, ...]
    content: str | None = None


class Remove(_Operation, frozen=True, kw_only=True):
    """Drop a bullet."""

    id: str


class Tag(_Operation, frozen=True, kw_only=True):
    """Add votes to a bullet's counters (paper, figure 13: the reflector's bullet tags)."""

    id: str
    votes: Votes


Operation = Add | Update | Merge | Remove | Tag


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """An operation that was not applied (long texts cut), and why."""

    operation: Record
    reason: str

    def record(self) -> Record:
        """Return an event for the journal."""
        return {"event": "rejected", "operation": self.operation, "reason": self.reason}


def parse_operations(raw: Sequence[Any]) -> tuple[tuple[Operation, ...], tuple[Rejection, ...]]:
    """Read a reply's list of operations; every item ends up in exactly one of the two results, in order."""
    operations: list[Operation] = []
    rejections: list[Rejection] = []
    for item in raw:
        try:
            operations.append(_parsed(item))
        except ValueError as error:
            rejections.append(Rejection(operation=echo(item), reason=str(error)))
    return tuple(operations), tuple(rejections)


def refuse_unseen(
    operations: Sequence[Operation], seen: Collection[str]
) -> tuple[tuple[Operation, ...], tuple[Rejection, ...]]:
    """Split off the operations on bullets whose ids are not among those ``seen``: they were proposed blindly."""
    kept: list[Operation] = []
    refused: list[Rejection] = []
    for operation in operations:
        named = operation.ids if isinstance(operation, Merge) else () if isinstance(operation, Add) else (operation.id,)
        unseen = [bullet_id for bullet_id in named if bullet_id not in seen]
        if unseen:
            reason = f"the Curator was not shown bullet {unseen[0][:80]!r}"
            refused.append(Rejection(operation=echo(operation), reason=reason))
        else:
            kept.append(operation)
    return tuple(kept), tuple(refused)


def echo(item: Any) -> Record:
    """Return an operation for an event: a flat JSON object with long texts cut."""
    if isinstance(item, msgspec.Struct):
        item = msgspec.to_builtins(item)
    if not isinstance(item, Mapping):
        item = {"type": item}
    return {_cut(str(name)): _cut(value) for name, value in item.items()}


def _parsed(item: Any) -> Operation:
    if not isinstance(item, Mapping):
        raise ValueError("an operation must be a JSON object")
    kind = item.get("type")
    if not isinstance(kind, str) or kind.strip().upper() not in KINDS:
        raise ValueError(f"unknown operation type {_cut(kind)!r}; known are {', '.join(KINDS)}")
    fields = {**item, "type": kind.strip().upper(), "votes": _votes(item)}
    if "id" not in item and "bullet_id" in item:
        fields["id"] = item["bullet_id"]
    operation: Operation = converted(fields, Operation)
    if isinstance(operation, Tag) and not operation.votes:
        raise ValueError("a TAG must count something: helpful, harmful or neutral")
    return operation


def _votes(item: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = item.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise ValueError("metadata must be an object of counters")
    votes = {name: source[name] for source in (item, metadata) for name in COUNTERS if name in source}
    if "tag" in item:
        votes[_tag(item["tag"])] = 1
    return votes


def _tag(tag: Any) -> str:
    name = tag.strip().lower() if isinstance(tag, str) else ""
    if name not in COUNTERS:
        raise ValueError(f"unknown tag {_cut(tag)!r}; known are {', '.join(COUNTERS)}")
    return name


def _cut(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = tidy(value if isinstance(value, str) else repr(value))
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}..."
