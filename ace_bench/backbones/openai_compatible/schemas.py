"""JSON schemas in the form that servers accept, and bounds on their open parts.

OpenAI's strict mode requires all properties, allows no others, and cannot express "anything"; servers that constrain
decoding by a grammar follow the schema either way. So a schema is sent as strict if strict mode can express it.

Under a grammar, a weak model fills the first open string, list or number up to its token limit: bounds make it stop.
They are sent only where a setting asks for them, because they slow servers down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ace_bench.core.settings import Count
from ace_bench.core.types import Record

_LARGEST = 10**9


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Most characters of a string and most items of a list; a schema's own bounds stay.

    Numbers are kept within a billion, objects to the properties they name. ``anything`` is the schema of values without
    a type; ``None`` makes them strings. With such bounds even random weights return readable replies.
    """

    max_string: Count
    max_items: Count
    anything: Record | None = None

    def apply(self, schema: Record) -> Record:
        """Return the schema with every string, list and number in it bounded."""
        bounded: dict[str, Any] = self._node(schema)
        return bounded

    def _node(self, node: Any) -> Any:
        if not isinstance(node, dict) or not node.keys() & {"type", "anyOf", "enum", "const"}:
            return self._node(dict(self.anything) if self.anything else {"type": "string"})
        bounded = {**self._limits(node), **node}
        if node.get("type") == "array":
            bounded["items"] = self._node(node.get("items"))
        if "anyOf" in node:
            bounded["anyOf"] = [self._node(part) for part in node["anyOf"]]
        if "properties" in node:
            bounded["properties"] = {name: self._node(part) for name, part in node["properties"].items()}
        return bounded

    def _limits(self, node: Record) -> Record:
        kind = node.get("type")
        if kind == "string" and "enum" not in node:
            return {"maxLength": self.max_string}
        if kind == "array":
            return {"maxItems": self.max_items}
        if kind in ("integer", "number"):
            return {"minimum": -_LARGEST, "maximum": _LARGEST}
        return {"additionalProperties": False} if kind == "object" else {}


_NOTES = ("title", "description", "default")
"""Documentation for developers; it is not sent, because the prompt instructs the model."""


def response_format(schema: Record | None, structured: str) -> Record | None:
    """Return the ``response_format`` of a request, ``None`` to send none."""
    if schema is None or structured == "none":
        return None
    if structured == "json_object":
        return {"type": "json_object"}
    if structured == "json_object_schema":
        return {"type": "json_object", "schema": _send(schema, True)}
    strict = _complete(schema)
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", str(schema.get("title") or "reply"))[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "strict": strict, "schema": _send(schema, strict)}}


def _complete(node: Any) -> bool:
    """Whether every part of a schema has a type."""
    if not isinstance(node, dict) or not node.keys() & {"type", "anyOf", "enum", "const"}:
        return False
    if node.get("type") == "object":
        return "properties" in node and all(map(_complete, node["properties"].values()))
    if node.get("type") == "array":
        return _complete(node.get("items"))
    return all(map(_complete, node.get("anyOf", ())))


def _send(node: Any, strict: bool) -> Any:
    if not isinstance(node, dict):
        return node
    sent = {key: value for key, value in node.items() if key not in _NOTES}
    if "properties" in sent:
        sent["properties"] = {name: _send(part, strict) for name, part in sent["properties"].items()}
        if strict:
            sent |= {"required": list(sent["properties"]), "additionalProperties": False}
    if "items" in sent:
        sent["items"] = _send(sent["items"], strict)
    if "anyOf" in sent:
        sent["anyOf"] = [_send(part, strict) for part in sent["anyOf"]]
    return sent
