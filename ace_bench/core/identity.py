"""What tells one run from another: the settings that can change an answer, and the content of what they name.

``deciding`` is the only way from a configuration to these settings. A run writes them when it is planned
(``identity.json``); tables and ``reproduce`` compare what was written with what ``deciding`` gives for their plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ace_bench.core.digest import digest_of, digest_of_text
from ace_bench.core.types import Record

GROUPS = ("task", "method", "mode", "agent")
TOP = ("labels", "limit", "prompts", "embedder")
CONTEXT_FILES = (("method", "initial"), ("method", "context"), ("mode", "context"), ("agent", "demonstrations"))
"""Settings that may name a file; its content identifies a run, not its path."""
LOADING = ("quantization", "max_model_len", "dtype", "flags")
"""Settings of a server started for a run that say how its model is loaded."""

_TARGET = "_target_"
_PLACES = {"task": ("data_dir", "source", "sample_data")}
"""Where to find data that a run identifies by checksum."""
_BY_CONTENT = ("prompts", "embedder")
"""Names that the digest leaves out: templates count by their content, an embedder where a method uses it."""
_ACCESS = (
    *(_TARGET, "base_url", "url", "launch", "server", "api_key_env", "extra_headers", "headers_from_env"),
    *("context_length", "cache", "prices", "retry", "rate", "timeout", "connections", "simulated"),
)
"""How a backbone is reached, paced, priced and cached."""
_NOT_SENT = (_TARGET, "seed", "max_tokens_field")


@dataclass(frozen=True, kw_only=True)
class RunIdentity:
    """``settings`` come from ``deciding``.

    ``contents`` are known where the run is made: the data's source and checksums, the digest of the templates, and
    what the built backbones say of themselves.
    """

    settings: Record
    contents: Record

    @property
    def digest(self) -> str:
        """SHA-256 (hex); the run folder's name starts with it."""
        named = {key: value for key, value in self.settings.items() if key not in _BY_CONTENT}
        return digest_of({**named, "contents": self.contents})

    def dump(self) -> Record:
        """Return it as a run folder holds it."""
        return {"digest": self.digest, "settings": self.settings, "contents": self.contents}


def usual_embedder(*, simulated: bool) -> str:
    """Return what ``embedder=auto`` stands for."""
    return "hashing" if simulated else "sentence-transformers/all-mpnet-base-v2"


def deciding(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a resolved configuration that can change an answer, under their own keys.

    Left out are the seed, places, budgets, concurrency, trackers, and how a backbone is reached. A context file counts
    by the SHA-256 of its content; the path stands where there is no such file.
    """
    found = {group: {k: v for k, v in config[group].items() if k not in _PLACES.get(group, ())} for group in GROUPS}
    for group, name in CONTEXT_FILES:
        path = found[group].get(name)
        if path is not None and Path(path).is_file():
            found[group][name] = digest_of_text(Path(path).read_text(encoding="utf-8", errors="replace"))
    return {
        **found,
        **{name: config.get(name) for name in TOP},
        "backbone": answering(config["backbone"]),
        "roles": {role: answering(backbone) for role, backbone in (config.get("roles") or {}).items() if backbone},
    }


def answering(backbone: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a backbone that can change an answer: those that are in its ``identity``."""
    found = {key: value for key, value in backbone.items() if key not in _ACCESS and value is not None}
    sampling = backbone.get("sampling")
    if isinstance(sampling, Mapping):
        sent = {key: value for key, value in sampling.items() if key not in _NOT_SENT}
        # Seeds of one experiment belong together; no seed at all is another way of sampling.
        found["sampling"] = {**sent, "seed": None} if sampling.get("seed") is None else sent
    if backbone.get("launch"):
        server = backbone["server"]
        found["server"] = {key: server[key] for key in ("served_name", *LOADING) if server.get(key)}
    return found
