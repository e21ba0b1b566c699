"""A LangChain agent's first run against its second, with and without a playbook."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from ace_bench.core.backbones import Backbone, Keyed
from ace_bench.core.errors import ConfigError
from ace_bench.core.lifecycle import Lifecycle
from ace_bench.core.measurement import Measurement, MeasurementRequest, Value
from ace_bench.core.resources import configs_folder
from ace_bench.core.settings import build
from ace_bench.core.tools import takes_tools
from ace_bench.core.types import Completion, Message, Record, Stage
from ace_bench.runners.budget import Budget
from ace_bench.runners.gateway import Caller, CallGateway
from ace_bench.runners.stopping import Stop
from ace_bench.store.call_log import CallLog

if TYPE_CHECKING:
    from ace_bench.integrations.langchain.two_runs import RunResult

_log = logging.getLogger(__name__)
COLUMNS = ("learner", "run", "score", "calls", "tokens in", "learning calls", "bullets")
_LABELS: Mapping[str, str] = {
    "nothing": "no playbook",
    "heuristic": "heuristic reflector",
    "ace": "ACE's roles, without feedback",
    "ace_gold": "ACE's roles, right calls shown",
}


def two_runs_table(request: MeasurementRequest) -> Measurement:
    """Measure with each seed; figures are means over them."""
    try:
        from ace_bench.integrations.langchain.two_runs import LEARNERS
    except ImportError as error:
        raise ConfigError(str(error)) from error
    by_seed = [_results(request, seed) for seed in request.seeds]
    rows: list[tuple[Value, ...]] = []
    for learner in LEARNERS:
        for number in (0, 1):
            results = [runs[learner][number] for _, runs in by_seed]
            rows.append((_LABELS[learner], str(number + 1), *_means(results)))
    return Measurement(columns=COLUMNS, rows=tuple(rows), simulated=any(simulated for simulated, _ in by_seed))


def _results(request: MeasurementRequest, seed: int) -> tuple[bool, Mapping[str, tuple[RunResult, RunResult]]]:
    """Return whether the backbone is simulated, and both runs of each learner."""
    from ace_bench.integrations.langchain import CountedModels
    from ace_bench.integrations.langchain.two_runs import LEARNERS, two_runs

    with _backbone(request, seed) as backbone, _recorded(request.folder, backbone, seed) as recorded:
        runs = {str(learner): two_runs(CountedModels(backbone=recorded), learner) for learner in LEARNERS}
        return backbone.simulated, runs


def _means(results: Sequence[RunResult]) -> tuple[Value, ...]:
    tokens = [result.prompt_tokens for result in results]
    known = [count for count in tokens if count is not None]
    return (
        100 * fmean(result.score for result in results),
        fmean(result.calls for result in results),
        fmean(known) if len(known) == len(tokens) else None,
        fmean(result.learning_calls for result in results),
        fmean(result.bullets for result in results),
    )


@contextmanager
def _backbone(request: MeasurementRequest, seed: int) -> Iterator[Backbone]:
    """Build the backbone of a request, start and close it."""
    with initialize_config_dir(str(configs_folder()), version_base="1.3"):
        config = compose("config", [f"backbone={request.backbone}", *request.settings, f"seed={seed}"])
    backbone: Any = build(OmegaConf.to_container(config.backbone, resolve=True), "backbone")
    if not takes_tools(backbone):
        raise ConfigError(f"{backbone.name} takes no tools: choose an OpenAI-compatible backbone, vLLM or embedded")
    if isinstance(backbone, Keyed):
        backbone.check()
    try:
        if isinstance(backbone, Lifecycle):
            backbone.start(_log.info)
        yield backbone
    finally:
        if isinstance(backbone, Lifecycle):
            backbone.close()


@contextmanager
def _recorded(folder: Path, backbone: Backbone, seed: int) -> Iterator[RecordedBackbone]:
    """Let all calls pass a gateway that keeps them in ``folder``: none is paid for twice."""
    folder.mkdir(parents=True, exist_ok=True)
    calls = CallLog(folder / "calls.jsonl")
    try:
        gateway = CallGateway(calls=calls, budget=Budget(), stop=Stop(), wall=lambda: 0.0, seed=seed)
        yield RecordedBackbone(backbone=backbone, gateway=gateway)
    finally:
        calls.close()


class RecordedBackbone:
    """A backbone behind a gateway."""

    takes_tools = True

    def __init__(self, *, backbone: Backbone, gateway: CallGateway):
        self.name = backbone.name
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
