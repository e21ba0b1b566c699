"""The arena: a method's access to the model and the environment, counted, recorded and replayed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from ace_bench.core.backbones import EMBEDDER, GENERATOR, JUDGE, Backbone, Lm, Sampled, TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.encoding import digest_of_text
from ace_bench.core.errors import CallLost, ConfigError, RolloutFault
from ace_bench.core.prompts import Prompts
from ace_bench.core.replies import describe_unreadable
from ace_bench.core.task import Agent, Conversational, Judged, JudgedAlone, Task, ToolUser
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import Attempt, Fault, Grade, Labels, Message, Rollout, Sample, Stage, reveal
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.progress import ProgressCounter
from ace_bench.store.journal import Journal, RolloutRecord

T = TypeVar("T")
R = TypeVar("R")

_REVEALED = ("train", "val")
_ATTEMPTS = 2
"""Attempts allowed when the environment fails; errors of the agent are not retried."""


@dataclass(frozen=True, kw_only=True)
class RunArena:
    """Implements the ``Arena`` protocol for one stage of one run.

    Stage, scope, sample, context and trial identify a rollout; one that is recorded is replayed. ``scope`` separates
    rollouts that must not be shared, such as rollouts of different epochs. ``select`` comes from the method and returns
    the part of a context that the agent gets for a sample.
    """

    task: Task
    agent: Agent
    prompts: Prompts
    backbones: Mapping[str, Backbone]
    labels: Labels
    limits: Mapping[str, int | None]
    concurrency: int
    gateway: CallGateway
    journal: Journal
    progress: ProgressCounter
    seed: int
    stage: Stage
    select: Callable[[Context, Sample], Context]
    scope: str = ""

    @property
    def sections(self) -> tuple[str, ...]:
        """Playbook sections that suit the task."""
        return self.task.sections

    @property
    def tools(self) -> ToolRules | None:
        """The rules of the agent's tools, ``None`` for an agent without tools."""
        return self.agent.tools if isinstance(self.agent, ToolUser) else None

    @property
    def learns_unreadable(self) -> bool:
        """Whether a reply that cannot be read is a failed attempt rather than a fault."""
        return self.gateway.faults.learn_unreadable

    def at(self, stage: Stage, scope: str = "") -> RunArena:
        """Return the same arena for another stage and scope."""
        return replace(self, stage=stage, scope=scope)

    def samples(self, split: str) -> Sequence[Sample]:
        """Return the first ``limit`` samples of a split, in file order."""
        return self.task.samples(split)[: self.limits.get(split)]

    def gold_answer(self, sample: Sample) -> str:
        """Return a reference answer without an attempt; only for training and validation, and only with labels=gold."""
        if self.labels is not Labels.GOLD or sample.split not in _REVEALED:
            raise ConfigError(
                f"the reference answer of {sample.id} is hidden with labels={self.labels.value}: only labels=gold "
                f"reveals reference answers of {' and '.join(_REVEALED)}"
            )
        return self.task.failing_grade(sample).gold

    def rollout(self, sample: Sample, context: Context, *, trial: int = 0, reflection: str | None = None) -> Rollout:
        """Attempt, grade and record; the method gets what ``labels`` reveals of the grade.

        Raises ``CallLost`` if a backbone left a call unanswered. Then only the other calls are recorded.
        """
        key = self._key(sample, context, trial)
        record = self._recorded_rollout(key)
        if record is None:
            try:
                record = self._attempt(key, sample, context, trial, reflection)
            except CallLost:
                self.gateway.replay(key)
                raise
            self.journal.add_rollout(record)
        self.progress.count_rollout(record)
        return Rollout(
            key=key,
            sample=sample,
            context_digest=context.digest,
            trial=trial,
            attempt=record.attempt,
            feedback=reveal(record.grade, self.labels),
            fault=fault_of(self.task, record),
            calls=record.calls,
            seconds=record.seconds,
        )

    def conversation(self, rollout: Rollout, context: Context, *, reflection: str | None = None) -> tuple[Message, ...]:
        """Return the messages of a rollout up to its last reply; empty for agents that lead no conversation."""
        if not isinstance(self.agent, Conversational):
            return ()
        selected = self.select(context, rollout.sample)
        return self.agent.conversation(rollout.sample, selected, rollout.attempt, reflection)

    def is_recorded(self, sample: Sample, context: Context) -> bool:
        """Whether the first rollout of a sample is already recorded."""
        return self._recorded_rollout(self._key(sample, context, 0)) is not None

    def rollouts(self, samples: Sequence[Sample], context: Context) -> Sequence[Rollout]:
        """Make the first rollout of each sample, in parallel, and return them in the order of ``samples``."""
        return self.map(lambda sample: self.rollout(sample, context), samples)

    def records(self, rollouts: Iterable[Rollout]) -> list[RolloutRecord]:
        """Return the graded records of rollouts, for metrics only; methods cannot call this."""
        return [self.journal.rollouts[rollout.key] for rollout in rollouts]

    def lm(self, role: str, session: str) -> Lm:
        """Return the role's backbone for one session."""
        return self._bind(role, session)

    def embedding_lm(self) -> Lm:
        """Return the endpoint of embeddings; a fault never replaces its reply."""
        caller = Caller(stage=self.stage, role=EMBEDDER, session=EMBEDDER, needed=True)
        return BoundLm(gateway=self.gateway, backbone=self.backbones[EMBEDDER], caller=caller)

    def draws(self, role: str) -> bool | None:
        """Whether the role's backbone draws its replies at random; ``None`` for one that does not sample."""
        backbone = self.backbone(role)
        return backbone.draws(role) if isinstance(backbone, Sampled) else None

    def counter(self, role: str) -> TokenCounter:
        """Return the token counter of the role's backbone."""
        return self.backbone(role).count

    def context_length(self, role: str) -> int | None:
        """Return the context length of the role's backbone."""
        return self.backbone(role).context_length

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Apply in parallel; on an exception, drop the items that have not started and raise it."""
        todo = list(items)
        width = min(self.concurrency, len(todo))
        if width <= 1:
            return list(map(function, todo))
        with ThreadPoolExecutor(max_workers=width) as pool:
            return list(pool.map(function, todo))

    def _recorded_rollout(self, key: str) -> RolloutRecord | None:
        """Return the recorded rollout, unless it needs a call that must be repeated."""
        record = self.journal.rollouts.get(key)
        answers = self.gateway.faults.is_answer
        done = record is not None and answers(record.fault) and answers(record.judge_fault)
        return record if done else None

    def _key(self, sample: Sample, context: Context, trial: int) -> str:
        return "/".join(filter(None, (self.stage, self.scope, sample.id, context.digest[:12], str(trial))))

    def _bind(self, role: str, session: str, *, repeats: bool = True) -> BoundLm:
        caller = Caller(stage=self.stage, role=role, session=session, repeats=repeats)
        return BoundLm(gateway=self.gateway, backbone=self.backbone(role), caller=caller)

    def backbone(self, role: str) -> Backbone:
        """Return the role's own backbone, or the generator's."""
        return self.backbones.get(role) or self.backbones[GENERATOR]

    def _attempt(self, key: str, sample: Sample, context: Context, trial: int, reflection: str | None) -> RolloutRecord:
        started = time.monotonic()
        for restarts in range(_ATTEMPTS):
            if restarts:
                self.gateway.replay(key)
            lm = self._bind(GENERATOR, key)
            fault: Fault | None = None
            try:
                with self.task.open(sample) as session:
                    try:
                        attempt = self.agent.solve(sample, session, self.select(context, sample), lm, reflection)
                    except RolloutFault as error:
                        failed = error.unreadable and self.learns_unreadable
                        attempt = _unreadable_attempt(error) if failed else Attempt(answer=None)
                        fault = None if failed else error.fault
                    grade = session.grade(attempt.answer)
            except RolloutFault as error:  # the environment failed, not the agent
                attempt, grade, fault = Attempt(answer=None), self.task.failing_grade(sample), error.fault
            if fault is None or fault.owner != "task":
                break
        grade, judge_fault = self._judge(sample, attempt.answer, grade)
        return RolloutRecord(
            key=key,
            stage=self.stage,
            split=sample.split,
            sample=sample.id,
            context=context.digest,
            trial=trial,
            attempt=attempt,
            grade=grade,
            fault=fault,
            calls=lm.calls,
            seconds=round(time.monotonic() - started, 4),
            restarts=restarts,
            judge_fault=judge_fault,
        )

    def _judge(self, sample: Sample, answer: str | None, grade: Grade) -> tuple[Grade, Fault | None]:
        if getattr(self.task, "judge_template", None) is None or not isinstance(self.task, Judged):
            return grade, None  # the first test is the cheap one, and every rollout makes it
        session = f"{JUDGE}/{sample.id}/{digest_of_text(answer or '')[:12]}"
        try:
            return self.task.judge(sample, answer, grade, self.prompts, self._bind(JUDGE, session, repeats=False)), None
        except RolloutFault as error:
            return grade, error.fault


def _unreadable_attempt(error: RolloutFault) -> Attempt:
    explanation = describe_unreadable(error)
    return Attempt(answer=None, reasoning=explanation, reply=explanation, unreadable=error.fault.kind)


def fault_of(task: Task, record: RolloutRecord) -> Fault | None:
    """Return why a rollout has no grade: its own fault, or the judge's where only the judge can grade."""
    if record.fault is None and record.judge_fault is not None:
        return record.judge_fault if isinstance(task, JudgedAlone) and task.judge_decides else None
    return record.fault
