"""Agent Workflow Memory (arXiv 2409.07429): workflows of solved tasks, from attempts or from annotated examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any

import msgspec

from ace_bench.contexts.loading import load_kind
from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload, exactly
from ace_bench.core.prompts import Transcript
from ace_bench.core.replies import ask
from ace_bench.core.settings import Count, Protocol, Text
from ace_bench.core.types import GeneratorSpec, Labels, Record, Rollout, Sample, Step
from ace_bench.methods.base import BaseMethod, ask_role
from ace_bench.methods.field.attempts import (
    ATTEMPT_FIELDS,
    SELF_JUDGE,
    ShownAttempt,
    ShownAttempts,
    about_sample,
    attempt_fields,
    check_saved,
    judge,
    judge_calls,
    valid_items,
)
from ace_bench.methods.field.workflows import Workflow, Workflows

ROLE = "inducer"
EXPERIENCE = "experience"
"""Template that words a solved task for the inducer."""

_MOST = 30
"""The most workflows taken from one reply."""
_TEXT = {"type": "string"}
_WORKFLOW = {
    "type": "object",
    "properties": {"title": _TEXT, "description": _TEXT, "steps": {"type": "array", "items": _TEXT}},
    "required": ["title", "description", "steps"],
    "additionalProperties": False,
}


class InducerReply(msgspec.Struct, frozen=True, kw_only=True):
    """Workflows as the model wrote them; each is checked by itself."""

    reasoning: str = ""
    workflows: Annotated[list[Any], msgspec.Meta(extra_json_schema={"items": _WORKFLOW})]


@dataclass(frozen=True, kw_only=True)
class Solved(ShownAttempt):
    """A solved task: an attempt with as many of its outputs as fit, a sample with its reference answer, or a text."""

    rollout: Rollout | None = None
    words: str = ""

    @classmethod
    def attempt(cls, rollout: Rollout) -> Solved:
        """Return a successful attempt."""
        return cls(rollout=rollout, steps=Transcript(rollout.attempt.trajectory))

    @classmethod
    def example(cls, sample: Sample, reference: str, arena: Arena) -> Solved:
        """Return a sample with its reference answer."""
        fields = {**sample.inputs, "trajectory": "", "reasoning": "", "answer": reference, "observed": ""}
        return cls.text(arena.prompts.render(EXPERIENCE, fields)[-1].content)

    @classmethod
    def text(cls, content: str) -> Solved:
        """Return a solved task from its finished text."""
        return cls(words=content, steps=Transcript(()))

    def render(self, arena: Arena) -> str:
        """Return the task and its solution in the words of the template."""
        if self.rollout is None:
            return self.words
        return arena.prompts.render(EXPERIENCE, attempt_fields(self.rollout, self.steps))[-1].content


def induce(
    memory: Workflows, solved: Sequence[Solved], *, sample: Sample, arena: Arena, session: str
) -> ContextUpdate[Workflows]:
    """Ask for the workflows of solved tasks and add those that are new; one that cannot be used is an event.

    The inducer is shown the task text of ``sample``, one of those that were solved.
    """

    def send(attempts: ShownAttempts[Solved]) -> InducerReply:
        texts = [solved.render(arena) for solved in attempts.items]
        fields = {"background": sample.inputs["background"], "experiences": texts}
        return ask(arena.lm(ROLE, session), arena.prompts.render(ROLE, fields), InducerReply)

    reply, events = ask_role(ROLE, ShownAttempts(tuple(solved)), send)
    if reply is None:
        return ContextUpdate(context=memory, events=events)
    count = arena.counter("generator")
    workflows, refused = valid_items(
        reply.workflows, Workflow, clean=lambda one: one.measured(count), most=_MOST, role=ROLE
    )
    grown = memory.with_new(workflows)
    added = [workflow.title for workflow in grown.items[len(memory.items) :]]
    induced = {"event": "induced", "from": len(solved), "workflows": added, "known": len(workflows) - len(added)}
    return ContextUpdate(context=grown, events=(*events, *refused, induced))


_FIELDS = frozenset(("background", "experiences"))


class WorkflowMemory(BaseMethod[Workflows]):
    """What both scenarios share. ``initial`` is a saved memory to start from."""

    generator = GeneratorSpec(template="workflows", answer_format="json")
    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({ROLE: (ROLE, EXPERIENCE)})

    def __init__(self, *, initial: Text | None) -> None:
        check_saved(initial, "workflows")
        self._initial = initial

    def start(self, arena: Arena) -> Workflows:
        """Return the empty memory, or the one to start from."""
        if self._initial is None:
            return Workflows()
        loaded = load_kind(Workflows, self._initial, arena=arena, required_by="Agent Workflow Memory")
        return Workflows(items=tuple(workflow.measured(arena.counter("generator")) for workflow in loaded.items))

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the inducer's template, and of the one that words a solved task for it."""
        return {ROLE: _FIELDS, EXPERIENCE: inputs | ATTEMPT_FIELDS}


