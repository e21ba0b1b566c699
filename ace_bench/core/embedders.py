"""Embedders by name: which one a run takes by default, and what identifies its vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError
from ace_bench.core.settings import NotNegative, Text

HASHING = "hashing"
"""The name of hashed words as an embedder."""
STATIC = "static:"
"""What the name of a static model begins with."""
_MODEL_FILES = frozenset({".json", ".txt", ".model", ".safetensors", ".bin"})
"""Files of a model's folder that decide its vectors: configuration, vocabulary and weights."""


@dataclass(frozen=True, kw_only=True)
class EmbedderSettings:
    """An OpenAI-compatible endpoint of embeddings, such as ``http://localhost:8000/v1``.

    ``key_env`` is the environment variable of its key, ``None`` if it needs none. ``usd_per_million`` is the price
    of a million tokens, ``None`` if unknown. ``simulated`` marks vectors that come from no model.
    """

    url: Text
    model: Text
    key_env: Text | None = None
    usd_per_million: NotNegative | None = None
    simulated: bool = False


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


def embedder_identity(setting: Any) -> Any:
    """Return what decides the vectors of an embedder: an endpoint's model, a folder's content, or its name."""
    if isinstance(setting, Mapping):
        return f"endpoint: {setting.get('model')}"
    if isinstance(setting, str) and (folder := model_folder(setting)) is not None and folder.is_dir():
        kind = STATIC if setting.startswith(STATIC) else ""
        return f"{kind}folder: sha256 {_digest_of_model(folder)[:16]}"
    return setting


def _digest_of_model(folder: Path) -> str:
    files = (path for path in folder.rglob("*") if path.suffix in _MODEL_FILES and path.is_file())
    model_files = sorted((path.relative_to(folder).as_posix(), path) for path in files)
    stats = ((name, str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for name, path in model_files)
    return _digest_of_files(tuple(stats))


@lru_cache(maxsize=8)
def _digest_of_files(files: tuple[tuple[str, str, int, int], ...]) -> str:
    """Name files by their relative paths and contents; unchanged files are read once, as plans are compared often."""
    digests = []
    for name, path, *_ in files:
        try:
            with Path(path).open("rb") as file:
                digests.append((name, hashlib.file_digest(file, "sha256").hexdigest()))
        except OSError as error:
            raise ConfigError(f"the embedding model's file {path} cannot be read: {error.strerror}") from error
    return digest_of(digests)
