"""Reads the message of a chat completion: its text, the model's thoughts beside the text, and a refusal.

Servers send the content as one text or as a list of parts. They report thoughts in a field of their own, under various
names, or as parts of a type of their own. What is neither text nor thoughts (an image, a sound) is named in
``unread``, so that a reply of nothing else is not silently empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from ace_bench.core.replies import without_surrogates

_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details")
"""vLLM, SGLang, DeepSeek and llama.cpp; OpenRouter, Groq, Ollama and newer vLLM; Ollama; LiteLLM; OpenRouter. Some
send the same thoughts under several names, so the first one counts."""
_TEXT_TYPES = ("text", "output_text", "input_text")
_THOUGHT_TYPES = ("reason", "think", "thought", "summary")
"""Words in the types of parts that hold thoughts, such as ``thinking`` or ``reasoning.summary``."""
_INNER = ("text", "thinking", "reasoning", "summary", "content", "value")
"""Where a part keeps its words; some nest parts in parts."""
_MAX_DEPTH = 6


@dataclass(frozen=True, kw_only=True)
class MessageParts:
    """What a message holds. ``null`` says that it had no content at all, not even an empty text.

    ``unread`` holds the types of parts that are neither text nor thoughts.
    """

    text: str
    null: bool
    thoughts: str
    refusal: str
    unread: tuple[str, ...]


def read_message(message: dict[str, Any]) -> MessageParts:
    """Read a message, whatever the types of its fields."""
    content = message.get("content")
    texts, thoughts, refusals, unread = list[str](), list[str](), list[str](), list[str]()
    for part in content if isinstance(content, list) else [content]:
        kind = str(part.get("type") or "") if isinstance(part, dict) else ""
        if not isinstance(part, dict) or kind in _TEXT_TYPES or (not kind and "text" in part):
            texts.append(_plain(part.get("text") if isinstance(part, dict) else part))
        elif kind == "refusal":
            refusals.append(_plain(part.get("refusal")))
        elif any(word in kind.lower() for word in _THOUGHT_TYPES):
            thoughts.append(_words(part))
        elif kind:
            unread.append(kind)
        else:
            texts.append(_json(part))  # the object that was asked for, already decoded
    beside = next((words for name in _THOUGHT_FIELDS if (words := _words(message.get(name)))), "")
    return MessageParts(
        text="".join(texts),
        null=content is None,
        thoughts=without_surrogates("\n".join(filter(None, (beside, *thoughts)))),
        refusal=_plain(message.get("refusal") or "") or "".join(refusals),
        unread=tuple(dict.fromkeys(unread)),
    )


def _plain(value: Any) -> str:
    """Return a text as it is, nothing for null, and any other value as JSON."""
    if isinstance(value, dict):
        return _words(value) or _json(value)
    return "" if value is None else without_surrogates(value if isinstance(value, str) else _json(value))


def _json(value: Any) -> str:
    return without_surrogates(msgspec.json.encode(value).decode())


def _words(value: Any) -> str:
    """Return all words in a text, a part or nested parts."""
    return "".join(_texts(value, _MAX_DEPTH)).strip()


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth:
        for part in value:
            yield from _texts(part, depth - 1)
    elif isinstance(value, dict) and depth:
        inner = next((value[name] for name in _INNER if value.get(name)), None)
        yield from _texts(inner, depth - 1)
