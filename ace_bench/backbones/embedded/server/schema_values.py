"""Values that obey a JSON schema, built from what the reader says.

``response_format`` and strict tools promise a client such values. What the reader says is kept wherever it fits:
its JSON as a whole if it obeys the schema already, else its text in strings, its numbers in numbers, the option that
it names in an ``enum``. A schema with keywords that are not known here is refused, never ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ace_bench.backbones.embedded.server.requests import BadRequest
from ace_bench.core.types import Record

_READ = "$ref allOf anyOf oneOf const enum type properties required additionalProperties items minItems maxItems"
_KNOWN = frozenset(
    [*_READ.split(), "minimum", "maximum", "maxLength", "$defs", "definitions", "$schema", "$id", "title"]
)
_KNOWN |= {"description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
_DEEP = 4
"""The depth from which only what is required is made, so that recursive schemas end."""
_MOST_VALUES = 10_000
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


def obey(text: str, schema: Record) -> str:
    """Return ``text`` if it is JSON that obeys ``schema``, else JSON made of it; raises ``BadRequest``."""
    try:
        said = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # broken, or no JSON, as NaN
        said = text
    value = build(schema, said)
    return text if said is not text and _is_same(value, said) else json.dumps(value, ensure_ascii=False)


def build(schema: Record, given: Any) -> Any:
    """Return a value that obeys ``schema`` and keeps what it can of ``given``: any JSON, or text.

    Raises ``BadRequest`` for a schema that is broken, endless or beyond this builder.
    """
    try:
        return _Builder(schema).value(schema, given, 0)
    except RecursionError as error:
        raise _refusal("no value of finite depth obeys it") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise _refusal(f"it is broken ({error})") from error


def _refusal(why: str) -> BadRequest:
    return BadRequest(400, "unsupported_schema", f"This server cannot answer with this JSON schema: {why}.")


class _Builder:
    def __init__(self, root: Record):
        self._root = root
        self._made = 0

    def value(self, schema: Any, given: Any, depth: int) -> Any:
        """``given`` is ``None`` if nothing was said."""
        self._made += 1
        if self._made > _MOST_VALUES:
            raise _refusal("it needs too many values")
        node = self._resolve(schema)
        if "const" in node or "enum" in node:
            return node["const"] if "const" in node else _option(node["enum"], given)
        rest = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}
        if several := node.get("anyOf") or node.get("oneOf"):
            return self._choice([{"allOf": [one], **rest} for one in several], given, depth)
        kind = node.get("type") or ("object" if "properties" in node else "array" if "items" in node else None)
        if isinstance(kind, list):
            return self._choice([{**node, "type": one} for one in kind], given, depth)
        if kind in ("object", "array"):
            return (self._object if kind == "object" else self._array)(node, given, depth)
        return _plain(kind, node, given)

    def _resolve(self, schema: Any) -> Record:
        """The schema with references and ``allOf`` resolved."""
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            raise _refusal(f"{json.dumps(schema)} stands where a schema must stand")
        if unable := sorted(schema.keys() - _KNOWN):
            raise _refusal(f"it uses {unable[0]}")
        node = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        parts = [self._target(schema["$ref"])] if "$ref" in schema else []
        for part in map(self._resolve, [*parts, *schema.get("allOf", ())]):
            properties = {**part.get("properties", {}), **node.get("properties", {})}
            required = [*dict.fromkeys([*part.get("required", ()), *node.get("required", ())])]
            joined = {"properties": properties, "required": required}
            node = {**part, **node, **{key: value for key, value in joined.items() if value}}
        return node

    def _target(self, reference: Any) -> Any:
        """What ``$ref`` points to within the schema."""
        node: Any = self._root
        first, *names = str(reference).split("/")
        for name in names:
            node = node.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
        if first != "#" or node is None:
            raise _refusal(f"$ref {reference} leads nowhere")
        return node

    def _choice(self, choices: Sequence[Record], given: Any, depth: int) -> Any:
        """The alternative that keeps what is given, else the first that is not null; null where nothing is given."""
        if any(self._resolve(choice).get("type") == "null" for choice in choices) and (given is None or depth >= _DEEP):
            return None
        values = [self.value(choice, given, depth) for choice in choices]
        kept = (value for value in values if _is_same(value, given))
        return next(kept, next((value for value in values if value is not None), None))

    def _object(self, node: Record, given: Any, depth: int) -> Record:
        properties, required = node.get("properties", {}), node.get("required", [])
        others = node.get("additionalProperties", True)
        if not isinstance(given, dict):
            named = {**properties, **dict.fromkeys(required)} or ({} if others is False else {"answer": True})
            given = dict.fromkeys([] if depth >= _DEEP or given is None else named, given)
        names = [name for name in {**properties, **given, **dict.fromkeys(required)} if name in {*given, *required}]
        kept = (name for name in names if name in properties or others is not False or name in required)
        return {name: self.value(properties.get(name, others), given.get(name), depth + 1) for name in kept}

    def _array(self, node: Record, given: Any, depth: int) -> list[Any]:
        said = given if isinstance(given, list) else [] if given is None or depth >= _DEEP else [given]
        size = min(max(len(said), node.get("minItems", 0)), node.get("maxItems", math.inf))
        items = node.get("items", True)
        return [self.value(items, said[index] if index < len(said) else None, depth + 1) for index in range(int(size))]


def _is_same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _option(options: Sequence[Any], given: Any) -> Any:
    if not isinstance(options, list) or not options:
        raise _refusal("an enum has no options")
    said = given.lower() if isinstance(given, str) else ""
    named = [option for option in options if isinstance(option, str) and option.lower() in said]
    return next((option for option in options if _is_same(option, given)), max(named, key=len, default=options[0]))


def _plain(kind: str | None, node: Record, given: Any) -> Any:
    if kind == "null":
        return None
    if kind == "boolean":
        return given if isinstance(given, bool) else str(given).lower().startswith(("yes", "true", "correct"))
    if kind in ("integer", "number"):
        return _number(node, given, whole=kind == "integer")
    if kind == "string":
        text = given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)
        return text[: node.get("maxLength")]
    if kind is not None:
        raise _refusal(f"there is no type {kind}")
    return "" if given is None else given


def _number(node: Record, given: Any, *, whole: bool) -> float:
    said = given
    if isinstance(given, bool) or not isinstance(given, int | float):
        found = _NUMBER.findall(given) if isinstance(given, str) else []
        said = float(found[-1].replace(",", "")) if found else 0
    low, high = node.get("minimum", -math.inf), node.get("maximum", math.inf)
    value: float = max(low, min(said, high))
    value = math.ceil(value) if whole or float(value).is_integer() else value
    if not low <= value <= high:
        raise _refusal("no number lies within its limits")
    return value
