"""Builds the parts of a run and connects them in its folder; reports every mistake before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec

from ace_bench.core.backbones import EMBEDDER, GENERATOR, JUDGE, Backbone, CacheReporting, Limited, Priced
from ace_bench.core.embedders import HASHING
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Method
from ace_bench.core.settings import settings_of
from ace_bench.core.task import Agent, CostLimited, Task
from ace_bench.core.types import Labels, Record, Stage, Usage
from ace_bench.playbook.embed import EndpointEmbedder, ModelEmbedder
from ace_bench.runners.arena import RunArena
from ace_bench.runners.call_slots import Slots
from ace_bench.runners.drawing import draws_by_seed
from ace_bench.runners.experiment import Beginning, Experiment, StageClock
from ace_bench.runners.gateway import Caller, CallGateway
from ace_bench.runners.identifying import IdentifiedRun, embeddings_of, judge_template
from ace_bench.runners.limits import Budget, Stop
from ace_bench.runners.mode import Mode
from ace_bench.runners.progress import Observer, ProgressCounter, Tracker
from ace_bench.runners.reservations import Spending
from ace_bench.runners.settings import place_of
from ace_bench.store.authors_code import notes_on_state, state_followed
from ace_bench.store.folder import RunFolder
from ace_bench.store.responses import Responses
from ace_bench.store.results import NOTHING
from ace_bench.store.vectors import VectorStore

_PROTOCOL, _PAPER, _OFFICIAL = "protocol", "paper", "official"
_HASHED = (
    "embedder=auto: sentence-transformers is not installed, so hashed words find bullets that say the same in much the "
    "same words; embedder=static:MODEL, a sentence model (its name or folder) or an endpoint also finds synonyms."
)


@dataclass(frozen=True, kw_only=True)
class RunSpec(IdentifiedRun):
    """Everything a run needs, validated; ``metadata`` opens ``metrics.json``.

    ``rehearsal`` is the backbone that stands in for the real ones when the cost is estimated, ``rehearsed_method`` the
    method that does not call an endpoint for its embeddings.
    """

    method: Method[Any]
    rehearsed_method: Method[Any]
    mode: Mode
    agent: Agent
    rehearsal: Backbone
    trackers: tuple[Tracker, ...]
    metadata: Record
    notes: tuple[str, ...] = ()
    beginning: Beginning | None = None
    """It is made when the run is checked, and ``None`` before."""
    unrecorded: Callable[[Caller], Exception] | None = None
    """Makes the error of a call that is not recorded, in a run that only replays recorded calls."""


def assemble(run: IdentifiedRun) -> RunSpec:
    """Build all parts and check that they fit together; raises ``ConfigError`` or ``DataError`` with the fix."""
    parts, task, backbones = run.parts, run.task, run.backbones
    mode: Mode = parts.mode.build()
    method: Method[Any] = run.method or parts.method.build()
    embeddings_of(method, run.embedder)
    mode.check(method)
    templates = _templates(method, task)
    if unknown := [role for role in backbones if role != EMBEDDER and role not in templates]:
        raise ConfigError(f"this run has no role {unknown[0]}; roles are {', '.join(templates)}")
    check_budget_prices(run.budget, backbones)
    for split in mode.reads(method):
        task.samples(split)  # raises ``DataError`` if the split is missing or broken
    run.prompt_set.require(chain.from_iterable(templates.values()))
    agent: Agent = parts.agent.build(prompts=run.prompt_set, generator=method.generator)
    _check_agent_prices(agent, backbones)
    drawn = draws_by_seed(task=task, agent=agent, method=method, mode=mode, make_backbones=lambda: backbones)
    followed, notes = _protocol(run, method)
    metadata = {
        **run.names,
        "roles": {role: backbone.name for role, backbone in backbones.items()},
        "labels": run.labels,
        "seed": run.seed,
        **followed,
        "source": task.source,
        "simulated": run.simulated,
        **({} if drawn else {"drawn": NOTHING}),
        "digest": run.identity.digest,
        "prompts": {
            "set": run.prompts,
            "digest": run.prompt_set.digest,
            **({"sources": run.imported.commits} if run.imported else {}),
        },
        "data": dict(task.checksums),
        **({} if run.simulated or not method.embedders else {"embedder": run.identity.settings["embedder"]}),
    }
    return RunSpec(
        **{**vars(run), "method": method},
        rehearsed_method=parts.rehearsed_method.build() if EMBEDDER in backbones else method,
        mode=mode,
        agent=agent,
        rehearsal=parts.rehearsal.build(),
        trackers=tuple(part.build() for part in parts.trackers),
        metadata=metadata,
        notes=(*((_HASHED,) if run.automatic and metadata.get("embedder") == HASHING else ()), *notes),
    )


def _protocol(run: IdentifiedRun, method: Method[Any]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the protocol as metadata, and notes on it.

    The usual protocol is left out. ``official`` also names the state of the authors' code that it follows.
    """
    chosen, commit = run.protocol, run.official_commit
    if chosen == _OFFICIAL:
        state = state_followed(method, run.task)
        notes = notes_on_state(state, commit, run.imported.commits if run.imported else {})
        return {_PROTOCOL: chosen, "follows": state}, tuple(notes)
    if commit is not None:
        raise ConfigError(f"official_commit={commit} is for protocol=official; leave it out")
    return ({} if chosen == _PAPER else {_PROTOCOL: chosen}), ()


