"""The identity of a run: the settings that can change an answer, and the content of the files they name.

Only ``identity_settings`` derives these settings from a configuration. A run writes them to ``identity.json`` when it
is planned; tables and ``reproduce`` compare that file with the identity settings of their plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ace_bench.core.digest import digest_of, digest_of_text
from ace_bench.core.role_sampling import given_by_role
from ace_bench.core.types import Record

HASHING = "hashing"
"""The name of hashed words as an embedder."""
GROUPS = ("task", "method", "mode", "agent")
TOP = ("labels", "limit", "prompts", "embedder")
CONTEXT_FILES = (("method", "initial"), ("method", "context"), ("mode", "context"), ("agent", "demonstrations"))
"""Settings that may name a file; its content identifies a run, not its path."""
LOADING = ("quantization", "max_model_len", "dtype", "flags")
"""Settings of a started server that affect how its model is loaded."""

_TARGET = "_target_"
_PLACES = {"task": ("data_dir", "source", "sample_data", "data", "instruction")}
"""Settings that say where data is, or hold or name a text; data and texts count by checksum."""
_BY_CONTENT = ("prompts", "embedder")
"""Settings left out of the digest: templates count by content, an embedder in the settings of its user."""
_ACCESS = (
    *(_TARGET, "base_url", "url", "launch", "server", "api_key_env", "extra_headers", "headers_from_env"),
    *("context_length", "cache", "prices", "retry", "rate", "timeout", "connections", "simulated"),
    *("client", "azure"),
)
"""How a backbone is reached, paced, priced and cached."""
_NOT_SENT = (_TARGET, "seed", "max_tokens_field")


@dataclass(frozen=True, kw_only=True)
class RunIdentity:
    """``settings`` come from ``identity_settings``.

    ``contents`` are the source and checksums of the data, the digest of the templates, and the ``identity`` of each
    backbone.
    """

    settings: Record
    contents: Record

    @property
    def digest(self) -> str:
        """SHA-256 (hex); the run folder's name starts with it."""
        named = {key: value for key, value in self.settings.items() if key not in _BY_CONTENT}
        return digest_of({**named, "contents": self.contents})

    def dump(self) -> Record:
        """Return the content of ``identity.json``."""
        return {"digest": self.digest, "settings": self.settings, "contents": self.contents}


def default_embedder(*, simulated: bool) -> str:
    """Return the embedder that ``embedder=auto`` selects.

    The official code's sentence model where sentence-transformers is installed, else hashed words, which need nothing.
    What is installed decides, not what can be downloaded today: the same command then continues the same run.
    """
    installed = find_spec("sentence_transformers") is not None
    return "sentence-transformers/all-mpnet-base-v2" if installed and not simulated else HASHING


def identity_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a resolved configuration that can change an answer, under their own keys.

    Left out are the seed, paths, budgets, concurrency, trackers, and how a backbone is reached. A context file counts
    by the SHA-256 of its content, or by its path if it does not exist.
    """
    config = _named_embedder(config)
    found = {group: {k: v for k, v in config[group].items() if k not in _PLACES.get(group, ())} for group in GROUPS}
    for group, name in CONTEXT_FILES:
        path = found[group].get(name)
        if path is not None and Path(path).is_file():
            found[group][name] = digest_of_text(Path(path).read_text(encoding="utf-8", errors="replace"))
    return {
        **found,
        **{name: config.get(name) for name in TOP},
        **({"sampling": by_role} if (by_role := given_by_role(config)) else {}),
        **({"unreadable_replies": "fault"} if config.get("unreadable_replies") == "fault" else {}),
        "backbone": backbone_settings(config["backbone"]),
        "roles": {
            role: backbone_settings(backbone) for role, backbone in (config.get("roles") or {}).items() if backbone
        },
    }


def _named_embedder(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put the model's name in place of an endpoint of embeddings: its address, key and price change no vector."""
    endpoint = config.get("embedder")
    if not isinstance(endpoint, Mapping):
        return config

    def named(value: Any) -> Any:
        if value == endpoint:
            return f"endpoint: {endpoint.get('model')}"
        return {key: named(one) for key, one in value.items()} if isinstance(value, Mapping) else value

    return {**config, "method": named(config["method"]), "embedder": named(endpoint)}


def backbone_settings(backbone: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a backbone that can change an answer: those in its ``identity``."""
    found = {key: value for key, value in backbone.items() if key not in _ACCESS and value is not None}
    if found.get("structured") == "auto":
        found["structured"] = "json_schema"  # the first that is tried; what the server takes is in its calls
    if found.get("bound_replies") is True:
        del found["bound_replies"]
    sampling = backbone.get("sampling")
    if isinstance(sampling, Mapping):
        sent = {key: value for key, value in sampling.items() if key not in _NOT_SENT}
        # Runs that differ in the seed alone are repetitions; sampling without a seed is a different setting.
        found["sampling"] = {**sent, "seed": None} if sampling.get("seed") is None else sent
    if backbone.get("launch"):
        server = backbone["server"]
        found["server"] = {key: server[key] for key in ("served_name", *LOADING) if server.get(key)}
    return found
