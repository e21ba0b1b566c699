"""Reads a server's list of models: their names, and the context length where the server gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ace_bench.core.typed import decoder_of

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
