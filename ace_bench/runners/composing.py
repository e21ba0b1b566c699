"""Composes the configuration of one run, as plain values, from the overrides of a command.

The configuration is cached on disk, so that the next start does not import Hydra.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import msgspec

from ace_bench.core.embedders import default_embedder
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, FileUnwritable
from ace_bench.core.resources import config_folders
from ace_bench.core.secrets import refuse_secret_arguments, refuse_secrets
from ace_bench.store.files import cache_folder, read_sealed, write_sealed

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ace_bench.runners.planning import Composer

_AUTOMATIC = "auto"
_OFFICIAL = "protocol=official"
_FORM = "settings, choices, text and automatic embedder"
"""What the cache holds. A new text here keeps older files from being read."""
_PURE = ("oc.select",)
"""Resolvers that only depend on the configuration."""
_RESOLVER = re.compile(r"\$\{\s*([\w.]+)\s*:")
_REFERENCE = re.compile(r"(?<!\\)\$\{[^{}]*\}")
_FILE_NAME = re.compile(r"[/~.]|\$\{[^{}]*\}/|[^\n]*\.\w{1,7}$")


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The resolved settings of a run, the option chosen in each group, and the settings as YAML.

    ``automatic`` says that the user left the embedder open. Then ``settings`` names the embedder that was chosen.
    """

    settings: Mapping[str, Any]
    choices: Mapping[str, str]
    text: str
    automatic: bool = False


def compose_run(overrides: Sequence[str], compose: Composer | None = None) -> RunConfig:
    """Compose the overrides of a command; raises ``ConfigError`` with the fix.

    A given ``compose`` is used because it has already read the configuration files.
    """
    overrides = with_commit_apart(overrides)
    refuse_secret_arguments(overrides)
    folders = config_folders()
    cached = cache_folder("runs") / f"{digest_of([_FORM, digest_of_configs(folders), list(overrides)])}.msgpack"
    if (known_config := read_composed(cached)) is not None:
        return known_config
    from ace_bench.runners.planning import Composer  # Hydra takes a third of a second to import

    config, choices = (compose or Composer(folders)).compose_or_explain(overrides)
    composed = settle(config, choices)
    keep_composed(cached, config, composed)
    return composed


def keep_composed(cached: Path, config: DictConfig, composed: RunConfig) -> None:
    """Write a composed configuration to the cache, unless it also depends on something outside the configuration."""
    with suppress(FileUnwritable, OSError, OverflowError):  # without a cache, a start only takes longer
        if set(_RESOLVER.findall(str(config))) <= set(_PURE):
            write_sealed(cached, msgspec.msgpack.encode(composed))


def read_composed(cached: Path) -> RunConfig | None:
    """Return what ``keep_composed`` wrote; ``None`` if it is missing or damaged."""
    content = read_sealed(cached)
    return None if content is None else msgspec.msgpack.decode(content, type=RunConfig)


def with_commit_apart(overrides: Sequence[str]) -> list[str]:
    """Write ``protocol=official@COMMIT`` as two settings: the commit is checked, the option is the protocol's."""
    parts: list[str] = []
    for override in overrides:
        protocol, separator, commit = override.partition("@")
        parts += [protocol, f"official_commit='{commit}'"] if separator and protocol == _OFFICIAL else [override]
    return parts


def settle(config: DictConfig, choices: Mapping[str, str], *, written: bool = True) -> RunConfig:
    """Return a composed configuration as plain values.

    In both ``embedder=auto`` becomes the embedder's name, and ``task.metric=auto`` the metric's.

    ``written`` means that the run may write the text to a file. Raises ``ConfigError`` for an interpolation that cannot
    be resolved, and for a secret, because the configuration is written to files.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    automatic = config.get("embedder") == _AUTOMATIC
    if automatic:
        roles = config.get("roles")
        backbones = [config.get("backbone"), *(roles.values() if isinstance(roles, Mapping) else ())]
        config.embedder = default_embedder(simulated=any(map(_is_simulated, backbones)))
    _settle_metric(config)
    task = config.get("task")
    if OmegaConf.is_config(task):
        refuse_settings_in_texts(OmegaConf.to_container(task), "task")
    try:
        settings: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        problem = str(error).splitlines()[0]
        raise ConfigError(f"{error.full_key} cannot be resolved: {problem}; correct what it refers to") from error
    refuse_secrets(settings)
    text = OmegaConf.to_yaml(config, resolve=True) if written else ""
    return RunConfig(settings=settings, choices=dict(choices), text=text, automatic=automatic)


def _settle_metric(config: DictConfig) -> None:
    """Replace ``task.metric=auto`` by what the task's class chooses for this run, if it has ``choose_metric``."""
    from omegaconf import OmegaConf

    if OmegaConf.select(config, "task.metric", default=None) != _AUTOMATIC:
        return
    if (choose_metric := getattr(_class_of(config.task), "choose_metric", None)) is not None:
        names_judge = OmegaConf.select(config, "roles.judge", default=None) is not None
        config.task.metric = choose_metric(config.task.get("judge"), names_judge=names_judge)


def refuse_settings_in_texts(value: Any, path: str) -> None:
    """Raise ``ConfigError`` for a text of a task that refers to a setting: ``Use ${name} here``.

    What models read stays as it was written. File names may refer to settings, and so may a value that consists of one
    reference alone.
    """
    if isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, item in items:
            refuse_settings_in_texts(item, f"{path}.{name}")
    elif isinstance(value, str) and (reference := _REFERENCE.search(value)):
        literal = _REFERENCE.sub("", value)
        if literal.strip() and (" " in literal or path.endswith(".instruction")) and not _FILE_NAME.match(value):
            raise ConfigError(
                f"{path}: {reference[0]} would be replaced by the value of a setting; write \\{reference[0]} where it "
                "is text"
            )


def _is_simulated(backbone: Any) -> bool:
    """Whether a backbone is simulated, by its setting or its class."""
    if not isinstance(backbone, Mapping):
        return False
    if "simulated" in backbone:
        return bool(backbone["simulated"])
    return bool(getattr(_class_of(backbone), "simulated", False))


def _class_of(part: Mapping[str, Any]) -> object:
    """Return the class of a part; ``None`` if there is no such class, which is an error when the part is built."""
    try:
        return resolve_name(str(part.get("_target_")))
    except (ImportError, AttributeError, ValueError):
        return None


def digest_of_configs(folders: Sequence[Path]) -> str:
    """Return a digest of the configuration files, and of the installed packages that affect how they are composed."""
    files = ((folder, path) for folder in folders for path in sorted(folder.rglob("*.yaml")))
    contents = [(str(path.relative_to(folder)), path.read_bytes()) for folder, path in files]
    packages = (find_spec(name) for name in ("hydra", "omegaconf", "sentence_transformers"))
    installed = [spec and spec.origin and (spec.origin, Path(spec.origin).stat().st_mtime_ns) for spec in packages]
    return digest_of([installed, contents])
