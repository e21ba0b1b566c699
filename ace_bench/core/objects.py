"""Which object of a reply counts: the last one that fits and does not repeat the form that the prompt showed.

A model that corrects itself writes its draft first, so the last object counts, as in the authors' reader of answers and
in lm-evaluation-harness's last match. Objects within an object are its own members and never stand for it. A member
repeats the form where its text is dots, names itself in brackets (``<the answer>``), or stands as this member's text in
the prompt and names itself ("your answer here"). An object repeats the prompt's example where all its texts equal the
only one shown; where a prompt shows several, these are worked examples, and an answer may well equal one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from ace_bench.core.lenient_json import find_objects
from ace_bench.core.types import Message, Record

Reply = TypeVar("Reply")

_DOTS = re.compile(r"[<\[({]?\s*(?:\.{2,}|…)\s*[>\])}]?")
_BRACKETED = re.compile(r"<[^<>]+>|\[[^\[\]]+\]|\{[^{}]+\}")
_MOST = 16
"""Objects of a reply that are looked at, from its end."""
_WORD = re.compile(r"[^\W_]+")


class Echo(IntEnum):
    """How much of an object repeats what the prompt showed."""

    NONE = 0
    PART = 1
    ALL = 2


def choose_last(
    fitting: Sequence[tuple[Mapping[str, Any], Reply]], required: Collection[str], prompt: Sequence[Message]
) -> Reply:
    """Return the reply of the object that counts, of pairs of an object and what it was read as.

    Raises ``ValueError`` if all of them repeat the form.
    """
    weaker: Reply | None = None
    last_first: Sequence[tuple[Mapping[str, Any], Reply]] = fitting[::-1][:_MOST]
    for value, reply in last_first:
        echo = find_echo(value, required, prompt)
        if echo is Echo.NONE:
            return reply
        if echo is Echo.PART and weaker is None:
            weaker = reply
    if weaker is None:
        raise ValueError("the reply repeats the form that was asked for")
    return weaker


def holds_several(text: str, schema: Record, prompt: Sequence[Message]) -> bool:
    """Whether a reply holds different objects with all members that a schema requires.

    Objects of the prompt do not count.
    """
    required: Sequence[str] = schema.get("required", ())
    if not required or text.count(required[-1]) < 2:
        return False
    objects = [
        candidate.value for candidate in find_objects(text) if candidate.whole and set(required) <= set(candidate.value)
    ]
    own_objects: list[Mapping[str, Any]] = []
    for value in objects[-_MOST:]:
        if value not in own_objects and find_echo(value, required, prompt) is Echo.NONE:
            own_objects.append(value)
    return len(own_objects) > 1


def find_echo(value: Mapping[str, Any], required: Collection[str], prompt: Sequence[Message]) -> Echo:
    """Return how much of an object repeats the form or the only example of a prompt."""
    prompt_texts = [message.content for message in prompt if message.role != "assistant"]
    texts = [(top, name, text) for top in value for name, text in _texts(top, value[top])]
    repeats = [_repeats_form(name, text, prompt_texts) for _, name, text in texts]
    needed = [repeat for (top, _, _), repeat in zip(texts, repeats, strict=True) if top in required]
    if repeats and all(needed or repeats):
        return Echo.ALL
    if any(repeats):
        return Echo.PART
    if _is_only_example(value, required, [text for _, _, text in texts], prompt_texts):
        return Echo.ALL if len(texts) > 1 else Echo.PART
    return Echo.NONE


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts in a member, with the name of the member that holds each of them."""
    if isinstance(value, str) and value.strip():
        yield name, value.strip()
    elif isinstance(value, list):
        for item in value:
            yield from _texts(name, item)
    elif isinstance(value, dict):
        for inner, item in value.items():
            yield from _texts(inner, item)


def _repeats_form(name: str, text: str, prompt_texts: Sequence[str]) -> bool:
    if _DOTS.fullmatch(text):
        return True
    names_itself = name.lower().rpartition("_")[2] in _WORD.findall(text.lower())
    bracketed = _BRACKETED.fullmatch(text) is not None
    if bracketed and names_itself:
        return True
    if not (bracketed or names_itself):
        return False
    member = re.compile(rf"""["']{re.escape(name)}["']\s*:\s*(?:\[\s*)?["']{re.escape(_escaped(text))}["']""")
    return any(member.search(content) for content in prompt_texts)


def _is_only_example(
    value: Mapping[str, Any], required: Collection[str], texts: Sequence[str], prompt_texts: Sequence[str]
) -> bool:
    """Whether a prompt holds all texts of an object, and no other value of the last member that is required."""
    longest_first = sorted(map(_escaped, texts), key=len, reverse=True)
    if not texts or not all(any(text in content for content in prompt_texts) for text in longest_first):
        return False
    name = next((name for name in reversed([*required]) if isinstance(value.get(name), str)), None)
    if name is None:
        return False
    member = re.compile(rf"""["']{re.escape(name)}["']\s*:\s*["']((?:[^"'\\]|\\.)*)["']""")
    return {text for content in prompt_texts for text in member.findall(content)} == {_escaped(value[name])}


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
