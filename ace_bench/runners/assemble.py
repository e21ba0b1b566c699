"""Builds the parts of a run from its configuration and reports every mistake before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ace_bench.core.agent import Agent
from ace_bench.core.backbones import Backbone
from ace_bench.core.embedders import HASHING, with_embedder
from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import RunIdentity, identity_settings
from ace_bench.core.method import Method
from ace_bench.core.program import command_line
from ace_bench.core.resources import prompt_folders
from ace_bench.core.role_sampling import check_role_sampling, with_role_sampling
from ace_bench.core.settings import build, settings_of
from ace_bench.core.task import Judged, Task
from ace_bench.core.types import Record
from ace_bench.runners.arena import EMBEDDER, GENERATOR, JUDGE
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.experiment import Mode
from ace_bench.runners.gateway import Caller
from ace_bench.runners.price_checks import check_agent_prices, check_budget_prices, place_of
from ace_bench.runners.progress import Tracker
from ace_bench.runners.settings import Settings, read_settings
from ace_bench.store.code import Code, code_of
from ace_bench.store.folder import choose_folder
from ace_bench.store.prompts import PromptSet

_GROUPS = ("agent", "task", "method", "backbone", "roles", "default_roles", "rehearsal", "mode", "tracker", "sampling")
_NAMED = ("task", "method", "backbone", "mode")
"""Groups whose options name a run."""
_PROTOCOL, _PAPER = "protocol", "paper"
_HASHED = (
    "embedder=auto: sentence-transformers is not installed, so hashed words find bullets that say the same in much the "
    "same words; embedder=static:MODEL, a sentence model (its name or folder) or an endpoint also finds synonyms."
)


@dataclass(frozen=True, kw_only=True)
class RunSpec(Settings):
    """Everything a run needs, validated; ``about`` opens ``metrics.json``, ``config`` is the resolved YAML.

    ``rehearsal`` is the backbone that stands in for the real ones when the cost is estimated, ``rehearsed_method`` the
    method that does not call an endpoint for its embeddings.
    """

    task: Task
    method: Method[Any]
    rehearsed_method: Method[Any]
    mode: Mode
    agent: Agent
    prompts: PromptSet
    backbones: Mapping[str, Backbone]
    rehearsal: Backbone
    trackers: tuple[Tracker, ...]
    folder: Path
    simulated: bool
    about: Record
    identity: RunIdentity
    code: Code
    config: str
    notes: tuple[str, ...] = ()
    unrecorded: Callable[[Caller], Exception] | None = None
    """What a call raises that is not recorded, where a run only does again what its calls allow."""


def assemble(config: RunConfig) -> RunSpec:
    """Build the parts and check that they fit together; raises ``ConfigError`` or ``DataError`` with the fix."""
    # Backbones come first: the use of sample data depends on whether they are simulated.
    resolved, choices = config.settings, config.choices
    settings = read_settings(_top(resolved))
    backbones = _backbones(resolved)
    simulated = any(backbone.simulated for backbone in backbones.values())
    mode: Mode = _build(resolved, "mode")
    method: Method[Any] = _build(resolved, "method")
    embeddings = _embeddings(method, settings)
    mode.check(method)
    task: Task = _build(resolved, "task", sample_allowed=simulated)
    templates = _templates(method, task)
    _check_roles(backbones, templates)
    if JUDGE in templates and not simulated:
        backbones |= _default_judge(resolved, backbones)
    if embeddings is not None:
        backbones[EMBEDDER] = embeddings
        simulated = simulated or embeddings.simulated
    check_budget_prices(settings.budget, backbones)
    _check_data(task, mode.reads(method))
    prompts = _prompts(resolved["prompts"], task, templates)
    agent: Agent = _build(resolved, "agent", prompts=prompts, generator=method.generator)
    check_agent_prices(agent, backbones[GENERATOR])

    identity = RunIdentity(settings=identity_settings(resolved), contents=_contents(task, prompts, backbones))
    about = {
        **_names(choices),
        "roles": {role: backbone.name for role, backbone in backbones.items()},
        "labels": settings.labels.value,
        "seed": settings.seed,
        **_protocol(choices),
        "source": task.source,
        "simulated": simulated,
        "digest": identity.digest,
        "prompts": {"set": resolved["prompts"], "digest": prompts.digest},
        "data": dict(task.checksums),
        **({} if simulated or not method.embedders else {"embedder": identity.settings["embedder"]}),
    }
    return RunSpec(
        **vars(settings),
        task=task,
        method=method,
        rehearsed_method=method if embeddings is None else _build(with_embedder(resolved, HASHING), "method"),
        mode=mode,
        agent=agent,
        prompts=prompts,
        backbones=backbones,
        rehearsal=_build(resolved, "rehearsal"),
        trackers=_trackers(resolved),
        folder=_folder(resolved, about, settings),
        simulated=simulated,
        about=about,
        identity=identity,
        code=code_of(resolved),
        config=config.text,
        notes=(_HASHED,) if config.automatic and about.get("embedder") == HASHING else (),
    )


def _embeddings(method: Method[Any], settings: Settings) -> Backbone | None:
    """Return the endpoint that the method's embedders need, ``None`` if they need none."""
    if not method.embedders:
        return None
    from ace_bench.contexts.playbook.embed import EndpointEmbedder  # slow to import, and seldom needed

    wanted = {embedder.settings for embedder in method.embedders if isinstance(embedder, EndpointEmbedder)}
    if not wanted:
        return None
    if wanted != {settings.embedder}:
        raise ConfigError("a run takes embeddings from one endpoint: give it as embedder={url: ..., model: ...}")
    from ace_bench.backbones.openai_compatible.embeddings_backbone import EmbeddingsBackbone

    with settings_of(EMBEDDER):
        return EmbeddingsBackbone(*wanted)


