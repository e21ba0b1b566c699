"""Closed sets in replies: a field that names one of a few things is an enum in the schema that is sent.

A reply type marks such a field by the name of its set, and a call says what the set holds: the bullets that its prompt
shows, say. What names a member of an empty set cannot be written, and is left out of the schema. Servers that decode
by a grammar can then invent no member; other replies are read as they come, and checked where they are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from ace_bench.core.types import Record

BULLETS, SECTIONS, OPERATIONS = "bullets", "sections", "operations"
ClosedSets = Mapping[str, Collection[str]]
"""The members by the name of the set. A set without a key is open."""
NO_SETS: ClosedSets = MappingProxyType({})

MARK = "x-one-of"
_MOST_VALUES, _MANY_VALUES, _MOST_CHARACTERS = 1_000, 250, 15_000
"""OpenAI's limits: values of all enums of a schema, and characters of an enum with more than 250 values."""


def one_of(name: str) -> msgspec.Meta:
    """Mark a field as a member of a set; its type stays any string, as replies are checked where they are used."""
    return msgspec.Meta(extra_json_schema={MARK: name})


def close(schema: Record, sets: ClosedSets) -> Record:
    """Return a schema with its sets closed, and without marks.

    Sets that are too large for servers stay open, the largest first. So do all sets if together they leave nothing
    that could be written.
    """
    by_size = sorted((name for name in sets if len(sets[name]) <= _MOST_VALUES), key=lambda name: len(sets[name]))
    for count in range(len(by_size), 0, -1):
        closed: Record | None = _close(schema, {name: sets[name] for name in by_size[:count]})
        if closed is not None and _is_small(closed):
            return closed
    without_marks: Record = _close(schema, {})
    return without_marks


def _close(node: Any, sets: ClosedSets) -> Any:
    """Return a node with its sets closed, ``None`` if no value fits it."""
    if not isinstance(node, dict):
        return node
    closed = {key: value for key, value in node.items() if key != MARK}
    if (members := sets.get(node.get(MARK, ""))) is not None:
        allowed = node.get("enum")
        closed["enum"] = (
            [*dict.fromkeys(members)] if allowed is None else [value for value in allowed if value in members]
        )
    if "anyOf" in node:
        parts = [_close(part, sets) for part in node["anyOf"]]
        closed["anyOf"] = [part for part in parts if part is not None]
    if "items" in node:
        closed["items"] = _close(node["items"], sets)
    if "properties" in node:
        properties = {name: _close(part, sets) for name, part in node["properties"].items()}
        closed["properties"] = {name: part for name, part in properties.items() if part is not None}
        if not closed["properties"].keys() >= set(node.get("required", ())):
            return None
    return None if any(closed.get(part, ...) in ([], None) for part in ("enum", "anyOf", "items")) else closed


def _is_small(schema: Record) -> bool:
    enums = [*_enums(schema)]
    large = (enum for enum in enums if len(enum) > _MANY_VALUES)
    return sum(map(len, enums)) <= _MOST_VALUES and all(
        sum(len(str(value)) for value in enum) <= _MOST_CHARACTERS for enum in large
    )


def _enums(node: Any) -> Iterator[list[str]]:
    if isinstance(node, dict):
        if "enum" in node:
            yield node["enum"]
        for part in node.values():
            yield from _enums(part)
    elif isinstance(node, list):
        for part in node:
            yield from _enums(part)
