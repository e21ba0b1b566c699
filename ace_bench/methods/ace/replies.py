"""What ACE's roles return (paper, figures 13 and 14); field names are the official ones.

Fields stand in the order of the prompts, reasoning first: where decoding is constrained, models write in this order.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec


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

    def advice(self) -> str:
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