def _templates(method: Method[Any], task: Task) -> Mapping[str, tuple[str, ...]]:
    """Return the roles that this run calls, each with its templates."""
    templates = {GENERATOR: (method.generator.template,), **method.roles}
    if (template := judge_template(task)) is not None:
        templates[JUDGE] = tuple(filter(None, (template,)))
    return templates


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What a run uses outside its folder: kept replies and vectors, slots for calls, and the spending of a budget."""

    responses: Responses | None = None
    vectors: VectorStore | None = None
    slots: Slots | None = None
    spending: Spending | None = None


NO_RESOURCES = Resources()


def build_experiment(
    folder: RunFolder,
    spec: RunSpec,
    stop: Stop,
    observers: tuple[Observer, ...] = (),
    resources: Resources = NO_RESOURCES,
) -> Experiment:
    """Connect the parts of one run; all its calls pass one gateway and are recorded in one folder."""
    folder.guard.on_failure = stop.request
    progress = ProgressCounter(ledger=folder.calls.ledger, observers=observers, simulated=spec.metadata["simulated"])
    gateway = _gateway(folder, spec, stop, resources, progress)
    arena = _arena(folder, spec, gateway, progress)
    _connect_embedders(spec, arena, folder, resources.vectors)
    with settings_of("method"):
        beginning = spec.beginning or spec.mode.begin(spec.method, arena)
    backbones = spec.backbones.values()
    reporting = {backbone.name: backbone for backbone in backbones if isinstance(backbone, CacheReporting)}
    return Experiment(
        method=spec.method,
        beginning=beginning,
        arena=arena,
        folder=folder,
        progress=progress,
        clock=StageClock(folder.journal, reporting),
        seed=spec.seed,
        repeats=spec.repeat_calls,
    )


def _gateway(
    folder: RunFolder, spec: RunSpec, stop: Stop, resources: Resources, progress: ProgressCounter
) -> CallGateway:
    return CallGateway(
        calls=folder.calls,
        budget=spec.budget,
        stop=stop,
        wall=folder.journal.total_wall,
        faults=spec.faults,
        responses=resources.responses,
        slots=resources.slots,
        spending=resources.spending,
        reserved=folder.reservations,
        run=folder.path,
        critical_path_s=progress.seconds_left,
        unrecorded=spec.unrecorded,
        seed=spec.seed,
    )


def _arena(folder: RunFolder, spec: RunSpec, gateway: CallGateway, progress: ProgressCounter) -> RunArena:
    return RunArena(
        task=spec.task,
        agent=spec.agent,
        prompts=spec.prompt_set,
        backbones=spec.backbones,
        labels=Labels(spec.labels),
        limits=spec.limits,
        concurrency=spec.concurrency,
        gateway=gateway,
        journal=folder.journal,
        progress=progress,
        seed=spec.seed,
        stage=Stage.EVALUATE,
        select=spec.method.select,
    )


def _connect_embedders(spec: RunSpec, arena: RunArena, folder: RunFolder, store: VectorStore | None) -> None:
    """Give models and the endpoint the vector store, and let embedders call an endpoint through the gateway.

    The embedders of an endpoint share their vectors.
    """
    for embedder in spec.method.embedders:
        if isinstance(embedder, ModelEmbedder):
            embedder.store = store
    embedders = [embedder for embedder in spec.method.embedders if isinstance(embedder, EndpointEmbedder)]
    if not embedders:
        return
    from ace_bench.backbones.embeddings import EmbeddingCalls, EmbeddingsBackbone  # slow to import

    endpoint = spec.backbones[EMBEDDER]
    if isinstance(endpoint, EmbeddingsBackbone):
        endpoint.store = store
    calls = EmbeddingCalls(lambda: arena.at(folder.journal.stage).embedding_lm(), folder.calls.replies(EMBEDDER))
    for embedder in embedders:
        embedder.connect(calls)


def check_reply_limits(budget: Budget, backbones: Mapping[str, Backbone]) -> None:
    """Raise ``ConfigError`` if a reply has no limit, so that tokens and dollars cannot be reserved for it."""
    for role, backbone in backbones.items() if budget.needs_bounds else ():
        if isinstance(backbone, Limited) and backbone.reply_limit(role) is None:
            limit = "tokens" if budget.tokens is not None else "usd"
            raise ConfigError(
                f"budget.{limit} needs a limit of replies, and {backbone.name} ({role}) has none: set "
                "backbone.context_length or backbone.sampling.max_tokens, or use budget.calls"
            )


def check_budget_prices(budget: Budget, backbones: Mapping[str, Backbone]) -> None:
    """Raise ``ConfigError`` for a budget in dollars if a backbone has no prices."""
    if budget.usd is not None:
        _check_prices(backbones, f"budget.usd={budget.usd:g}", "use budget.calls or budget.tokens")


def _check_agent_prices(agent: Agent, backbones: Mapping[str, Backbone]) -> None:
    """Raise ``ConfigError`` for an agent with a limit in dollars if the generator's backbone has no prices."""
    if isinstance(agent, CostLimited) and agent.max_usd is not None:
        _check_prices(
            {GENERATOR: backbones[GENERATOR]}, f"agent.max_usd={agent.max_usd:g}", "use agent.max_steps alone"
        )


def _check_prices(backbones: Mapping[str, Backbone], limit: str, alternative: str) -> None:
    for role, backbone in backbones.items():
        if isinstance(backbone, Priced) and backbone.dollars(Usage(prompt=2, completion=1, cached=1)) is None:
            prices = (f"{place_of(role)}.prices.{name}" for name in ("input", "cached_input", "output"))
            needed = "embedder.usd_per_million" if role == EMBEDDER else "{}, {} and {}".format(*prices)
            raise ConfigError(f"{limit} needs prices: set {needed}, or {alternative}")
