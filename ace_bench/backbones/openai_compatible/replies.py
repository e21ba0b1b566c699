"""Reads what a server sends: a chat completion (text, thoughts, why it ended, cost), or embeddings.

A reply with text was paid for, so a malformed field beside the text must not lose it: such a field is read if its
meaning is clear, and counts as unknown otherwise. Of several choices only the first is read.

Servers send the content of a message as one text or as a list of parts. They report thoughts in a field of their own,
under various names, or as parts of a type of their own. What is neither text nor thoughts (an image, a sound) is named
in ``unread``, so that a reply of nothing else is not silently empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ace_bench.backbones.openai_compatible.problems import Problem, from_status, unreadable_body
from ace_bench.backbones.openai_compatible.token_counts import read_usage
from ace_bench.core.replies import ToolCall, without_surrogates
from ace_bench.core.types import Usage

_CUT = ("length", "max_tokens", "max_output_tokens", "model_length", "max_length")
"""Finish reasons of a reply that reached its token limit."""
_BROKEN_OFF = ("abort", "aborted", "cancelled", "error")
"""Finish reasons of a reply that the server cancelled. Its text is not what the model would have said."""
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details")
"""vLLM, SGLang, DeepSeek and llama.cpp; OpenRouter, Groq, Ollama and newer vLLM; Ollama; LiteLLM; OpenRouter. Some
send the same thoughts under several names, so the first one counts."""
_TEXT_TYPES = ("text", "output_text", "input_text")
_THOUGHT_TYPES = ("reason", "think", "thought", "summary")
"""Words in the types of parts that hold thoughts, such as ``thinking`` or ``reasoning.summary``."""
_INNER = ("text", "thinking", "reasoning", "summary", "content", "value")
"""Where a part keeps its words; some nest parts in parts."""
_MAX_DEPTH = 6


class _Choice(msgspec.Struct):
    message: Any = None
    text: Any = None
    finish_reason: Any = None
    error: Any = None
    usage: Any = None


class _Body(msgspec.Struct):
    choices: Any = None
    usage: Any = None
    model: Any = None
    error: Any = None
    simulated: Any = None
    timings: Any = None
    tokens_cached: Any = None


class _EmbeddingsBody(msgspec.Struct):
    data: list[Any]
    usage: Any = None
    model: Any = None
    simulated: Any = None


_DECODER = msgspec.json.Decoder(_Body)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A server's answer. ``ended`` is its finish reason; ``simulated``: it declares that it is not a language model.

    ``null`` says that the message had no content at all, not even an empty text. ``thoughts`` are what the server
    reports apart from the text, and ``unread`` the types of parts that hold neither.
    """

    text: str
    null: bool
    refusal: str
    ended: str
    model: str
    usage: Usage
    simulated: bool
    tool_calls: tuple[ToolCall, ...] = ()
    thoughts: str = ""
    unread: tuple[str, ...] = ()

    @property
    def only_thoughts(self) -> bool:
        """Whether all words of the reply are in its thoughts."""
        return bool(self.thoughts) and not (self.text.strip() or self.tool_calls or self.refusal)


def read_answer(body: bytes) -> Answer | Problem:
    """Read the body of a reply with status 200."""
    try:
        data = _decode(body)
        if data.error:
            return _upstream_error(data.error)
        choice, message = _first_choice(data.choices)
    except (ValueError, RecursionError) as error:
        return unreadable_body(f"{error}; it begins {body[:80].decode(errors='replace')!r}")
    ended = _end(choice.finish_reason)
    if choice.error:
        return _upstream_error(choice.error)
    if ended in _BROKEN_OFF:
        return Problem(kind="dropped", message=f"the server broke the reply off (finish_reason {ended})")
    parts = _read_message(message)
    return Answer(
        text=parts.text,
        null=parts.null,
        refusal=parts.refusal,
        ended=ended,
        model=_as_text(data.model),
        usage=read_usage(data.usage or choice.usage, {"timings": data.timings, "tokens_cached": data.tokens_cached}),
        simulated=data.simulated is True,
        tool_calls=_read_calls(message.get("tool_calls")),
        thoughts=parts.thoughts,
        unread=parts.unread,
    )


def read_embeddings_answer(body: bytes) -> Answer | Problem:
    """Read usage and model of a reply with embeddings; its text is the whole body."""
    try:
        data = msgspec.json.decode(body, type=_EmbeddingsBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return unreadable_body(f"{error}; it begins {body[:80].decode(errors='replace')!r}")
    used = read_usage(data.usage)
    return Answer(
        text=body.decode(),
        null=False,
        refusal="",
        ended="stop",
        model=_as_text(data.model),
        usage=replace(used, completion=0, cached=used.cached or 0),
        simulated=data.simulated is True,
    )


def _decode(body: bytes) -> _Body:
    """Decode strictly, which is fast; else leniently with ``json``, which accepts a BOM, lone surrogates and NaN."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.convert(json.loads(body.decode("utf-8-sig", errors="replace")), _Body)


def _first_choice(choices: Any) -> tuple[_Choice, dict[str, Any]]:
    """Return the first choice and its message; raises ``ValueError`` if there is none."""
    if not isinstance(choices, list) or not choices:
        raise ValueError("it holds no choices")
    choice = msgspec.convert(choices[0], _Choice)
    if isinstance(choice.message, dict):
        return choice, choice.message
    if choice.message is None and (choice.text is not None or choice.error):
        return choice, {"content": choice.text}  # the older form of completions
    raise ValueError("its first choice holds no message")


def _upstream_error(error: Any) -> Problem:
    """Classify an error that a gateway passes on with status 200."""
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 502
    return from_status(status, {"error": error})


def _end(reason: Any) -> str:
    """Return why a reply ended; SGLang's own form is an object with the reason as its type."""
    name = _as_text(reason.get("type") if isinstance(reason, dict) else reason).lower()
    return "length" if name in _CUT else name


def _as_text(value: Any) -> str:
    return "" if value is None else without_surrogates(str(value))


def _read_calls(listed: Any) -> tuple[ToolCall, ...]:
    """Read the calls of a reply. Entries without a function name cannot be answered and are left out."""
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    functions = ((call.get("id"), call.get("function")) for call in calls)
    return tuple(
        ToolCall(
            id=_as_text(name), name=_as_text(function["name"]), arguments=_as_text(function.get("arguments")) or "{}"
        )
        for name, function in functions
        if isinstance(function, dict) and function.get("name")
    )


@dataclass(frozen=True, kw_only=True)
class _MessageParts:
    """What a message holds. ``null`` says that it had no content at all, not even an empty text.

    ``unread`` holds the types of parts that are neither text nor thoughts.
    """

    text: str
    null: bool
    thoughts: str
    refusal: str
    unread: tuple[str, ...]


def _read_message(message: dict[str, Any]) -> _MessageParts:
    """Read a message. Its fields may have any types."""
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
    separate = next((words for name in _THOUGHT_FIELDS if (words := _words(message.get(name)))), "")
    return _MessageParts(
        text="".join(texts),
        null=content is None,
        thoughts=without_surrogates("\n".join(filter(None, (separate, *thoughts)))),
        refusal=_plain(message.get("refusal") or "") or "".join(refusals),
        unread=tuple(dict.fromkeys(unread)),
    )


def _plain(value: Any) -> str:
    """Return a text unchanged, "" for null, and any other value as JSON."""
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
