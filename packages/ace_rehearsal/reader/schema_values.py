"""Values that obey a JSON schema, built from what the reader says.

``response_format`` and strict tools promise a client such values. What the reader says is kept wherever it fits:
its JSON as a whole if it obeys the schema already, else its text in strings, its numbers in numbers, the option that
it names in an ``enum``. A schema that cannot be obeyed for certain is refused, never ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ace_bench.core.types import Record

ANY_OBJECT: Record = {"type": "object"}
"""What ``response_format={"type": "json_object"}`` asks for."""

_REFUSED = {"not", "if", "then", "else", "contains", "minProperties", "maxProperties", "patternProperties"}
_REFUSED |= {"propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"}
_PLAIN = ("string", "number", "integer", "boolean", "null")
_DEEP = 4
"""The depth from which only what is required is made, so that recursive schemas end."""
_MOST_VALUES = 10_000
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")
_FORMATS = {
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "date-time": "2000-01-01T00:00:00Z",
    "duration": "P1D",
    "email": "reader@example.com",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


class BadRequest(Exception):
    """A request that gets an error reply: HTTP status, machine-readable code, message."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status = status
        self.code = code


def obey(text: str, schema: Record) -> str:
    """Return ``text`` if it is JSON that obeys ``schema``, else JSON made of it; raises ``BadRequest``."""
    try:
        said = msgspec.json.decode(text)
    except (ValueError, RecursionError):  # broken, or no JSON, as NaN
        said = text
    value = build(schema, said)
    return text if said is not text and _same(value, said) else json.dumps(value, ensure_ascii=False)


def build(schema: Record, given: Any) -> Any:
    """Return a value that obeys ``schema`` and keeps what it can of ``given``: any JSON, or text.

    Raises ``BadRequest`` for a schema that is broken, endless or beyond this builder.
    """
    try:
        return _Builder(schema).value(schema, given, 0)
    except RecursionError as error:
        raise _refused("no value of finite depth obeys it") from error
    except (TypeError, AttributeError, ValueError, ZeroDivisionError) as error:
        raise _refused(f"it is broken ({error})") from error


def _refused(why: str) -> BadRequest:
    return BadRequest(400, "unsupported_schema", f"This server cannot answer with this JSON schema: {why}.")


class _Builder:
    def __init__(self, root: Record):
        self._root = root
        self._made = 0

    def value(self, schema: Any, given: Any, depth: int) -> Any:
        """``given`` is ``None`` where nothing was said."""
        self._made += 1
        if self._made > _MOST_VALUES:
            raise _refused("it needs too many values")
        node = self._node(schema)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return _option(node["enum"], given)
        if choices := self._choices(node):
            return self._choice(choices, given, depth)
        return self._of_type(node, given, depth)

    def _of_type(self, node: Record, given: Any, depth: int) -> Any:
        kind = node.get("type") or ("object" if "properties" in node else "array" if "items" in node else None)
        if kind == "object":
            return self._object(node, given, depth)
        if kind == "array":
            return self._array(node, given, depth)
        if kind is None:
            return "" if given is None else given
        return _plain(kind, node, given)

    def _node(self, schema: Any) -> Record:
        """The schema with references and ``allOf`` resolved."""
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            raise _refused(f"{json.dumps(schema)} stands where a schema must stand")
        if unable := sorted(_REFUSED & schema.keys()):
            raise _refused(f"it uses {unable[0]}")
        node = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        parts = [self._target(schema["$ref"])] if "$ref" in schema else []
        for part in map(self._node, [*parts, *schema.get("allOf", ())]):
            node = {**part, **node} | {
                key: joined for key in ("properties", "required") if (joined := _joined(part.get(key), node.get(key)))
            }
        return node

    def _target(self, reference: Any) -> Any:
        """What ``$ref`` points to within the schema."""
        node: Any = self._root
        first, *names = str(reference).split("/")
        for name in names:
            node = node.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
        if first != "#" or node is None:
            raise _refused(f"$ref {reference} leads nowhere")
        return node

    def _choices(self, node: Record) -> Sequence[Record]:
        """The alternatives of a schema, each with what the schema says of all."""
        rest = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}
        if several := node.get("anyOf") or node.get("oneOf"):
            return [{"allOf": [one], **rest} for one in several]
        if isinstance(node.get("type"), list):
            return [{**node, "type": kind} for kind in node["type"]]
        return ()

    def _choice(self, choices: Sequence[Record], given: Any, depth: int) -> Any:
        """The alternative that keeps what is given, else the first that is not null; null where nothing is given."""
        kinds = [self._node(one).get("type") for one in choices]
        plain = [one for one, kind in zip(choices, kinds, strict=True) if kind in _PLAIN]
        ending = depth >= _DEEP and not isinstance(given, dict | list)
        if "null" in kinds and (given is None or ending):
            return None
        values = [self.value(one, given, depth) for one in (ending and plain) or choices]
        kept = (value for value in values if _same(value, given))
        return next(kept, next((value for value in values if value is not None), None))

    def _object(self, node: Record, given: Any, depth: int) -> Record:
        properties, required = node.get("properties", {}), node.get("required", [])
        others = node.get("additionalProperties", True)
        if not isinstance(given, dict):
            given = json.dumps(given) if isinstance(given, list) else given
            names = required if depth >= _DEEP or given is None else [*properties, *required]
            given = dict.fromkeys(
                names or ([] if properties or others is False or given is None else ["answer"]), given
            )
        names = [name for name in [*properties, *given, *required] if name in given or name in required]
        kept = [name for name in dict.fromkeys(names) if name in properties or others is not False or name in required]
        return {name: self.value(properties.get(name, others), given.get(name), depth + 1) for name in kept}

    def _array(self, node: Record, given: Any, depth: int) -> list[Any]:
        least, most = node.get("minItems", 0), node.get("maxItems", math.inf)
        if not isinstance(given, list):
            given = [] if given is None or depth >= _DEEP else [given]
        if least > _MOST_VALUES:
            raise _refused("it needs too many values")
        first = node.get("prefixItems", [])
        if node.get("items") is False:
            most = min(most, len(first))
        size = min(max(len(given), least, len(first)), most)
        said = [*given, *[None] * least, *[None] * len(first)]
        schemas = [*first, *[node.get("items", True)] * max(0, int(size) - len(first))]
        values = [self.value(schema, one, depth + 1) for schema, one in zip(schemas[: int(size)], said, strict=False)]
        if node.get("uniqueItems") and len({json.dumps(value, sort_keys=True) for value in values}) < len(values):
            raise _refused("it wants several items that all differ")
        return values


