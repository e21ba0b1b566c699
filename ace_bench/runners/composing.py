"""The configuration of one run, as plain values. What a command's words compose to is cached on disk."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, FileUnwritable
from ace_bench.core.resources import config_folders
from ace_bench.core.secrets import refuse_secret_arguments, refuse_secrets
from ace_bench.store.authors_code import with_commit_apart
from ace_bench.store.files import cache_folder, read_sealed, write_sealed

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ace_bench.runners.planning import Composer

AUTOMATIC = "auto"
_FORM = "settings, choices, text and automatic embedder"
"""What the cache holds; other words keep older files from being read."""
_PURE = ("oc.select",)
"""Resolvers that depend on the configuration alone."""
_RESOLVER = re.compile(r"\$\{\s*([\w.]+)\s*:")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The resolved settings of a run, the option chosen in each group, and the settings as YAML.

    ``automatic``: the settings left the embedder open, and ``settings`` names the one that was chosen.
    """

    settings: Mapping[str, Any]
    choices: Mapping[str, str]
    text: str
    automatic: bool = False


def compose_run(words: Sequence[str], compose: Composer | None = None) -> RunConfig:
    """Return what the overrides of a command compose to; raises ``ConfigError`` with the fix.

    ``compose`` has read the configuration files already.
    """
    words = with_commit_apart(words)
    refuse_secret_arguments(words)
    folders = config_folders()
    cached = cache_folder("runs") / f"{digest_of([_FORM, digest_of_configs(folders), list(words)])}.msgpack"
    if (content := read_sealed(cached)) is not None:
        return RunConfig(**msgspec.msgpack.decode(content))
    from ace_bench.runners.override_help import explain  # Hydra takes a third of a second to import
    from ace_bench.runners.planning import Composer

    with explain(folders, words):
        config, choices = (compose or Composer(folders)).compose(words)
    composed = settled(config, choices)
    with suppress(FileUnwritable, OSError):  # without a cache, a start only takes longer
        if set(_RESOLVER.findall(str(config))) <= set(_PURE):
            write_sealed(cached, msgspec.msgpack.encode(asdict(composed)))
    return composed


def settled(config: DictConfig, choices: Mapping[str, str], *, written: bool = True) -> RunConfig:
    """Return a composed configuration as plain values, with ``embedder=auto`` replaced by the embedder's name.

    ``written``: the run may write it. Raises ``ConfigError`` for an interpolation that cannot be resolved, and for a
    secret, because the configuration is written to files.
    """
    from copy import deepcopy

    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from ace_bench.runners.planning import settle_embedder

    automatic = config.get("embedder") == AUTOMATIC
    if automatic:
        config = deepcopy(config)
        settle_embedder(config)
    try:
        settings: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        problem = str(error).splitlines()[0]
        raise ConfigError(f"{error.full_key} cannot be resolved: {problem}; correct what it refers to") from error
    refuse_secrets(settings)
    text = OmegaConf.to_yaml(config, resolve=True) if written else ""
    return RunConfig(settings=settings, choices=dict(choices), text=text, automatic=automatic)


def digest_of_configs(folders: Sequence[Path]) -> str:
    """Name the content of configuration folders, and the installed packages that decide what they compose to."""
    files = ((folder, path) for folder in folders for path in sorted(folder.rglob("*.yaml")))
    contents = [(str(path.relative_to(folder)), path.read_bytes()) for folder, path in files]
    packages = (find_spec(name) for name in ("hydra", "omegaconf", "sentence_transformers"))
    installed = [spec and spec.origin and (spec.origin, Path(spec.origin).stat().st_mtime_ns) for spec in packages]
    return digest_of([installed, contents])
