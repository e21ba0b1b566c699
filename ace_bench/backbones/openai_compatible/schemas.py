"""JSON schemas in the form that servers accept.

OpenAI's strict mode requires all properties, allows no others, and cannot express "anything"; servers that constrain
decoding by a grammar follow the schema either way. So a schema is sent as strict if strict mode can express it.
"""

from __future__ import annotations

import re
from typing import Any

from ace_bench.core.types import Record

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
