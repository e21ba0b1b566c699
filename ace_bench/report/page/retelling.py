"""Prompts made again: the run's own agent and method, over the replies that the run recorded.

A prompt counts only if the name of a recorded call, which holds a checksum of its prompt, fits it; so what a report
shows is what was sent. Nothing is sent, run or graded here: the environment's part comes from the journal.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hydra.errors import HydraException
from hydra.utils import instantiate

from ace_bench.core.agent import Agent
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.errors import AceBenchError, ConfigError, RolloutFault
from ace_bench.core.method import Method
from ace_bench.core.prompt_limit import CONTEXT_LENGTH
from ace_bench.core.tokens import estimate_tokens
from ace_bench.core.types import Attempt, Completion, Fault, Grade, Labels, Message, Record, Rollout, Sample, Step
from ace_bench.core.types import reveal as revealed
from ace_bench.report.page.recorded import Recorded
from ace_bench.store.calls import CallRecord as Call
from ace_bench.store.calls import call_name
from ace_bench.store.checksums import spoilt
from ace_bench.store.journal import RolloutRecord
from ace_bench.store.prompts import PromptSet

_LOG = logging.getLogger(__name__)
_OWN = "ace_bench."
_COMMON = "common"

Heard = Callable[[Call, Sequence[Message]], None]
T = TypeVar("T")
R = TypeVar("R")


class CannotTell(Exception):
    """Why prompts cannot be made again."""


class _Unrecorded(Exception):
    """A rollout that the run did not come to."""


def start_retelling(recorded: Recorded, heard: Heard) -> Retelling:
    """Build agent and method from the run's configuration; raises ``CannotTell``.

    Run folders travel, so only classes of this package are built, and its templates are rendered in a sandbox.
    """
    if not recorded.samples:
        raise CannotTell("the run folder is of a version that did not keep what prompts are made from")
    try:
        settings = recorded.run.settings
        spoilt_files = [name for name in spoilt(recorded.run.folder) if name.startswith("prompts/")]
        if spoilt_files:
            raise CannotTell(f"{spoilt_files[0]} of the run folder is missing or damaged; repeat the run's command")
        prompts = _prompts(recorded.run.folder / "prompts", recorded.run.task)
        method: Method[Any] = _build(_spared(settings["method"]))
        node = dict(settings["agent"])
        trail = Trail()
        parts = {"sandbox": trail} if node.pop("sandbox", None) is not None else {}
        agent: Agent = _build(node, prompts=prompts, form=method.generator, **parts)
    except (AceBenchError, HydraException, KeyError, TypeError, AttributeError, OSError) as error:
        raise CannotTell(f"the run cannot be set up again: {error}") from error
    arena = _Arena(recorded=recorded, prompts=prompts, agent=agent, trail=trail, heard=heard)
    return Retelling(recorded, method, arena)


class Retelling:
    """Goes through a run context by context, as the history yields them."""

    def __init__(self, recorded: Recorded, method: Method[Any], arena: _Arena):
        self._method = method
        self._arena = arena
        self._steps = recorded.steps
        self._samples = recorded.samples
        mode = recorded.run.settings["mode"]
        self._window: int = mode.get("window") or 1
        self._told: set[str] = set()

    def tell(self, context: Context, index: int) -> None:
        """Tell what was asked under the context after ``index`` steps, and by the step that follows."""
        self._attempts(context)
        if index < len(self._steps) and self._method.adaptation == "steps":
            try:
                self._step(self._method, context, index)
            except Exception as error:  # as in attempt
                _LOG.debug("step %d cannot be told: %r", index, error)

    def _step(self, method: Method[Any], context: Context, index: int) -> None:
        record = self._steps[index]
        step = Step(index=index, total=len(self._steps), epoch=record.epoch)
        self._arena.epoch = record.epoch
        if index % self._window == 0:
            window = [name for one in self._steps[index : index + self._window] for name in one.samples]
            context = method.prepare(context, self._known(window), step, self._arena).context
            self._attempts(context)
        rollouts = self._arena.rollouts(self._known(record.samples), context)
        method.update(context, rollouts, step, self._arena)

    def _known(self, names: Iterable[str]) -> list[Sample]:
        return [self._samples[name] for name in names if name in self._samples]

    def _attempts(self, context: Context) -> None:
        if context.digest not in self._told:
            self._told.add(context.digest)
            for record in self._arena.first_tries.get(context.digest, ()):
                self._arena.attempt(record, context, "")


@dataclass(kw_only=True)
class Trail:
    """What an environment or a sandbox answered, step by step."""

    attempt: Attempt = field(default_factory=lambda: Attempt(answer=None))
    _next: int = 0

    def follow(self, attempt: Attempt) -> None:
        """Start at the beginning of an attempt."""
        self.attempt, self._next = attempt, 0

    @property
    def finished(self) -> bool:
        """Whether all that was answered has been."""
        return 0 < len(self.attempt.trajectory) <= self._next

    def step(self, action: str) -> str:
        """Answer as the environment did; raises ``RolloutFault`` where the attempt went no further."""
        for place in range(self._next, len(self.attempt.trajectory)):
            turn = self.attempt.trajectory[place]
            if turn.action == action:
                self._next = place + 1
                return turn.observation
        raise _not_recorded("the environment's answer")

    run = step

    def grade(self, answer: str | None) -> Grade:
        """Nothing is graded again."""
        raise NotImplementedError


class _Arena:
    """The recorded run behind the ``Arena`` protocol."""

    def __init__(self, *, recorded: Recorded, prompts: PromptSet, agent: Agent, trail: Trail, heard: Heard):
        self.prompts = prompts
        self.labels = Labels(recorded.run.labels)
        self.seed = recorded.run.seed
        self.sections: tuple[str, ...] = ()  # a context brings its own
        self.epoch = 0
        self.first_tries: dict[str, list[RolloutRecord]] = {}
        self._rollouts = {record.key: record for record in recorded.rollouts}
        for record in recorded.rollouts:
            if record.trial == 0:
                self.first_tries.setdefault(record.context, []).append(record)
        self._calls = {call.id: call for call in recorded.calls}
        self._samples = recorded.samples
        self._agent = agent
        self._trail = trail
        self._heard = heard
        self._asked: Counter[str] = Counter()

    def samples(self, split: str) -> Sequence[Sample]:
        return [sample for sample in self._samples.values() if sample.split == split]

    def reference(self, sample: Sample) -> str:
        raise ConfigError(f"the reference of {sample.id} is not at hand in a report")

    def rollout(self, sample: Sample, context: Context, *, trial: int = 0, reflection: str = "") -> Rollout:
        record = self._find(sample, context, trial)
        if trial:
            self.attempt(record, context, reflection)
        return Rollout(
            key=record.key,
            sample=sample,
            context_digest=context.digest,
            trial=trial,
            attempt=record.attempt,
            feedback=revealed(record.grade, self.labels),
            fault=record.fault,
            calls=record.calls,
            seconds=record.seconds,
        )

    def rollouts(self, samples: Sequence[Sample], context: Context) -> Sequence[Rollout]:
        return [self.rollout(sample, context) for sample in samples]

    def lm(self, role: str, session: str) -> Callable[..., Completion]:
        def reply(messages: Sequence[Message], schema: Record | None = None) -> Completion:
            del schema
            name = call_name(session, role, messages)
            call = self._calls.get(f"{name}/{self._asked[name]}")
            if call is None:  # it was too long for the backbone, or it is not what was asked: try a shorter one
                raise _not_recorded("this prompt")
            self._asked[name] += 1
            self._heard(call, messages)
            if call.fault is not None:
                raise RolloutFault(call.fault)
            return call.completion

        return reply

    def counter(self, role: str) -> TokenCounter:
        del role
        return estimate_tokens

    def context_length(self, role: str) -> int | None:
        del role
        return None

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        return [function(item) for item in items]

    def attempt(self, record: RolloutRecord, context: Context, reflection: str) -> None:
        """Solve again, as far as the record goes."""
        sample = self._samples.get(record.sample)
        if sample is None:
            return
        self._trail.follow(record.attempt)
        try:
            self._agent.solve(sample, self._trail, context, self.lm("generator", record.key), reflection)
        except Exception as error:  # it ended so, or the folder's templates do not work: what was told stays told
            _LOG.debug("%s is told up to %r", record.key, error)

    def _find(self, sample: Sample, context: Context, trial: int) -> RolloutRecord:
        for scope in (f"epoch{self.epoch}/", ""):
            record = self._rollouts.get(f"adapt/{scope}{sample.id}/{context.digest[:12]}/{trial}")
            if record is not None:
                return record
        raise _Unrecorded(sample.id)


def _not_recorded(what: str) -> RolloutFault:
    return RolloutFault(Fault(owner="harness", kind=CONTEXT_LENGTH, message=f"{what} is not recorded"))


def _prompts(folder: Path, task: str) -> PromptSet:
    family = [path.name for path in folder.iterdir() if path.is_dir() and path.name not in (task, _COMMON)]
    return PromptSet(folder, task=task, prompt_group=family[0] if family else task)


def _spared(method: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out what a method needs to adapt and prompts do not: the file it started from, and merging bullets.

    The context after a step is the recorded one. Only where a model words merged bullets are they merged again, by
    hashes, so that no other model need be loaded.
    """
    spared = {**method, **({"initial": None} if "initial" in method else {})}
    if "refiner" in method:
        refiner = method["refiner"]
        spared["refiner"] = {**refiner, "embedder": {**refiner["embedder"], "name": "hashing"}}
        if method.get("merge_wording") == "keep":
            spared["refiner"]["when"] = "never"
    return spared


def _build(node: Mapping[str, Any], **parts: Any) -> Any:
    _check_own(node)
    return instantiate(dict(node), _partial_=True, _convert_="all")(**parts)


def _check_own(node: Any) -> None:
    if isinstance(node, Mapping):
        target = node.get("_target_", _OWN)
        if not str(target).startswith(_OWN):
            raise CannotTell(f"the run was made with {target}, which is not part of ace-bench")
        for value in node.values():
            _check_own(value)
    elif isinstance(node, list):
        for value in node:
            _check_own(value)