def check_backbones(resolved: Record) -> None:
    """Check the top-level settings and the backbones; raises ``ConfigError``."""
    settings = read_settings(_top(resolved))
    check_budget_prices(settings.budget, _backbones(resolved))


def _names(choices: Mapping[str, str]) -> dict[str, str]:
    several = [group for group in _NAMED if group not in choices]
    if several:
        raise ConfigError(f"{several[0]} must be one option: write {several[0]}=NAME, without brackets")
    return {group: choices[group] for group in _NAMED}


def _protocol(choices: Mapping[str, str]) -> dict[str, str]:
    """Return the protocol's name, unless it is the usual one; what it changes is among the settings."""
    chosen = choices.get(_PROTOCOL, _PAPER)
    return {} if chosen == _PAPER else {_PROTOCOL: chosen}


def _top(resolved: Record) -> Record:
    return {name: value for name, value in resolved.items() if name not in _GROUPS}


def _backbones(resolved: Record) -> dict[str, Backbone]:
    roles = resolved.get("roles") or {}
    if not isinstance(roles, Mapping):
        raise ConfigError(f"roles={roles} must be a group of backbones: choose one by backbone@roles.reflector=NAME")
    check_role_sampling(resolved)
    if resolved.get("backbone") is not None:
        resolved = with_role_sampling(resolved)
        roles = resolved["roles"]
    own = {role: build(node, place_of(role)) for role, node in roles.items()}
    return {GENERATOR: _build(resolved, "backbone"), **own}


def _default_judge(resolved: Record, backbones: Mapping[str, Backbone]) -> dict[str, Backbone]:
    """Return the judge of ``default_roles``, if there is one and the run configures no other."""
    default = (resolved.get("default_roles") or {}).get(JUDGE)
    return {} if default is None or JUDGE in backbones else {JUDGE: build(default, f"default_roles.{JUDGE}")}


def _trackers(resolved: Record) -> tuple[Tracker, ...]:
    """Build each tracker from the settings under its name; ``tracker=[a,b]`` merges the names of several options."""
    chosen = resolved.get("tracker") or {}
    if not isinstance(chosen, Mapping):
        raise ConfigError(f"tracker={chosen} must be a group of trackers by name: write tracker=NAME or tracker=[A,B]")
    return tuple(build(node, f"tracker.{name}") for name, node in chosen.items())


def _folder(resolved: Record, about: Record, settings: Settings) -> Path:
    run = "-".join(about[group] for group in _NAMED)
    parent = Path(resolved["results"]) / resolved["name"] / run / about["digest"][:12]
    return choose_folder(parent, settings.seed, resume=settings.resume)


def _build(resolved: Record, group: str, **parts: Any) -> Any:
    if resolved.get(group) is None:
        raise ConfigError(
            f"{group}=null leaves nothing to run: choose one; `{command_line('run')} --help` lists the options"
        )
    return build(resolved[group], group, **parts)


def _templates(method: Method[Any], task: Task) -> Mapping[str, tuple[str, ...]]:
    """Return the roles that this run calls, each with its templates."""
    templates = {GENERATOR: (method.generator.template,), **method.roles}
    if getattr(task, "judge_template", None) is not None and not isinstance(task, Judged):
        raise TypeError(
            f"{type(task).__name__} names a judge's template and needs the methods `judge` and `prompt_fields`"
        )
    if isinstance(task, Judged) and task.judge_template is not None:
        templates[JUDGE] = tuple(filter(None, (task.judge_template,)))
    return templates


def _check_roles(configured: Iterable[str], known: Iterable[str]) -> None:
    for role in configured:
        if role not in known:
            raise ConfigError(f"this run has no role {role}; roles are {', '.join(known)}")


def _check_data(task: Task, splits: Iterable[str]) -> None:
    """Read the splits once; raises ``DataError`` where one is missing or broken."""
    for split in splits:
        task.samples(split)


def _prompts(name: str, task: Task, templates: Mapping[str, tuple[str, ...]]) -> PromptSet:
    """Return the prompt set; raises ``ConfigError`` where it lacks a template."""
    prompts = PromptSet(*_prompt_roots(name), task=task.name, prompt_group=task.prompt_group)
    prompts.require(chain.from_iterable(templates.values()))
    return prompts


def _prompt_roots(name: str) -> list[Path]:
    """Return the folders of a prompt set: this project's and other packages', or the folder that it names."""
    folders = prompt_folders()
    found = [folder / name for folder in folders if (folder / name).is_dir()]
    if not found and Path(name).is_dir():
        found = [Path(name)]
    if not found:
        known = sorted({path.name for folder in folders for path in folder.iterdir() if path.is_dir()})
        raise ConfigError(f"prompts={name} is neither one of {', '.join(known)} nor a folder")
    return found


def _contents(task: Task, prompts: PromptSet, backbones: Mapping[str, Backbone]) -> Record:
    """Return what affects a run's result besides its settings."""
    return {
        "source": task.source,
        "data": dict(task.checksums),
        "prompts": prompts.digest,
        "backbones": {role: backbone.identity for role, backbone in backbones.items()},
    }
