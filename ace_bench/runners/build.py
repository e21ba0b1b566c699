"""Builds an experiment from a run's specification and folder: gateway, progress counter and arena."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ace_bench.backbones.openai_compatible.vectors import read_vectors, text_key
from ace_bench.contexts.playbook.embed import EndpointEmbedder, Matrix
from ace_bench.core.backbones import EMBEDDER, CacheReporting, Lm
from ace_bench.core.errors import BackboneUnavailable
from ace_bench.core.method import Method
from ace_bench.core.types import Completion, Message, Stage
from ace_bench.runners.arena import RunArena
from ace_bench.runners.assemble import RunSpec
from ace_bench.runners.call_slots import CallSlots
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
    slots: CallSlots | None = None
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
    progress = ProgressCounter(ledger=calls.ledger, observers=observers)
    gateway = CallGateway(
        calls=calls,
        budget=plan.budget,
        stop=stop,
        wall=journal.total_wall,
        faults=plan.faults,
        responses=shared.responses,
        slots=shared.slots,
        spending=shared.spending,
        chain=progress.seconds_left,
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


_BATCH = 128


class EmbeddingCalls:
    """Embeds every text once in a run, whichever part asks for it; what earlier processes paid for is among ``paid``.

    ``lm`` returns the counted backbone for the stage that the run is in. Safe to use from several threads; one of them
    calls at a time.
    """

    def __init__(self, lm: Callable[[], Lm], paid: Iterable[Completion]):
        self._lm = lm
        self._lock = threading.Lock()
        self._rows: dict[str, bytes] = {}
        for completion in paid:
            self._rows.update(read_vectors(completion.text))

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a unit vector per text; raises ``CallLost``, ``BudgetExhausted`` and whatever stops a run."""
        keys = [text_key(text) for text in texts]
        with self._lock:
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
            todo = [*missing.values()]
            for batch in (todo[at : at + _BATCH] for at in range(0, len(todo), _BATCH)):
                reply = self._lm()([Message(role="user", content=text) for text in batch])
                self._rows.update(read_vectors(reply.text))
            rows = [self._rows[key] for key in keys]
        sizes = {len(row) for row in rows}
        if len(sizes) > 1:
            raise BackboneUnavailable(
                "the embeddings endpoint now sends vectors of another length than before: it serves another model; "
                "serve the first one again, or start a new run with resume=false"
            )
        return np.array([np.frombuffer(row, dtype="<f4") for row in rows], dtype=np.float32)
