"""Which runs are the same: the settings that can change an answer, and the content of the files they name.

Only ``identity_settings`` derives these settings from a configuration. A run writes them to ``identity.json`` when it
is planned; tables and ``reproduce`` compare that file with the identity settings of their plans. This module also
fills, compares and names them by a digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.embedders import embedder_identity
from ace_bench.core.encoding import digest_of, digest_of_text
from ace_bench.core.settings import given_by_role
from ace_bench.core.types import Record

EMBEDDER = "embedder"
GROUPS = ("task", "method", "mode", "agent")
TOP = ("labels", "limit", "prompts", "embedder", "unreadable_replies", "repeat_calls")
FORM = 2
"""The form of identities: another one names no run of this version, so that digests of two forms never meet."""
CONTEXT_FILES = (("method", "initial"), ("method", "context"), ("mode", "context"), ("agent", "demonstrations"))
"""Settings that may name a file; its content identifies a run, not its path."""
LOADING = ("quantization", "max_model_len", "flags")
"""Settings of a started server that affect how its model is loaded."""

_TARGET = "_target_"
_FIXED: Mapping[str, Any] = {
    "method.curator_every": 1,
    "method.bullet_tokens": 1000,
    "method.unknown_section": "reject",
    "method.merge_wording": "keep",
    "method.curator_top_k": 40,
    "method.refiner.headroom": 0.0,
    "method.retrieval.typos.similarity": 0.8,
    "method.minibatch": 3,
    "method.order": "similar_last",
    "method.shown": "all",
    "agent.sandbox": {
        "_target_": "ace_bench.agents.sandbox.Sandbox",
        "seconds": 3,
        "memory_mib": 512,
        "output_chars": 10_000,
    },
    "task.limits": {"timeout": 30, "rows": 1_000_000, "cell_bytes": 10_000_000, "depth": 200, "memory_mb": 1024},
}
"""Settings of 0.3 that are constants now, with the values of the constants."""
PLACES = ("data_dir", "source", "sample_data", "data")
"""Settings of a task that say where its data is; the data counts by its checksums."""
_FILES = (*CONTEXT_FILES, ("task", "instruction"))
_BY_CONTENT = ("prompts", "embedder")
"""Settings left out of the digest: templates count by content, an embedder in the settings of its user."""
ACCESS = (
    *(_TARGET, "base_url", "url", "launch", "server", "api_key_env", "extra_headers", "headers_from_env"),
    *("context_length", "cache", "prices", "retry", "rate", "timeout", "connections", "simulated"),
    *("client", "azure", "aliases"),
)
"""Settings of how a backbone is reached, paced, priced and cached."""
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
        naming_settings = {key: value for key, value in self.settings.items() if key not in _BY_CONTENT}
        return digest_of({**naming_settings, "contents": self.contents, "form": FORM})

    def dump(self) -> Record:
        """Return the content of ``identity.json``."""
        return {"form": FORM, "digest": self.digest, "settings": self.settings, "contents": self.contents}


def identity_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a resolved configuration that can change an answer, under their own keys.

    Left out are the seed, paths, budgets, concurrency, trackers, and how a backbone is reached. A context file counts
    by the SHA-256 of its content, or by its path if it does not exist.
    """
    config = with_embedder(config, embedder_identity(config.get("embedder")))
    groups = {group: dict(config[group]) for group in GROUPS}
    for name in PLACES:
        groups["task"].pop(name, None)
    for group, name in _FILES:
        path = groups[group].get(name)
        if isinstance(path, str) and _is_file(path):
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            groups[group][name] = text.strip() if name == "instruction" else digest_of_text(text)
    return {
        **groups,
        **{name: config.get(name) for name in TOP},
        "sampling": given_by_role(config),
        "backbone": backbone_settings(config["backbone"]),
        "roles": {
            role: backbone_settings(backbone) for role, backbone in (config.get("roles") or {}).items() if backbone
        },
    }