def _joined(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **other}
    return [*dict.fromkeys([*one, *other])] if one and other else one or other


def _same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _option(options: Sequence[Any], given: Any) -> Any:
    if not isinstance(options, list) or not options:
        raise _refused("an enum has no options")
    said = given.lower() if isinstance(given, str) else ""
    named = [one for one in options if isinstance(one, str) and one.lower() in said]
    return next((one for one in options if _same(one, given)), max(named, key=len, default=options[0]))


def _plain(kind: str, node: Record, given: Any) -> Any:
    if kind == "null":
        return None
    if kind == "boolean":
        return given if isinstance(given, bool) else str(given).lower().startswith(("yes", "true", "correct"))
    if kind in ("integer", "number"):
        return _number(node, given, whole=kind == "integer")
    if kind == "string":
        return _string(node, given)
    raise _refused(f"there is no type {kind}")


def _string(node: Record, given: Any) -> str:
    text = given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)
    if "format" in node:
        if node["format"] not in _FORMATS:
            raise _refused(f"it uses the format {node['format']}")
        text = _FORMATS[node["format"]]
    if node.get("minLength", 0) > _MOST_VALUES:
        raise _refused(f"minLength is more than {_MOST_VALUES}")
    text = text.ljust(node.get("minLength", 0), ".")[: node.get("maxLength")]
    try:
        fits = re.search(node.get("pattern", ""), text) is not None
    except re.error as error:
        raise _refused(f"the pattern {node['pattern']} is broken ({error})") from error
    if not fits:
        raise _refused(f"the answer does not match the pattern {node['pattern']}, and no other is made up")
    return text


def _number(node: Record, given: Any, *, whole: bool) -> float:
    said = given
    if isinstance(given, bool) or not isinstance(given, int | float):
        found = _NUMBER.findall(given) if isinstance(given, str) else []
        said = float(found[-1].replace(",", "")) if found else 0
    for one in _near(said, node):
        value = math.ceil(one) if whole else one
        if step := node.get("multipleOf"):
            value = math.ceil(value / step) * step
        if _within(value, node):
            return int(value) if whole or float(value).is_integer() else value
    raise _refused("no number lies within its limits")


def _near(said: float, node: Mapping[str, Any]) -> Iterator[float]:
    """Numbers to try, the one that was said first."""
    yield said
    low = max((node[key] for key in ("minimum", "exclusiveMinimum") if key in node), default=None)
    high = min((node[key] for key in ("maximum", "exclusiveMaximum") if key in node), default=None)
    if low is not None:
        yield from (low, low + 1)
    if high is not None:
        yield from (high, high - 1)
    if low is not None and high is not None:
        yield (low + high) / 2


def _within(value: float, node: Mapping[str, Any]) -> bool:
    inside: bool = node.get("minimum", -math.inf) <= value <= node.get("maximum", math.inf)
    return inside and bool(node.get("exclusiveMinimum", -math.inf) < value < node.get("exclusiveMaximum", math.inf))
