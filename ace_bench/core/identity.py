"""Which settings of a run can change its answers: what tells runs apart, on disk and in tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GROUPS = ("task", "method", "mode", "agent")
TOP = ("labels", "limit", "prompts")
CONTEXT_FILES = (("method", "initial"), ("method", "context"), ("mode", "context"), ("agent", "demonstrations"))
"""Settings that may name a file whose content, not path, identifies a run."""
LOADING = ("quantization", "max_model_len", "dtype", "flags")
"""Settings of a server that is started for a run, of those that say how its model is loaded."""

_TARGET = "_target_"
_PLACES = {"task": ("data_dir", "source", "sample_data")}
"""Where to find what a run's own record names by checksum."""
_ACCESS = (
    *(_TARGET, "base_url", "url", "launch", "server", "api_key_env", "extra_headers", "headers_from_env"),
    *("context_length", "cache", "prices", "retry", "rate", "timeout", "connections", "simulated"),
)
"""How a backbone is reached, paced, priced and cached."""
_SAMPLING_UNASKED = (_TARGET, "seed", "max_tokens_field")


def usual_embedder(*, simulated: bool) -> str:
    """Return what ``embedder=auto`` stands for."""
    return "hashing" if simulated else "sentence-transformers/all-mpnet-base-v2"


def deciding(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a resolved configuration that can change an answer, under their own keys.

    Left out are the seed, places, budgets, concurrency, trackers, how a backbone is reached, and the embedder, which
    a run chooses by its backbone unless it is given.
    """
    found = {group: {k: v for k, v in config[group].items() if k not in _PLACES.get(group, ())} for group in GROUPS}
    return {
        **found,
        **{name: config.get(name) for name in TOP},
        "backbone": answering(config["backbone"]),
        "roles": {role: answering(backbone) for role, backbone in (config.get("roles") or {}).items() if backbone},
    }


def answering(backbone: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a backbone's settings can change an answer: those that are in its ``identity``."""
    found = {key: value for key, value in backbone.items() if key not in _ACCESS and value is not None}
    sampling = backbone.get("sampling")
    if isinstance(sampling, Mapping):
        asked = {key: value for key, value in sampling.items() if key not in _SAMPLING_UNASKED}
        # Seeds of one experiment belong together; no seed at all is another way of sampling.
        found["sampling"] = {**asked, "seed": None} if sampling.get("seed") is None else asked
    if backbone.get("launch"):
        server = backbone["server"]
        found["server"] = {key: server[key] for key in ("served_name", *LOADING) if server.get(key)}
    return found
