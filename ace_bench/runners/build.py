"""Builds an experiment from a run's specification and folder: gateway, progress counter and arena."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ace_bench.contexts.playbook.embed import EndpointEmbedder
from ace_bench.core.backbones import CacheReporting
from ace_bench.core.method import Method
from ace_bench.core.types import Stage
from ace_bench.runners.arena import EMBEDDER, RunArena
from ace_bench.runners.assemble import RunSpec
from ace_bench.runners.call_slots import CallSlots, Unlimited
from ace_bench.runners.embedding_calls import EmbeddingCalls
from ace_bench.runners.experiment import Experiment, StageClock
from ace_bench.runners.gateway import CallGateway
from ace_bench.runners.progress import Observer, ProgressCounter
from ace_bench.runners.stopping import Stop
from ace_bench.store.folder import RunFolder
from ace_bench.store.responses import Responses
from ace_bench.store.spending import SharedSpending


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What a run shares with others: the cache of replies, the slots for calls, and the budget."""

    responses: Responses | None = None
    slots: CallSlots = field(default_factory=Unlimited)
    spending: SharedSpending | None = None


ALONE = Shared()


def build_experiment(
    folder: RunFolder,
    plan: RunSpec,
    stop: Stop,
    observers: tuple[Observer, ...],
    shared: Shared = ALONE,
) -> Experiment:
    """Connect the parts of one run; all its calls pass one gateway and are recorded in one folder."""
    journal, calls = folder.journal, folder.calls
    folder.gate.on_failure = stop.request
    progress = ProgressCounter(spent=lambda: calls.ledger.total, observers=observers)
    gateway = CallGateway(
        calls=calls,
        budget=plan.budget,
        stop=stop,
        wall=lambda: sum(journal.wall(stage) for stage in Stage),
        faults=plan.faults,
        responses=shared.responses,
        slots=shared.slots,
        spending=shared.spending,
        # An evaluation is wide: none of its calls holds up another.
        chain=lambda stage: progress.seconds_left() if stage is Stage.ADAPT else 0.0,
        unrecorded=plan.unrecorded,
        seed=plan.seed,
    )
    arena = RunArena(
        task=plan.task,
        agent=plan.agent,
        prompts=plan.prompts,
        backbones=plan.backbones,
        labels=plan.labels,
        limits=plan.limits,
        concurrency=plan.concurrency,
        gateway=gateway,
        journal=journal,
        progress=progress,
        seed=plan.seed,
        stage=Stage.EVALUATE,
        select=plan.method.select,
    )
    _connect_embedders(plan.method, arena, folder)
    reporting = {one.name: one for one in plan.backbones.values() if isinstance(one, CacheReporting)}
    return Experiment(
        method=plan.method,
        arena=arena,
        folder=folder,
        progress=progress,
        clock=StageClock(journal, reporting),
        seed=plan.seed,
    )


def _connect_embedders(method: Method[Any], arena: RunArena, folder: RunFolder) -> None:
    """Let the embedders of an endpoint call through the gateway; they share their vectors."""
    found = [embedder for embedder in method.embedders if isinstance(embedder, EndpointEmbedder)]
    if not found:
        return
    calls = EmbeddingCalls(lambda: arena.at(folder.journal.stage).embedding_lm(), folder.calls.replies(EMBEDDER))
    for embedder in found:
        embedder.connect(calls)