def with_embedder(config: Mapping[str, Any], name: Any) -> Mapping[str, Any]:
    """Return a resolved configuration with another embedder, which the method's settings repeat."""
    embedder = config.get("embedder")

    def named(value: Any) -> Any:
        if value == embedder:
            return name
        return {key: named(item) for key, item in value.items()} if isinstance(value, Mapping) else value

    return {**config, "method": named(config["method"]), "embedder": name}


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # a text that is no path: it is too long, or holds a null byte
        return False


def fill_settings(settings: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings, with missing ones filled in from ``usual``, also in nested parts that build the same class.

    A run that was made before a setting existed is the one with its default.
    """
    filled = {**usual, **settings}
    for key, part in settings.items():
        default = usual.get(key)
        if isinstance(part, Mapping) and isinstance(default, Mapping) and _class_of(part) == _class_of(default):
            filled[key] = fill_settings(part, default)
    return filled


def fixed_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of 0.3 that are constants now, by path. One takes the value of another setting."""
    return {**_FIXED, "method.token_budget": _part(settings, ("method", "refiner")).get("max_tokens")}


def without_fixed(settings: Mapping[str, Any], usual: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return settings without those that are constants now, where a run had the same value.

    ``usual`` are today's defaults: a class that still has such a setting keeps it.
    """
    for path, value in fixed_settings(settings).items():
        *groups, key = path.split(".")
        had = _part(settings, groups)
        if key in had and had[key] == value and key not in _part(usual, groups):
            settings = _without(settings, groups, key)
    return settings


def _part(settings: Mapping[str, Any], groups: Sequence[str]) -> Mapping[str, Any]:
    for name in groups:
        part = settings.get(name)
        settings = part if isinstance(part, Mapping) else {}
    return settings


def _without(settings: Mapping[str, Any], groups: Sequence[str], key: str) -> Mapping[str, Any]:
    if not groups:
        return {name: value for name, value in settings.items() if name != key}
    return {**settings, groups[0]: _without(settings[groups[0]], groups[1:], key)}


def settings_digest(settings: Mapping[str, Any], *, before: bool = True) -> str:
    """Return a name of the settings. Runs with the same name are repetitions, even if data or templates differ.

    Without ``before`` the evaluation before adaptation, which changes no other result, is left out. A class counts by
    its name: modules move between versions.
    """
    naming_settings = _without_modules(settings)
    return digest_of(
        naming_settings if before else {**naming_settings, "mode": {**naming_settings["mode"], "before": False}}
    )


def _without_modules(part: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: _without_modules(value) if isinstance(value, Mapping) else value for key, value in part.items()}
    return {**kept, _TARGET: _class_of(part)} if _TARGET in part else kept


def _class_of(part: Mapping[str, Any]) -> str:
    """Return the name of the class that a part builds, "" for settings that build none."""
    return str(part.get(_TARGET, "")).rpartition(".")[2]


def changed_settings(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path of each differing setting and its value in ``ours``, or ``None`` if only ``theirs`` has it."""
    for key in sorted({*ours, *theirs} - {_TARGET}):
        our_value, their_value, name = ours.get(key), theirs.get(key), f"{path}.{key}" if path else key
        if our_value == their_value:
            continue
        if isinstance(our_value, Mapping) and isinstance(their_value, Mapping):
            yield from changed_settings(our_value, their_value, name)
        else:
            yield name, our_value


def backbone_settings(backbone: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a backbone that can change an answer: those in its ``identity``."""
    kept = {key: value for key, value in backbone.items() if key not in ACCESS and value is not None}
    if kept.get("structured") == "auto":
        kept["structured"] = "json_schema"  # the first that is tried; what the server takes is in its calls
    if "empty" in (backbone.get("retry") or {}):
        kept["retry"] = {"empty": backbone["retry"]["empty"]}
    sampling = backbone.get("sampling")
    if isinstance(sampling, Mapping):
        sent = {key: value for key, value in sampling.items() if key not in _NOT_SENT}
        # Runs that differ only in the seed are repetitions. Sampling without a seed is a different setting.
        kept["sampling"] = {**sent, "seed": None} if sampling.get("seed") is None else sent
    if backbone.get("launch"):
        server = backbone["server"]
        loaded = {key: server[key] for key in ("served_name", *LOADING) if server.get(key)}
        kept.update({"server": loaded} if loaded else {})
    return kept
