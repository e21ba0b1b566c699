"""From a resolved configuration to the parts of a run; every mistake is found here, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from ace_bench.core.backbones import Backbone
from ace_bench.core.digest import digest_of, digest_of_text
from ace_bench.core.errors import AceBenchError, ConfigError
from ace_bench.core.protocols import Agent, Judged, Method, Task
from ace_bench.core.types import Record
from ace_bench.runners.arena import GENERATOR, JUDGE
from ace_bench.runners.bench import Mode
from ace_bench.runners.observers import Tracker
from ace_bench.runners.settings import Settings, read_settings
from ace_bench.store.folder import choose_folder
from ace_bench.store.prompts import PromptSet

_GROUPS = ("agent", "task", "method", "backbone", "roles", "default_roles", "mode", "tracker")
_FILES = (("method", "initial"), ("method", "context"), ("mode", "context"), ("agent", "demonstrations"))
"""Settings that may name a file whose content, not path, identifies a run."""


@dataclass(frozen=True, kw_only=True)
class Plan(Settings):
    """Everything a run needs, checked; ``about`` opens ``metrics.json``, ``config`` is the resolved YAML."""

    task: Task
    method: Method
    mode: Mode
    agent: Agent
    prompts: PromptSet
    backbones: Mapping[str, Backbone]
    tracker: Tracker
    folder: Path
    simulated: bool
    about: Record
    config: str


def assemble(config: DictConfig, choices: Mapping[str, str], root: Path) -> Plan:
    """Build the parts. ``choices`` are Hydra's (task, method, backbone, mode), ``root`` is the project folder.

    Raises ``ConfigError`` or ``DataError`` with the mend.
    """
    settings = read_settings(config, groups=_GROUPS)
    backbones = {
        GENERATOR: _build(config, "backbone"),
        **{str(role): _build(config, f"roles.{role}") for role in config.get("roles") or {}},
    }
    simulated = any(backbone.simulated for backbone in backbones.values())
    if config.embedder == "auto":
        config.embedder = "hashing" if simulated else "sentence-transformers/all-mpnet-base-v2"
    mode: Mode = _build(config, "mode")
    method: Method = _build(config, "method")
    mode.check(method)
    task: Task = _build(config, "task", sample_allowed=simulated)
    templates = _templates(method, task)
    _check_roles(backbones, templates)
    if JUDGE in templates and JUDGE not in backbones and not simulated:
        backbones[JUDGE] = _build(config, f"default_roles.{JUDGE}")
    for split in mode.reads(method):
        task.samples(split)
    prompts = PromptSet(_prompt_folder(config.prompts, root), task=task.name, family=task.family)
    prompts.require(chain.from_iterable(templates.values()))
    resolved = cast(dict[str, Any], OmegaConf.to_container(config, resolve=True))
    about = {
        **{group: choices[group] for group in ("task", "method", "backbone", "mode")},
        "roles": {role: backbone.name for role, backbone in backbones.items()},
        "labels": settings.labels.value,
        "seed": settings.seed,
        "source": task.source,
        "simulated": simulated,
        "digest": digest_of(_identity(resolved, task, prompts, backbones, settings)),
        "prompts": {"set": str(config.prompts), "digest": prompts.digest},
        "data": dict(task.checksums),
    }
    return Plan(
        **vars(settings),
        task=task,
        method=method,
        mode=mode,
        agent=_build(config, "agent", prompts=prompts, form=method.generator),
        prompts=prompts,
        backbones=backbones,
        tracker=_build(config, "tracker"),
        folder=_folder(config, about, settings),
        simulated=simulated,
        about=about,
        config=OmegaConf.to_yaml(config, resolve=True),
    )


def _folder(config: DictConfig, about: Record, settings: Settings) -> Path:
    run = "-".join(about[group] for group in ("task", "method", "backbone", "mode"))
    parent = Path(config.results) / str(config.name) / run / about["digest"][:12]
    return choose_folder(parent, settings.seed, resume=settings.resume)


def _build(config: DictConfig, group: str, **extra: Any) -> Any:
    """Instantiate a node; ``extra`` goes past Hydra, which would turn dataclasses into configurations."""
    node = OmegaConf.select(config, group)
    try:
        return instantiate(node, _partial_=True, _convert_="all")(**extra)
    except InstantiationException as error:
        cause: BaseException = error
        while cause.__cause__ is not None and not isinstance(cause, AceBenchError):
            cause = cause.__cause__
        if isinstance(cause, AceBenchError):
            raise cause from error
        raise ConfigError(f"{group} cannot be built: {cause}") from error
    except TypeError as error:
        raise ConfigError(f"{group} cannot be built: {error}") from error


def _templates(method: Method, task: Task) -> Mapping[str, tuple[str, ...]]:
    """Return the roles that this run asks, and the templates each is asked with."""
    templates = {GENERATOR: (method.generator.template,), **method.roles}
    if isinstance(task, Judged) and task.judge_template is not None:
        templates[JUDGE] = (task.judge_template,)
    return templates


def _check_roles(configured: Iterable[str], known: Iterable[str]) -> None:
    for role in configured:
        if role not in known:
            raise ConfigError(f"no role {role} is asked in this run; roles are {', '.join(known)}")


def _prompt_folder(name: str, root: Path) -> Path:
    shipped = root / "prompts" / name
    folder = shipped if shipped.is_dir() else Path(name)
    if not folder.is_dir():
        known = ", ".join(sorted(path.name for path in (root / "prompts").iterdir() if path.is_dir()))
        raise ConfigError(f"prompts={name} is neither one of {known} nor a folder")
    return folder


def _identity(
    resolved: Record,
    task: Task,
    prompts: PromptSet,
    backbones: Mapping[str, Backbone],
    settings: Settings,
) -> Record:
    """Return what decides a run's result. Not in it: seed, budget, concurrency, paths, trackers."""
    parts = {group: dict(resolved[group]) for group in ("task", "method", "mode", "agent")}
    for group, setting in _FILES:
        path = parts[group].get(setting)
        if path is not None and Path(path).is_file():
            parts[group][setting] = digest_of_text(Path(path).read_text(encoding="utf-8", errors="replace"))
    for setting in ("data_dir", "source"):
        parts["task"].pop(setting, None)
    return {
        **parts,
        "source": task.source,
        "data": dict(task.checksums),
        "prompts": prompts.digest,
        "backbones": {role: backbone.identity for role, backbone in backbones.items()},
        "labels": settings.labels.value,
        "limit": settings.limits,
    }
