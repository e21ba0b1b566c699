"""Bounds on the open parts of a JSON schema, so that a weak model under a grammar stops writing.

Under a grammar, a weak model fills the first open string, list or number up to its token limit. With bounds even random
weights return readable replies.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ace_bench.core.settings import Count
from ace_bench.core.types import Record

_LARGEST = 10**9


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Most characters of a string and most items of a list; a schema's own bounds stay.

    Numbers are kept within a billion, objects to the properties they name. ``anything`` is the schema of values without
    a type; ``None`` makes them strings.
    """

    max_string: Count
    max_items: Count
    anything: Record | None = None

    def record(self) -> Record:
        """Return the bounds as a JSON object, for the identity of a backbone."""
        return asdict(self)

    def apply(self, schema: Record) -> Record:
        """Return the schema with every string, list and number in it bounded."""
        bounded: dict[str, Any] = self._node(schema)
        return bounded

    def _node(self, node: Any) -> Any:
        if not isinstance(node, dict) or not node.keys() & {"type", "anyOf", "enum", "const"}:
            return self._node(dict(self.anything)) if self.anything else self._node({"type": "string"})
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
