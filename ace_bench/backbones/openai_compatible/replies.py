"""Reads what a server sends: a chat completion (text, why it ended, cost), embeddings, its list of models.

A reply with text was paid for, so a malformed field beside the text must not lose it: such a field is read if its
meaning is clear, and counts as unknown otherwise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ace_bench.backbones.openai_compatible.problems import Problem, from_status, unreadable_body
from ace_bench.core.encoding import decoder_of
from ace_bench.core.replies import ToolCall, without_surrogates
from ace_bench.core.types import Usage

_LENGTHS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "context_window")
"""Names that servers give it: vLLM and SGLang, LM Studio, Together and OpenRouter, LM Studio, Groq."""
_META_LENGTHS = ("n_ctx", "n_ctx_train")
"""llama.cpp's: of the server, and the one the model was trained with."""


class ListedModel(msgspec.Struct, frozen=True):
    """A model's name, and the most tokens of a prompt with its reply; ``None``: the server does not say."""

    id: str
    context_length: int | None = None


class _Models(msgspec.Struct):
    data: list[dict[str, Any]] = []


def read_models(body: bytes) -> Sequence[ListedModel]:
    """Read the body of a reply to ``GET /models``; empty if it is not such a list."""
    try:
        listed = decoder_of(_Models).decode(body).data
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    return [ListedModel(str(model["id"]), _length(model)) for model in listed if model.get("id")]


def _length(model: dict[str, Any]) -> int | None:
    meta = model.get("meta")
    found = [model.get(name) for name in _LENGTHS]
    found += [meta.get(name) for name in _META_LENGTHS] if isinstance(meta, dict) else []
    return next((length for length in found if type(length) is int and length > 0), None)


_MAX_TOKENS = 2**53
"""The largest whole number that JSON carries safely; a larger count is a server error."""


class _Message(msgspec.Struct):
    content: str | list[Any] | None = None
    refusal: Any = None
    tool_calls: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: Any = None


class _Body(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    model: Any = None
    error: Any = None
    simulated: Any = None
    timings: Any = None


class _EmbeddingsBody(msgspec.Struct):
    data: list[Any]
    usage: Any = None
    model: Any = None
    simulated: Any = None


_DECODER = msgspec.json.Decoder(_Body)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A server's answer. ``ended`` is its finish reason; ``simulated``: it declares that it is not a language model.

    ``null`` says that the message had no content at all, not even an empty text.
    """

    text: str
    null: bool
    refusal: str
    ended: str
    model: str
    usage: Usage
    simulated: bool
    tool_calls: tuple[ToolCall, ...] = ()


def read_answer(body: bytes) -> Answer | Problem:
    """Read the body of a reply with status 200."""
    try:
        data = _decode(body)
    except (ValueError, RecursionError) as error:
        return unreadable_body(f"{error}; it begins {body[:80].decode(errors='replace')!r}")
    if data.error:
        # Some gateways pass on an upstream error with status 200.
        code = _field(data.error, "code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 502
        return from_status(status, {"error": data.error})
    if not data.choices:
        return unreadable_body("it holds no choices")
    choice = data.choices[0]
    return Answer(
        text=_text(choice.message.content),
        null=choice.message.content is None,
        refusal=_plain(choice.message.refusal),
        ended=_plain(choice.finish_reason),
        model=_plain(data.model),
        usage=_usage(data.usage, data.timings),
        simulated=data.simulated is True,
        tool_calls=_read_calls(choice.message.tool_calls),
    )


def read_embeddings_answer(body: bytes) -> Answer | Problem:
    """Read usage and model of a reply with embeddings; its text is the whole body."""
    try:
        data = msgspec.json.decode(body, type=_EmbeddingsBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return unreadable_body(f"{error}; it begins {body[:80].decode(errors='replace')!r}")
    used = _usage(data.usage)
    return Answer(
        text=body.decode(),
        null=False,
        refusal="",
        ended="stop",
        model=_plain(data.model),
        usage=replace(used, completion=0, cached=used.cached or 0),
        simulated=data.simulated is True,
    )


def _decode(body: bytes) -> _Body:
    """Decode strictly, which is fast; else leniently with ``json``, which accepts a BOM, lone surrogates and NaN."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.convert(json.loads(body.decode("utf-8-sig", errors="replace")), _Body)


def _plain(value: Any) -> str:
    return "" if value is None else without_surrogates(str(value))


def _text(content: str | list[Any] | None) -> str:
    """Return the text of a message; of a message in parts, the parts of type text."""
    if isinstance(content, list):
        return "".join(_plain(_field(part, "text")) for part in content if _field(part, "type") == "text")
    return _plain(content)


def _usage(reported: Any, timings: Any = None) -> Usage:
    """Return the server's counts; cached tokens under OpenAI's name, or else DeepSeek's or llama.cpp's."""
    prompt = _count(_field(reported, "prompt_tokens"))
    cached = _count(_field(_field(reported, "prompt_tokens_details"), "cached_tokens"))
    if cached is None:
        cached = _count(_field(reported, "prompt_cache_hit_tokens"))
    if cached is None:
        cached = _count(_field(timings, "cache_n"))
    if cached is not None and prompt is not None and cached > prompt:
        cached = None
    return Usage(prompt=prompt, completion=_count(_field(reported, "completion_tokens")), cached=cached)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _count(value: Any) -> int | None:
    """Read a number of tokens, also from a float or a string; ``None`` if it is not a valid count."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    possible = not isinstance(value, bool) and math.isfinite(number) and 0 <= number <= _MAX_TOKENS
    return int(number) if possible and number.is_integer() else None


def _read_calls(listed: Any) -> tuple[ToolCall, ...]:
    """Read the calls of a reply. Entries without a function name cannot be answered and are left out."""
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    functions = ((call.get("id"), call.get("function")) for call in calls)
    return tuple(
        ToolCall(id=_plain(name), name=_plain(function["name"]), arguments=_plain(function.get("arguments")) or "{}")
        for name, function in functions
        if isinstance(function, dict) and function.get("name")
    )
