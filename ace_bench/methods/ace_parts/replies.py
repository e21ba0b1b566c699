"""What ACE's roles return (paper, figures 13 and 14); field names are the official ones.

Fields stand in the order of the prompts, reasoning first: where decoding is constrained, models write in this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from ace_bench.core.backbones import Lm
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import Arena
from ace_bench.core.prompts import RAW_REFLECTION
from ace_bench.core.replies import ask, parse, shown_unreadable
from ace_bench.core.types import Message, Record
from ace_bench.methods.role_calls import REFLECTOR, fault_event


class BulletTag(msgspec.Struct, frozen=True):
    """The Reflector's verdict on one bullet."""

    id: str
    tag: str


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
    properties = {"type": {"type": "string", "enum": [kind]}, **fields}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_TEXT = {"type": "string"}
_OPERATION = {
    "anyOf": [
        _operation("ADD", section=_TEXT, content=_TEXT),
        _operation("UPDATE", id=_TEXT, content=_TEXT),
        _operation("MERGE", ids={"type": "array", "items": _TEXT}, content=_TEXT),
        _operation("REMOVE", id=_TEXT),
        _operation("TAG", id=_TEXT, tag={"type": "string", "enum": ["helpful", "harmful", "neutral"]}),
    ]
}
"""The shape of one operation, for servers that constrain decoding; the parser of replies accepts more."""


class CuratorReply(msgspec.Struct, frozen=True, kw_only=True):
    """Operations as the model wrote them; the contexts package types and checks them one by one."""

    reasoning: str = ""
    operations: Annotated[list[Any], msgspec.Meta(extra_json_schema={"items": _OPERATION})]


class RewriterReply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole new playbook: the ablation without incremental updates (paper, A.5)."""

    reasoning: str = ""
    playbook: str


class MergerReply(msgspec.Struct, frozen=True):
    """The wording of a merged bullet."""

    content: str


class Lesson(NamedTuple):
    """A Reflector's reply: the lesson as text, and its tags, with an event where it could not be read."""

    text: str
    tags: Sequence[BulletTag]
    events: tuple[Record, ...] = ()


def ask_for_lesson(lm: Lm, messages: Sequence[Message], arena: Arena) -> Lesson:
    """Ask the Reflector; a prompt set may want the reply as the model wrote it (``RAW_REFLECTION``).

    A reply that cannot be read is a lesson as it is where ``unreadable_replies=wrong``, as in the authors' code.
    """
    raw = arena.prompts.uses("generator", RAW_REFLECTION)

    def read(text: str) -> Lesson:
        reply = parse(text, ReflectorReply)
        return Lesson(text if raw else reply.as_text(), reply.bullet_tags)

    try:
        return ask(lm, messages, ReflectorReply, read)
    except RolloutFault as error:
        if not (error.unreadable and arena.learns_unreadable):
            raise
        return Lesson(shown_unreadable(error), (), (fault_event(REFLECTOR, error.fault),))


def ask_for_operations(lm: Lm, messages: Sequence[Message]) -> list[Any]:
    """Ask the Curator; return the operations as its reply holds them."""
    return ask(lm, messages, CuratorReply).operations
