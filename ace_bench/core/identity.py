"""The identity of a run: the settings that can change an answer, and the content of the files they name.

Only ``identity_settings`` derives these settings from a configuration. A run writes them to ``identity.json`` when it
is planned; tables and ``reproduce`` compare that file with the identity settings of their plans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ace_bench.core.digest import digest_of, digest_of_text
from ace_bench.core.errors import ConfigError
from ace_bench.core.role_sampling import given_by_role
from ace_bench.core.settings import NotNegative, Text
from ace_bench.core.types import Record

HASHING = "hashing"
"""The name of hashed words as an embedder."""
STATIC = "static:"
"""What the name of a static model begins with."""
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
    *("client", "azure"),
)
"""How a backbone is reached, paced, priced and cached."""
_NOT_SENT = (_TARGET, "seed", "max_tokens_field")
_MODEL_FILES = frozenset({".json", ".txt", ".model", ".safetensors", ".bin"})
"""Files of a model's folder that decide its vectors: configuration, vocabulary and weights."""


@dataclass(frozen=True, kw_only=True)
class EmbedderSettings:
    """An OpenAI-compatible endpoint of embeddings, such as ``http://localhost:8000/v1``.

    ``key_env`` is the environment variable of its key, ``None`` where it needs none. ``usd_per_million`` is the price
    of a million tokens, ``None`` if unknown. ``simulated`` marks vectors that come from no model.
    """

    url: Text
    model: Text
    key_env: Text | None = None
    usd_per_million: NotNegative | None = None
    simulated: bool = False


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


def model_folder(embedder: str) -> Path | None:
    """Return the folder that an embedder's name means, ``None`` for a model's name. A folder need not exist.

    A name is a path if it begins with ``/``, ``.`` or ``~``, or if there is something at that path.
    """
    name = embedder.removeprefix(STATIC)
    path = Path(name).expanduser()
    return path if name.startswith(("/", ".", "~")) or (name != HASHING and path.exists()) else None


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
    """Put what decides the vectors in place of where an embedder is: the model of an endpoint, a folder's content."""
    given = config.get("embedder")
    if isinstance(given, Mapping):
        name = f"endpoint: {given.get('model')}"
    elif isinstance(given, str) and (folder := model_folder(given)) is not None and folder.is_dir():
        kind = STATIC if given.startswith(STATIC) else ""
        name = f"{kind}folder: sha256 {_digest_of_model(folder)[:16]}"
    else:
        return config
    return with_embedder(config, name)


def with_embedder(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a resolved configuration with another embedder, which the method's settings repeat."""
    given = config.get("embedder")

    def named(value: Any) -> Any:
        if value == given:
            return name
        return {key: named(one) for key, one in value.items()} if isinstance(value, Mapping) else value

    return {**config, "method": named(config["method"]), "embedder": name}


def _digest_of_model(folder: Path) -> str:
    files = (path for path in folder.rglob("*") if path.suffix in _MODEL_FILES and path.is_file())
    found = sorted((path.relative_to(folder).as_posix(), path) for path in files)
    stats = ((name, str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for name, path in found)
    return _digest_of_files(tuple(stats))


@lru_cache(maxsize=8)
def _digest_of_files(files: tuple[tuple[str, str, int, int], ...]) -> str:
    """Name files by their relative paths and contents; unchanged files are read once, as plans are compared often."""
    found = []
    for name, path, *_ in files:
        try:
            with Path(path).open("rb") as file:
                found.append((name, hashlib.file_digest(file, "sha256").hexdigest()))
        except OSError as error:
            raise ConfigError(f"the embedding model's file {path} cannot be read: {error.strerror}") from error
    return digest_of(found)


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
