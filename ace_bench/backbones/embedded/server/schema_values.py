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
        parsed = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # broken, or no JSON, as NaN
        parsed = text
    value = build(schema, parsed)
    return text if parsed is not text and _is_same(value, parsed) else json.dumps(value, ensure_ascii=False)


def build(schema: Record, wanted: Any) -> Any:
    """Return a value that obeys ``schema`` and keeps what it can of ``wanted``: any JSON, or text.

    Raises ``BadRequest`` for a schema that is broken, endless or beyond this builder.
    """
    try:
        return _Builder(schema).value(schema, wanted, 0)
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

    def value(self, schema: Any, wanted: Any, depth: int) -> Any:
        """Return a value for a schema; ``wanted`` is ``None`` if the reader wants no value in particular."""
        self._made += 1
        if self._made > _MOST_VALUES:
            raise _refusal("it needs too many values")
        node = self._resolve(schema)
        if "const" in node or "enum" in node:
            return node["const"] if "const" in node else _option(node["enum"], wanted)
        shared = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}
        if alternatives := node.get("anyOf") or node.get("oneOf"):
            return self._choice([{"allOf": [alternative], **shared} for alternative in alternatives], wanted, depth)
        kind = node.get("type") or ("object" if "properties" in node else "array" if "items" in node else None)
        if isinstance(kind, list):
            return self._choice([{**node, "type": alternative} for alternative in kind], wanted, depth)
        if kind in ("object", "array"):
            return (self._object if kind == "object" else self._array)(node, wanted, depth)
        return _plain(kind, node, wanted)

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

    def _choice(self, choices: Sequence[Record], wanted: Any, depth: int) -> Any:
        """Return the alternative that keeps ``wanted``, else the first that is not null."""
        if any(self._resolve(choice).get("type") == "null" for choice in choices) and (
            wanted is None or depth >= _DEEP
        ):
            return None
        values = [self.value(choice, wanted, depth) for choice in choices]
        kept = (value for value in values if _is_same(value, wanted))
        return next(kept, next((value for value in values if value is not None), None))

    def _object(self, node: Record, wanted: Any, depth: int) -> Record:
        properties, required = node.get("properties", {}), node.get("required", [])
        additional = node.get("additionalProperties", True)
        if not isinstance(wanted, dict):
            keys = {**properties, **dict.fromkeys(required)} or ({} if additional is False else {"answer": True})
            wanted = dict.fromkeys([] if depth >= _DEEP or wanted is None else keys, wanted)
        names = [name for name in {**properties, **wanted, **dict.fromkeys(required)} if name in {*wanted, *required}]
        kept = (name for name in names if name in properties or additional is not False or name in required)
        return {name: self.value(properties.get(name, additional), wanted.get(name), depth + 1) for name in kept}

    def _array(self, node: Record, wanted: Any, depth: int) -> list[Any]:
        values = wanted if isinstance(wanted, list) else [] if wanted is None or depth >= _DEEP else [wanted]
        size = min(max(len(values), node.get("minItems", 0)), node.get("maxItems", math.inf))
        items = node.get("items", True)
        return [
            self.value(items, values[index] if index < len(values) else None, depth + 1) for index in range(int(size))
        ]


def _is_same(first: Any, second: Any) -> bool:
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _option(options: Sequence[Any], wanted: Any) -> Any:
    if not isinstance(options, list) or not options:
        raise _refusal("an enum has no options")
    text = wanted.lower() if isinstance(wanted, str) else ""
    mentioned = [option for option in options if isinstance(option, str) and option.lower() in text]
    return next((option for option in options if _is_same(option, wanted)), max(mentioned, key=len, default=options[0]))


def _plain(kind: str | None, node: Record, wanted: Any) -> Any:
    if kind == "null":
        return None
    if kind == "boolean":
        return wanted if isinstance(wanted, bool) else str(wanted).lower().startswith(("yes", "true", "correct"))
    if kind in ("integer", "number"):
        return _number(node, wanted, is_integer=kind == "integer")
    if kind == "string":
        text = wanted if isinstance(wanted, str) else "" if wanted is None else json.dumps(wanted, ensure_ascii=False)
        return text[: node.get("maxLength")]
    if kind is not None:
        raise _refusal(f"there is no type {kind}")
    return "" if wanted is None else wanted


def _number(node: Record, wanted: Any, *, is_integer: bool) -> float:
    number = wanted
    if isinstance(wanted, bool) or not isinstance(wanted, int | float):
        numbers = _NUMBER.findall(wanted) if isinstance(wanted, str) else []
        number = float(numbers[-1].replace(",", "")) if numbers else 0
    low, high = node.get("minimum", -math.inf), node.get("maximum", math.inf)
    value: float = max(low, min(number, high))
    value = math.ceil(value) if is_integer or float(value).is_integer() else value
    if not low <= value <= high:
        raise _refusal("no number lies within its limits")
    return value
