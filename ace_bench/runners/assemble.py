"""Builds the parts of a run from its configuration and reports every mistake before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ace_bench.core.agent import Agent
from ace_bench.core.backbones import EMBEDDER, GENERATOR, JUDGE, Backbone
from ace_bench.core.embedders import HASHING, with_embedder
from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import RunIdentity
from ace_bench.core.method import Method
from ace_bench.core.settings import build
from ace_bench.core.task import Task
from ace_bench.core.types import Record
from ace_bench.runners.experiment import Mode
from ace_bench.runners.gateway import Caller
from ace_bench.runners.identifying import IdentifiedRun, build_part, embeddings_of, judge_template
from ace_bench.runners.price_checks import check_agent_prices, check_budget_prices
from ace_bench.runners.progress import Tracker
from ace_bench.runners.settings import Settings
from ace_bench.store.code import Code
from ace_bench.store.prompts import PromptSet

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


def assemble(run: IdentifiedRun) -> RunSpec:
    """Build all parts and check that they fit together; raises ``ConfigError`` or ``DataError`` with the fix."""
    resolved, settings, task, backbones = run.config.settings, run.settings, run.task, run.backbones
    mode: Mode = build_part(resolved, "mode")
    method: Method[Any] = build_part(resolved, "method")
    embeddings_of(method, settings)
    mode.check(method)
    templates = _templates(method, task)
    _check_roles((role for role in backbones if role != EMBEDDER), templates)
    check_budget_prices(settings.budget, backbones)
    _check_data(task, mode.reads(method))
    run.prompts.require(chain.from_iterable(templates.values()))
    rehearsed = build_part(with_embedder(resolved, HASHING), "method") if EMBEDDER in backbones else method
    agent: Agent = build_part(resolved, "agent", prompts=run.prompts, generator=method.generator)
    check_agent_prices(agent, backbones[GENERATOR])
    about = {
        **run.names,
        "roles": {role: backbone.name for role, backbone in backbones.items()},
        "labels": settings.labels.value,
        "seed": settings.seed,
        **_protocol(run.config.choices),
        "source": task.source,
        "simulated": run.simulated,
        "digest": run.identity.digest,
        "prompts": {"set": resolved["prompts"], "digest": run.prompts.digest},
        "data": dict(task.checksums),
        **({} if run.simulated or not method.embedders else {"embedder": run.identity.settings["embedder"]}),
    }
    return RunSpec(
        **vars(settings),
        task=task,
        method=method,
        rehearsed_method=rehearsed,
        mode=mode,
        agent=agent,
        prompts=run.prompts,
        backbones=backbones,
        rehearsal=build_part(resolved, "rehearsal"),
        trackers=_trackers(resolved),
        folder=run.folder,
        simulated=run.simulated,
        about=about,
        identity=run.identity,
        code=run.code,
        config=run.config.text,
        notes=(_HASHED,) if run.config.automatic and about.get("embedder") == HASHING else (),
    )


def _protocol(choices: Mapping[str, str]) -> dict[str, str]:
    """Return the protocol's name, unless it is the usual one; what it changes is among the settings."""
    chosen = choices.get(_PROTOCOL, _PAPER)
    return {} if chosen == _PAPER else {_PROTOCOL: chosen}


def _trackers(resolved: Record) -> tuple[Tracker, ...]:
    """Build each tracker from the settings under its name; ``tracker=[a,b]`` merges the names of several options."""
    chosen = resolved.get("tracker") or {}
    if not isinstance(chosen, Mapping):
        raise ConfigError(f"tracker={chosen} must be a group of trackers by name: write tracker=NAME or tracker=[A,B]")
    return tuple(build(node, f"tracker.{name}") for name, node in chosen.items())


def _templates(method: Method[Any], task: Task) -> Mapping[str, tuple[str, ...]]:
    """Return the roles that this run calls, each with its templates."""
    templates = {GENERATOR: (method.generator.template,), **method.roles}
    if (template := judge_template(task)) is not None:
        templates[JUDGE] = tuple(filter(None, (template,)))
    return templates


def _check_roles(configured: Iterable[str], known: Iterable[str]) -> None:
    for role in configured:
        if role not in known:
            raise ConfigError(f"this run has no role {role}; roles are {', '.join(known)}")


def _check_data(task: Task, splits: Iterable[str]) -> None:
    """Read the splits once; raises ``DataError`` where one is missing or broken."""
    for split in splits:
        task.samples(split)
