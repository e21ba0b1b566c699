"""The replies of ACE's roles (paper, figures 13 and 14), and how they are asked for and read.

Fields of replies have the official names and the order of the prompts, reasoning first: where decoding is constrained,
models write in this order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from ace_bench.core.backbones import Lm
from ace_bench.core.closed_sets import BULLETS, MARK, OPERATIONS, SECTIONS, one_of
from ace_bench.core.encoding import convert
from ace_bench.core.errors import RolloutFault
from ace_bench.core.prompts import RAW_REFLECTION
from ace_bench.core.replies import ask, describe_unreadable, parse
from ace_bench.core.types import Message, Record
from ace_bench.methods.base import CURATOR, REFLECTOR, RoleCall, ask_role, fault_event
from ace_bench.playbook.apply import KINDS, Limits, Operation, Tag, cut, reject
from ace_bench.playbook.bullets import COUNTERS, OTHERS
from ace_bench.playbook.playbook import Playbook


class BulletTag(msgspec.Struct, frozen=True):
    """The Reflector's verdict on one bullet. The schema names the verdicts; ``count_tags`` checks what comes."""

    id: Annotated[str, one_of(BULLETS)]
    tag: Annotated[str, msgspec.Meta(extra_json_schema={"enum": [*COUNTERS]})]


