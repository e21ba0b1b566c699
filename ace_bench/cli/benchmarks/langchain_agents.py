"""A LangChain agent's first run against its second, with and without a playbook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from ace_bench.cli.benchmarks.measuring import Grid, Setting
from ace_bench.core.backbones import Backbone, Keyed
from ace_bench.core.errors import ConfigError
from ace_bench.core.lifecycle import Lifecycle
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

_HEADINGS = ("learner", "run", "score", "calls", "tokens in", "learning calls", "bullets")
_LABELS: Mapping[str, str] = {
    "nothing": "no playbook",
    "heuristic": "heuristic reflector",
    "ace": "ACE's roles, without feedback",
    "ace_gold": "ACE's roles, right calls shown",
}
_NOTES = (
    "Eight questions in each run, of the same kinds and about other names; a question may take four calls. `calls` and "
    "`tokens in` are the agent's, `learning calls` those of Reflector and Curator.",
)


def langchain_agents(setting: Setting) -> list[Grid]:
    """first against second run of a LangChain agent: no playbook, the heuristic, ACE's roles"""
    try:
        from ace_bench.integrations.langchain.two_runs import LEARNERS, two_runs
    except ImportError as error:
        raise ConfigError(str(error)) from error
    from ace_bench.integrations.langchain import CountedModels

    rows: list[tuple[str, ...]] = []
    with _backbone(setting) as backbone, _recorded(setting.scratch, backbone) as recorded:
        for learner in LEARNERS:
            for number, result in enumerate(two_runs(CountedModels(backbone=recorded), learner), start=1):
                rows.append(_row(_LABELS[learner] if number == 1 else "", number, result))
            setting.say(f"langchain, {_LABELS[learner]}: done")
        shown = f"{backbone.name}{' [simulated]' if backbone.simulated else ''}"
    rules = frozenset(range(1, len(rows), 2))
    return [Grid(title=f"Two runs: {shown}", headings=_HEADINGS, rows=tuple(rows), rules=rules, notes=_NOTES)]


def _row(label: str, number: int, result: RunResult) -> tuple[str, ...]:
    tokens = "n/a" if result.prompt_tokens is None else f"{result.prompt_tokens:,}"
    learning = str(result.learning_calls)
    return label, str(number), f"{100 * result.score:.1f}", str(result.calls), tokens, learning, str(result.bullets)


@contextmanager
def _backbone(setting: Setting) -> Iterator[Backbone]:
    """Build the backbone of the settings, start and close it."""
    with initialize_config_dir(str(configs_folder()), version_base="1.3"):
        config = compose("config", [*setting.backbone])
    backbone: Any = build(OmegaConf.to_container(config.backbone, resolve=True), "backbone")
    if not takes_tools(backbone):
        raise ConfigError(f"{backbone.name} takes no tools: choose an OpenAI-compatible backbone, vLLM or embedded")
    if isinstance(backbone, Keyed):
        backbone.check()
    try:
        if isinstance(backbone, Lifecycle):
            backbone.start(setting.say)
        yield backbone
    finally:
        if isinstance(backbone, Lifecycle):
            backbone.close()


@contextmanager
def _recorded(folder: Path, backbone: Backbone) -> Iterator[RecordedBackbone]:
    """Let all calls pass a gateway that keeps them in ``folder``: none is paid for twice."""
    folder.mkdir(parents=True, exist_ok=True)
    calls = CallLog(folder / "calls.jsonl")
    try:
        gateway = CallGateway(calls=calls, budget=Budget(), stop=Stop(), wall=lambda: 0.0)
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
