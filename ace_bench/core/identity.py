"""Which runs are the same: the settings that can change an answer, and the content of the files they name.

Only ``identity_settings`` derives these settings from a configuration. A run writes them to ``identity.json`` when it
is planned; tables and ``reproduce`` compare that file with the identity settings of their plans. How they are filled,
compared and named by a digest is said here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.embedders import embedder_identity, with_embedder
from ace_bench.core.encoding import digest_of, digest_of_text
from ace_bench.core.settings import given_by_role
from ace_bench.core.types import Record

EMBEDDER = "embedder"
GROUPS = ("task", "method", "mode", "agent")
TOP = ("labels", "limit", "prompts", "embedder")
CONTEXT_FILES = (("method", "initial"), ("method", "context"), ("mode", "context"), ("agent", "demonstrations"))
"""Settings that may name a file; its content identifies a run, not its path."""
LOADING = ("arguments", "quantization", "max_model_len", "dtype", "flags")
"""Settings of a started server that affect how its model is loaded."""

_TARGET = "_target_"
_PLACES = {"task": ("data_dir", "source", "sample_data", "data", "instruction")}
"""Settings that say where data is, or hold or name a text; data and texts count by checksum."""
_BY_CONTENT = ("prompts", "embedder")
"""Settings left out of the digest: templates count by content, an embedder in the settings of its user."""
_ACCESS = (
    *(_TARGET, "base_url", "url", "launch", "server", "api_key_env", "extra_headers", "headers_from_env"),
    *("context_length", "cache", "prices", "retry", "rate", "timeout", "connections", "simulated"),
    *("client", "azure", "batch"),
)
"""How a backbone is reached, paced, priced and cached."""
_YOUNGER = {"curator_sees": ("all", "curator_top_k"), "proposals": (None, "parents", "keep")}
"""Settings of methods that are younger than their runs: with its default the first leaves out those named behind it."""
_NOT_SENT = (_TARGET, "seed", "max_tokens_field")


class RunIdentity(msgspec.Struct, frozen=True, kw_only=True):
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


def identity_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a resolved configuration that can change an answer, under their own keys.

    Left out are the seed, paths, budgets, concurrency, trackers, and how a backbone is reached. A context file counts
    by the SHA-256 of its content, or by its path if it does not exist.
    """
    config = with_embedder(config, embedder_identity(config.get("embedder")))
    method = config["method"]
    unset = [name for one, (usual, *more) in _YOUNGER.items() if method.get(one) == usual for name in (one, *more)]
    left_out = {**_PLACES, "method": unset}
    found = {group: {k: v for k, v in config[group].items() if k not in left_out.get(group, ())} for group in GROUPS}
    if "window" in found["mode"] and found["mode"].get("batch_size") == 1:
        del found["mode"]["batch_size"]  # a setting that is younger than online runs
    for group, name in CONTEXT_FILES:
        path = found[group].get(name)
        if isinstance(path, str) and Path(path).is_file():
            found[group][name] = digest_of_text(Path(path).read_text(encoding="utf-8", errors="replace"))
    return {
        **found,
        **{name: config.get(name) for name in TOP},
        **({"sampling": by_role} if (by_role := given_by_role(config)) else {}),
        **({"unreadable_replies": "fault"} if config.get("unreadable_replies") == "fault" else {}),
        **({"repeat_calls": True} if config.get("repeat_calls") else {}),
        "backbone": backbone_settings(config["backbone"]),
        "roles": {
            role: backbone_settings(backbone) for role, backbone in (config.get("roles") or {}).items() if backbone
        },
    }


def fill_settings(settings: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings, with missing ones filled in from ``usual``, also in nested parts that build the same class.

    A run that was made before a setting existed is the one with its default.
    """
    found = {**usual, **settings}
    for key, part in settings.items():
        other = usual.get(key)
        if isinstance(part, Mapping) and isinstance(other, Mapping) and part.get(_TARGET) == other.get(_TARGET):
            found[key] = fill_settings(part, other)
    return found


def settings_digest(settings: Mapping[str, Any], *, before: bool = True) -> str:
    """Name settings, so that runs with equal ones are repetitions, whatever their data and templates hold.

    Without ``before`` the evaluation before adaptation, which changes no other result, is left out.
    """
    return digest_of(settings if before else {**settings, "mode": {**settings["mode"], "before": False}})


def changed_settings(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value, of ``ours``, of the settings that differ; ``None`` for one that only ``theirs`` has."""
    for key in sorted({*ours, *theirs} - {_TARGET}):
        mine, other, name = ours.get(key), theirs.get(key), f"{path}.{key}" if path else key
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            yield from changed_settings(mine, other, name)
        elif mine != other:
            yield name, mine


def backbone_settings(backbone: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a backbone that can change an answer: those in its ``identity``."""
    found = {key: value for key, value in backbone.items() if key not in _ACCESS and value is not None}
    if found.get("structured") == "auto":
        found["structured"] = "json_schema"  # the first that is tried; what the server takes is in its calls
    if found.get("bound_replies") is True:
        del found["bound_replies"]
    if (backbone.get("retry") or {}).get("empty") is False:
        found["retry"] = {"empty": False}
    sampling = backbone.get("sampling")
    if isinstance(sampling, Mapping):
        sent = {key: value for key, value in sampling.items() if key not in _NOT_SENT}
        # Runs that differ in the seed alone are repetitions; sampling without a seed is a different setting.
        found["sampling"] = {**sent, "seed": None} if sampling.get("seed") is None else sent
    if backbone.get("launch"):
        server = backbone["server"]
        found["server"] = {key: server[key] for key in ("served_name", *LOADING) if server.get(key)}
    return found