class ReflectorReply(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt teaches."""

    reasoning: str = ""
    error_identification: str = ""
    root_cause_analysis: str = ""
    correct_approach: str = ""
    key_insight: str
    bullet_tags: list[BulletTag] = []

    def as_text(self) -> str:
        """Return the reflection as text for the next rollout and the Curator."""
        parts = (
            ("Error", self.error_identification),
            ("Cause", self.root_cause_analysis),
            ("Correct approach", self.correct_approach),
            ("Key insight", self.key_insight),
        )
        return "\n".join(f"{label}: {text.strip()}" for label, text in parts if text.strip())


def _operation(kind: str, **fields: Any) -> dict[str, Any]:
    properties = {"type": {"type": "string", "enum": [kind], MARK: OPERATIONS}, **fields}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_TEXT = {"type": "string"}
_BULLET, _SECTION = ({"type": "string", MARK: name} for name in (BULLETS, SECTIONS))
_OPERATION = {
    "anyOf": [
        _operation("ADD", section=_SECTION, content=_TEXT),
        _operation("UPDATE", id=_BULLET, content=_TEXT),
        _operation("MERGE", ids={"type": "array", "items": _BULLET}, content=_TEXT),
        _operation("REMOVE", id=_BULLET),
        _operation("TAG", id=_BULLET, tag={"type": "string", "enum": [*COUNTERS]}),
    ]
}
"""The shape of one operation, for servers that constrain decoding; the parser of replies accepts more."""


class CuratorReply(msgspec.Struct, frozen=True, kw_only=True):
    """Operations as the model wrote them; ``parse_operations`` types and checks them one by one."""

    reasoning: str = ""
    operations: Annotated[list[Any], msgspec.Meta(extra_json_schema={"items": _OPERATION})]


def ask_for_operations(lm: Lm, messages: Sequence[Message], shown: Playbook, limits: Limits) -> CuratorReply:
    """Ask for operations on the bullets of a playbook that the prompt shows, within the limits."""
    sets: dict[str, Collection[str]] = {BULLETS: shown.bullet_ids, OPERATIONS: limits.kinds}
    if limits.unknown_section != "create":
        extra_sections = (OTHERS,) if limits.unknown_section == "others" else ()
        sets[SECTIONS] = (*shown.sections, *extra_sections)
    return ask(lm, messages, CuratorReply, sets=sets)


def parse_operations(raw: Sequence[Any]) -> tuple[tuple[Operation, ...], tuple[Record, ...]]:
    """Read a reply's operations, in order; each that cannot be read becomes an event with the reason.

    The type and a tag may be in any case, ``bullet_id`` is read in place of a missing ``id``, and counters may be in
    ``metadata`` (``{"helpful": 1}``). A TAG may have ``"tag": "helpful"``, which is one vote. Unknown fields are
    ignored. Counters are always votes to be added.
    """
    operations: list[Operation] = []
    rejected: list[Record] = []
    for item in raw:
        try:
            operations.append(_parse_operation(item))
        except ValueError as error:
            rejected.append(reject(item, str(error)))
    return tuple(operations), tuple(rejected)


def _parse_operation(item: Any) -> Operation:
    if not isinstance(item, Mapping):
        raise ValueError("an operation must be a JSON object")
    kind, metadata = item.get("type"), item.get("metadata") or {}
    if not isinstance(kind, str) or kind.strip().upper() not in KINDS:
        raise ValueError(f"unknown operation type {cut(kind)!r}; known are {', '.join(KINDS)}")
    if not isinstance(metadata, Mapping):
        raise ValueError("metadata must be an object of counters")
    votes = {name: source[name] for source in (item, metadata) for name in COUNTERS if name in source}
    if "tag" in item:
        tag = item["tag"].strip().lower() if isinstance(item["tag"], str) else ""
        if tag not in COUNTERS:
            raise ValueError(f"unknown tag {cut(item['tag'])!r}; known are {', '.join(COUNTERS)}")
        votes[tag] = 1
    bullet_id = {"id": item["bullet_id"]} if "bullet_id" in item else {}
    operation: Operation = convert({**bullet_id, **item, "type": kind.strip().upper(), "votes": votes}, Operation)
    if isinstance(operation, Tag) and not operation.votes.record():
        raise ValueError("a TAG must count something: helpful, harmful or neutral")
    return operation


class Lesson(NamedTuple):
    """A Reflector's reply: the lesson as text, and its tags, with an event where it could not be read."""

    text: str
    tags: Sequence[BulletTag]
    events: tuple[Record, ...] = ()


def ask_for_lesson(call: RoleCall[Playbook]) -> Lesson:
    """Ask the Reflector; a prompt set may want the reply as the model wrote it (``RAW_REFLECTION``).

    A reply that cannot be read is a lesson as it is where ``unreadable_replies=wrong``, as in the authors' code.
    """
    raw = call.arena.prompts.uses("generator", RAW_REFLECTION)

    def read(text: str, prompt: Sequence[Message]) -> Lesson:
        reply = parse(text, ReflectorReply, prompt)
        return Lesson(text if raw else reply.as_text(), reply.bullet_tags)

    known_bullets = call.playbook.index
    cited = [bullet for bullet in dict.fromkeys(call.rollout.attempt.cited) if bullet in known_bullets]
    try:
        return ask(call.lm, call.messages, ReflectorReply, read, sets={BULLETS: cited})
    except RolloutFault as error:
        if not (error.unreadable and call.arena.learns_unreadable):
            raise
        return Lesson(describe_unreadable(error), (), (fault_event(REFLECTOR, error.fault),))


class Delta(NamedTuple):
    """The Curator's operations, and events about what cannot be read."""

    operations: tuple[Operation, ...] = ()
    events: tuple[Record, ...] = ()

    @classmethod
    def parse(cls, reply: CuratorReply | None, events: Sequence[Record]) -> Delta:
        """Read the operations of a reply; those that cannot be read are events."""
        operations, rejected = parse_operations(() if reply is None else reply.operations)
        return cls(operations, (*rejected, *events))


def ask_curator(call: RoleCall[Playbook], limits: Limits) -> Delta:
    """Ask the Curator for operations within the limits; none if the model fails."""

    def send(shown: RoleCall[Playbook]) -> CuratorReply:
        return ask_for_operations(shown.lm, shown.messages, shown.playbook, limits)

    return Delta.parse(*ask_role(CURATOR, call, send))
