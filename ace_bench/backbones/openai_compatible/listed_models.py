"""Reads which models a server lists, and how many tokens of prompt and reply together it serves.

What a model was trained with is not what a server serves: llama.cpp's ``n_ctx_train``, and LM Studio's
``max_context_length`` of a model that is not loaded, are not read. Some servers do not list the length but report it
elsewhere (``OTHER_PLACES``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ace_bench.core.encoding import decoder_of

_LENGTHS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")
"""vLLM and SGLang; LM Studio; OpenRouter and Together; Groq; Mistral."""


class ListedModel(msgspec.Struct, frozen=True):
    """A model's name, and the most tokens of a prompt with its reply; ``None``: the server does not say."""

    id: str
    context_length: int | None = None


class _Models(msgspec.Struct):
    data: list[Any] = []


def read_models(body: bytes) -> Sequence[ListedModel]:
    """Read the body of a reply to ``GET /models``; empty if it is not such a list."""
    try:
        listed = decoder_of(_Models).decode(body).data
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    models = (model for model in listed if isinstance(model, dict))
    return [ListedModel(str(model["id"]), _listed_length(model)) for model in models if model.get("id")]


def _listed_length(model: Mapping[str, Any]) -> int | None:
    """Return the shortest length that is served: OpenRouter's provider may serve less than the model can."""
    lmstudio = "state" in model
    names = [name for name in _LENGTHS if not (lmstudio and name == "max_context_length")]
    meta, provider = model.get("meta"), model.get("top_provider")
    stated = next((length for name in names if (length := _length(model.get(name)))), None)
    stated = stated or (_length(meta.get("n_ctx")) if isinstance(meta, Mapping) else None)
    served = _length(provider.get("context_length")) if isinstance(provider, Mapping) else None
    return min(filter(None, (stated, served)), default=None)


def _length(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _of_llama_cpp(body: Mapping[str, Any], model: str) -> int | None:
    del model
    settings = body.get("default_generation_settings")
    return _length(settings.get("n_ctx")) if isinstance(settings, Mapping) else None


def _of_ollama(body: Mapping[str, Any], model: str) -> int | None:
    """Read the loaded models; a name without a tag means ``latest``."""
    wanted = model if ":" in model else f"{model}:latest"
    return next(
        (_length(loaded.get("context_length")) for loaded in _dicts(body, "models") if loaded.get("name") == wanted),
        None,
    )


def _of_tgi(body: Mapping[str, Any], model: str) -> int | None:
    del model
    return _length(body.get("max_total_tokens"))


def _of_lm_studio(body: Mapping[str, Any], model: str) -> int | None:
    return next((_listed_length(listed) for listed in _dicts(body, "data") if listed.get("id") == model), None)


OTHER_PLACES: Mapping[str, Callable[[Mapping[str, Any], str], int | None]] = {
    "/props": _of_llama_cpp,
    "/api/ps": _of_ollama,
    "/info": _of_tgi,
    "/api/v0/models": _of_lm_studio,
}
"""Paths next to ``/v1`` where self-hosted servers report the context length, each with its parser."""


def read_other_place(path: str, body: bytes, model: str) -> int | None:
    """Read a length from the body of a reply of one of ``OTHER_PLACES``."""
    try:
        page = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return OTHER_PLACES[path](page, model) if isinstance(page, Mapping) else None


def _dicts(body: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    listed = body.get(name)
    return (entry for entry in listed if isinstance(entry, Mapping)) if isinstance(listed, list) else iter(())
