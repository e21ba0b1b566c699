"""Reads Reflector's and Curator's replies as the authors' code does (ace-agent/ace, ``ace/core``).

A reply is asked for once. The Reflector's text carries on as it is, whatever its tags; the Curator's reply is taken
as a whole or not at all. The rules take linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ace_bench.contexts.playbook_text.dialects import section_key
from ace_bench.core.backbones import Lm
from ace_bench.core.errors import RolloutFault
from ace_bench.core.replies import ask_once
from ace_bench.core.types import Fault, Message, Record

_TAGS = '"bullet_tags"'
_FENCED = re.compile(r"```json(.*?)```", re.DOTALL | re.IGNORECASE)
_TOKEN = re.compile(r'[{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]]")


def ask_for_operations(lm: Lm, messages: Sequence[Message]) -> list[Record]:
    """Ask the finance code's Curator once; a reply that their code drops is a fault of the model."""
    try:
        return official_operations(ask_once(lm, messages))
    except ValueError as error:
        fault = Fault(owner="model", kind="unreadable_reply", message=f"the official code drops this reply: {error}")
        raise RolloutFault(fault) from error


def ask_for_blank_or_text(lm: Lm, messages: Sequence[Message]) -> str:
    """Ask a role of the AppWorld code; a reply of blanks is a reply, too."""
    try:
        return lm(messages).text
    except RolloutFault as error:
        if error.blank is None:
            raise
        return error.blank


def official_tags(text: str) -> list[Any]:
    """Return the list of tags in the Reflector's reply as it is; empty where it cannot be read.

    It is the first list behind the name of the field; its end is counted in brackets, those in texts included.
    """
    named = text.find(_TAGS)
    start = text.find("[", named) if named >= 0 else -1
    if start < 0:
        return []
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "[" else -1
        if depth == 0:
            try:
                tags: list[Any] = json.loads(text[start : bracket.end()])
            except (ValueError, RecursionError):
                return []
            return tags
    return []


def official_operations(text: str) -> list[Record]:
    """Read the Curator's operations, of all types; raises ``ValueError`` with the reason to drop the whole reply.

    Whether a section or content can be used is decided where the operations are applied.
    """
    try:
        reply = next(_objects(text), None)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be read: {error}") from error
    if not isinstance(reply, dict) or not reply:
        raise ValueError("it holds no JSON object")
    for field, kind in (("reasoning", str), ("operations", list)):
        if not isinstance(reply.get(field), kind):
            raise ValueError(f"its field {field} is {'missing' if field not in reply else 'not a ' + kind.__name__}")
    operations: list[Record] = reply["operations"]
    for operation in operations:
        _check(operation)
    return operations


def agent_operations(text: str, sections: Collection[str]) -> list[Record]:
    """Read the Curator's operations as the authors' AppWorld code does.

    An operation of another type than ADD drops the whole reply there, and one for an unknown section is left out.
    Raises ``ValueError`` as ``official_operations``.
    """
    operations = official_operations(text)
    for operation in operations:
        if operation["type"] != "ADD":
            raise ValueError(f"an operation is of type {operation['type']!r}, and only ADD is supported")
    return [one for one in operations if section_key(str(one["section"]).strip(), "appworld") in sections]


def _check(operation: Any) -> None:
    if not isinstance(operation, dict):
        raise ValueError("an operation is not an object")
    if "type" not in operation:
        raise ValueError("an operation has no type")
    missing = [name for name in ("section", "content") if name not in operation]
    if operation["type"] == "ADD" and missing:
        raise ValueError(f"an ADD has no {' and no '.join(missing)}")


def _objects(text: str) -> Iterator[Any]:
    """Yield the JSON values of a reply: the whole text, fenced blocks, then whatever stands in balanced braces."""
    for candidate in _candidates(text):
        try:
            yield json.loads(candidate.strip())
        except json.JSONDecodeError:
            continue


def _candidates(text: str) -> Iterator[str]:
    yield text
    yield from _FENCED.findall(text)
    start, depth = -1, 0
    place = text.find("{")
    while place >= 0:
        start, depth = place, 0
        for token in _TOKEN.finditer(text, place):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if depth == 0:
                yield text[start : token.end()]
                place = text.find("{", token.end())
                break
        else:
            return