class FromAttempts(WorkflowMemory):
    """The online scenario: after each step, the workflows of its successful attempts join the memory.

    Where ``labels`` hides the verdict, the role ``self_judge`` decides what is a success, as in the paper. With
    ``protocol=authors`` the inducer sees all successes so far, and its workflows replace the memory.
    """

    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({**WorkflowMemory.roles, SELF_JUDGE: (SELF_JUDGE,)})

    follows = "zorazrw/agent-workflow-memory@5a91577"

    def __init__(self, *, initial: Text | None, protocol: Protocol) -> None:
        if initial is not None and protocol == "authors":
            raise SettingError("protocol=authors induces the whole memory anew after each success: use initial=null")
        super().__init__(initial=initial)
        self._anew = protocol == "authors"

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return also the fields of the judge's template."""
        return {**super().prompt_fields(inputs, context_fields), SELF_JUDGE: inputs | ATTEMPT_FIELDS}

    def update(
        self, context: Workflows, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[Workflows]:
        """Induce from the successful attempts of a batch together; others teach nothing."""
        judged = judge(rollouts, arena)
        events: list[Record] = []
        for attempt in judged:
            skipped = () if attempt.success else ({"event": "skipped"},)
            events += about_sample(attempt.rollout.sample, (*attempt.events, *skipped))
        solved = [Solved.attempt(attempt.rollout) for attempt in judged if attempt.success]
        if not solved:
            return ContextUpdate(context=context, events=tuple(events))
        sample, session = rollouts[0].sample, rollouts[0].key
        if not self._anew:
            update = induce(context, solved, sample=sample, arena=arena, session=session)
            return ContextUpdate(context=update.context, events=(*events, *update.events))
        examples = [*map(Solved.text, context.solved), *solved]
        update = induce(Workflows(), examples, sample=sample, arena=arena, session=session)
        learnt = any(event["event"] == "induced" for event in update.events)
        all_solved = (*context.solved, *(attempt.render(arena) for attempt in solved))
        memory = context.changed(items=update.context.items if learnt else context.items, solved=all_solved)
        return ContextUpdate(context=memory, events=(*events, *update.events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Estimate one rollout for each sample, and at most one induction for each step."""
        roles = {ROLE: Span(0, learning.steps), **judge_calls(arena, learning.samples)}
        return Workload(rollouts=exactly(learning.samples), roles=roles)


class FromExamples(WorkflowMemory):
    """The offline scenario: workflows of training samples with their reference answers, before any test.

    ``examples`` is how many of them the inducer is shown at once; ``None`` shows all in one prompt.
    """

    def __init__(self, *, initial: Text | None, examples: Count | None) -> None:
        super().__init__(initial=initial)
        self._examples = examples

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` if reference answers are not to be seen."""
        if arena.labels is not Labels.GOLD:
            raise ConfigError(
                f"method=awm_offline learns from reference answers; labels={arena.labels.value} forbids that: use "
                "labels=gold, or method=awm"
            )

    def fit(self, context: Workflows, arena: Arena) -> ContextUpdate[Workflows]:
        """Induce from all training samples, part by part in their order; no rollout is made."""
        samples = arena.samples("train")
        solved = [Solved.example(sample, arena.gold_answer(sample), arena) for sample in samples]
        size = self._examples or len(solved)
        memory, events = context, list[Record]()
        for start in range(0, len(solved), size):
            part = solved[start : start + size]
            update = induce(memory, part, sample=samples[start], arena=arena, session=f"induce/{start}")
            memory = update.context
            events += update.events
        return ContextUpdate(context=memory, events=tuple(events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one induction for each part of the training samples."""
        parts = -(-learning.samples // self._examples) if self._examples else min(1, learning.samples)
        return Workload(rollouts=exactly(0), roles={ROLE: exactly(parts)})
