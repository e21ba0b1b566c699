"""A backbone outside of a run: every call is kept in a folder, and none is paid for twice."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from ace_bench.core.backbones import Backbone, Keyed
from ace_bench.core.lifecycle import Lifecycle
from ace_bench.core.settings import build
from ace_bench.core.tools import takes_tools
from ace_bench.core.types import Completion, Message, Record, Stage
from ace_bench.runners.budget import Budget
from ace_bench.runners.composing import compose_run
from ace_bench.runners.gateway import Caller, CallGateway
from ace_bench.runners.stopping import Stop
from ace_bench.store.call_log import CallLog

_log = logging.getLogger(__name__)


@contextmanager
def open_backbone(name: str, *, folder: Path, settings: Sequence[str] = (), seed: int = 0) -> Iterator[Backbone]:
    """Build the backbone ``name``, start it where it has a server, and keep its calls in ``folder``.

    ``settings`` are as on the command line (``"backbone.model=..."``). Raises ``ConfigError`` before the first call.
    """
    config, _ = compose_run([f"backbone={name}", *settings, f"seed={seed}"])
    backbone: Any = build(OmegaConf.to_container(config.backbone, resolve=True), "backbone")
    if isinstance(backbone, Keyed):
        backbone.check()
    with ExitStack() as stack:
        if isinstance(backbone, Lifecycle):
            stack.callback(backbone.close)
            backbone.start(_log.info)
        folder.mkdir(parents=True, exist_ok=True)
        calls = stack.enter_context(closing(CallLog(folder / "calls.jsonl")))
        gateway = CallGateway(calls=calls, budget=Budget(), stop=Stop(), wall=lambda: 0.0, seed=seed)
        yield RecordedBackbone(backbone=backbone, gateway=gateway)


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
