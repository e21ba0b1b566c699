"""Reads how many tokens a call used, and how many of its prompt came from a cache, as servers report them.

Nearly all servers count cached tokens within ``prompt_tokens``. Anthropic's own names (``input_tokens`` beside
``cache_read_input_tokens`` and ``cache_creation_input_tokens``) count them apart, so the prompt is their sum. Gateways
send Anthropic's names beside ``prompt_tokens``, too: then the prompt includes the cached tokens, unless they are more
than the whole prompt. A count that cannot be right is unknown.
"""

from __future__ import annotations

import math
from typing import Any

from ace_bench.core.types import Usage

_MAX_TOKENS = 2**53
"""The largest whole number that JSON carries safely; a larger count is a server error."""
_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("cached_tokens",),
    ("cache_read_input_tokens",),
    ("prompt_cache_hit_tokens",),
    ("num_cached_tokens",),
    ("cached_content_token_count",),
)
"""OpenAI, vLLM, SGLang and most others; OpenAI's responses; Kimi and Together; Anthropic; DeepSeek; Mistral; Gemini."""
_WRITTEN = "cache_creation_input_tokens"


def read_usage(reported: Any, beside: Any = None) -> Usage:
    """Return the counts of a ``usage`` object; ``beside`` is the reply, where llama.cpp reports its own counts."""
    cached = next((count for path in _CACHED if (count := _count(_at(reported, *path))) is not None), None)
    if cached is None:
        cached = _count(_at(beside, "timings", "cache_n"))
    if cached is None:
        cached = _count(_at(beside, "tokens_cached"))
    prompt = _count(_at(reported, "prompt_tokens"))
    read = _count(_at(reported, "cache_read_input_tokens"))
    apart = prompt is None or (read is not None and read > prompt)
    if prompt is None:
        prompt = _count(_at(reported, "input_tokens"))
    if prompt is not None and read is not None and apart:
        prompt += read + (_count(_at(reported, _WRITTEN)) or 0)
    if cached is not None and prompt is not None and cached > prompt:
        cached = None
    completion = _count(_at(reported, "completion_tokens"))
    return Usage(
        prompt=prompt,
        completion=_count(_at(reported, "output_tokens")) if completion is None else completion,
        cached=cached,
    )


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _count(value: Any) -> int | None:
    """Read a number of tokens, also from a float or a string; ``None`` if it is not a valid count."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    possible = not isinstance(value, bool) and math.isfinite(number) and 0 <= number <= _MAX_TOKENS
    return int(number) if possible and number.is_integer() else None
