"""A backbone outside of a run. It keeps every call in a folder, so that no call is paid for twice."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ace_bench.backbones.embeddings import EmbeddingCalls, EmbeddingsBackbone
from ace_bench.core.backbones import EMBEDDER, Backbone, Keyed
from ace_bench.core.embedders import EmbedderSettings
from ace_bench.core.replies import takes_tools
from ace_bench.core.settings import build, settings_of
from ace_bench.core.task import Lifecycle
from ace_bench.core.types import Completion, Message, Record, Stage
from ace_bench.playbook.embeddings import Matrix
from ace_bench.runners.composing import compose_run
from ace_bench.runners.gateway import Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.store.call_log import FILE as CALLS
from ace_bench.store.call_log import CallLog, Ledger
from ace_bench.store.reservations import FILE as RESERVATIONS
from ace_bench.store.reservations import ReservationLog

_log = logging.getLogger(__name__)


@contextmanager
def open_backbone(name: str, *, folder: Path, settings: Sequence[str] = (), seed: int = 0) -> Iterator[Backbone]:
    """Build the backbone ``name``, start it where it has a server, and keep its calls in ``folder``.

    ``settings`` are as on the command line (``"backbone.model=..."``, ``"budget.usd=..."``). Raises ``ConfigError``
    before the first call.
    """
    config = compose_run([f"backbone={name}", *settings, f"seed={seed}"])
    backbone: Any = build(config.settings["backbone"], "backbone")
    if isinstance(backbone, Keyed):
        backbone.check()
    with ExitStack() as stack:
        if isinstance(backbone, Lifecycle):
            stack.callback(backbone.close)
            backbone.start(_log.info)
        yield _record(backbone, _open_logs(folder, stack), seed, Budget(**config.settings["budget"]))


@contextmanager
def open_embedder(settings: EmbedderSettings, *, folder: Path) -> Iterator[RecordedEmbedder]:
    """Embed by an endpoint; ``folder`` keeps the vectors of one model. Raises ``ConfigError`` before the first call."""
    with settings_of("embedder"), ExitStack() as stack:
        backbone = EmbeddingsBackbone(settings)
        stack.callback(backbone.close)
        backbone.check()
        logs = _open_logs(folder, stack)
        yield RecordedEmbedder(_record(backbone, logs, seed=0), logs.calls.replies(EMBEDDER))


class _Logs(NamedTuple):
    calls: CallLog
    reserved: ReservationLog


def _open_logs(folder: Path, stack: ExitStack) -> _Logs:
    folder.mkdir(parents=True, exist_ok=True)
    calls = stack.enter_context(closing(CallLog(folder / CALLS)))
    return _Logs(calls, stack.enter_context(closing(ReservationLog(folder / RESERVATIONS, calls.guard))))


def _record(backbone: Backbone, logs: _Logs, seed: int, budget: Budget | None = None) -> RecordedBackbone:
    gateway = CallGateway(
        calls=logs.calls,
        budget=budget or Budget(),
        stop=Stop(),
        wall=lambda: 0.0,
        reserved=logs.reserved,
        seed=seed,
    )
    return RecordedBackbone(backbone=backbone, gateway=gateway)


class RecordedBackbone:
    """A backbone behind a gateway."""

    def __init__(self, *, backbone: Backbone, gateway: CallGateway):
        self.name = backbone.name
        self.takes_tools = takes_tools(backbone)
        self.simulated = backbone.simulated
        self.identity = backbone.identity
        self.context_length = backbone.context_length
        self.count = backbone.count
        self._backbone = backbone
        self._gateway = gateway

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Return the recorded reply, or make the call and record it."""
        caller = Caller(stage=Stage.ADAPT, role=role, session=session)
        return self._gateway.complete(self._backbone, messages, caller, schema)


class RecordedEmbedder:
    """An endpoint of embeddings behind a gateway; ``ledger`` counts the calls that this process made."""

    def __init__(self, backbone: RecordedBackbone, paid: Iterable[Completion]):
        self.ledger = Ledger()
        self._backbone = backbone
        self._calls = EmbeddingCalls(lambda: self._ask, paid)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a unit vector for each text. A text is embedded only once."""
        return self._calls.embed(texts)

    def _ask(self, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        completion = self._backbone.complete(messages, role=EMBEDDER, session="embeddings", schema=schema)
        self.ledger.add(Stage.EVALUATE, EMBEDDER, completion)
        return completion
