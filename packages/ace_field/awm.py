"""Agent Workflow Memory in its two scenarios: from successful attempts, and from annotated examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ace_bench.contexts.load import load_kind
from ace_bench.core.arena import Arena
from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import ContextUpdate
from ace_bench.core.settings import Count, Text
from ace_bench.core.types import GeneratorSpec, Labels, Record, Rollout, Step
from ace_bench.core.workload import Learning, Span, Workload, exactly
from ace_bench.methods.base import BaseMethod
from ace_field.attempts import ATTEMPT_FIELDS, SELF_JUDGE, judge, judge_calls
from ace_field.induction import EXPERIENCE, ROLE, Solved, induce
from ace_field.workflows import Workflows

_FIELDS = frozenset(("background", "experiences"))


class WorkflowMemory(BaseMethod[Workflows]):
    """What both scenarios share. ``initial`` is a saved memory to start from."""

    generator = GeneratorSpec(template="workflows", reply="json")
    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({ROLE: (ROLE, EXPERIENCE)})

    def __init__(self, *, initial: Text | None) -> None:
        if initial is not None and not Path(initial).is_file():
            raise SettingError(f"initial={initial} is not a file: give saved workflows, or null")
        self._initial = initial

    def start(self, arena: Arena) -> Workflows:
        """Return the empty memory, or the one to start from."""
        if self._initial is None:
            return Workflows()
        loaded = load_kind(Workflows, self._initial, arena=arena, reader="Agent Workflow Memory")
        return Workflows(items=tuple(one.measured(arena.counter("generator")) for one in loaded.items))

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the inducer's template, and of the one that words a solved task for it."""
        return {ROLE: _FIELDS, EXPERIENCE: inputs | ATTEMPT_FIELDS}


class FromAttempts(WorkflowMemory):
    """The online scenario: after each step, the workflows of its successful attempts join the memory.

    Where ``labels`` hides the verdict, the role ``self_judge`` decides what is a success, as in the paper.
    """

    roles: Mapping[str, tuple[str, ...]] = MappingProxyType({**WorkflowMemory.roles, SELF_JUDGE: (SELF_JUDGE,)})

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return also the fields of the judge's template."""
        return {**super().prompt_fields(inputs, shown), SELF_JUDGE: inputs | ATTEMPT_FIELDS}

    def update(
        self, context: Workflows, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[Workflows]:
        """Induce from the successful attempts of a batch together; others teach nothing."""
        judged = judge(rollouts, arena)
        events: list[Record] = []
        for one in judged:
            told = one.events if one.success else (*one.events, {"event": "skipped"})
            events += [{"sample": one.rollout.sample.id, **event} for event in told]
        solved = [Solved.attempt(one.rollout) for one in judged if one.success]
        if not solved:
            return ContextUpdate(context=context, events=tuple(events))
        update = induce(context, solved, arena=arena, session=rollouts[0].key)
        return ContextUpdate(context=update.context, events=(*events, *update.events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one rollout a sample, and at most one induction a step."""
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
        """Raise ``ConfigError`` where reference answers are not to be seen."""
        if arena.labels is not Labels.GOLD:
            raise ConfigError(
                f"method=awm_offline learns from reference answers; labels={arena.labels.value} forbids that: use "
                "labels=gold, or method=awm"
            )

    def fit(self, context: Workflows, arena: Arena) -> ContextUpdate[Workflows]:
        """Induce from all training samples, part by part in their order; no rollout is made."""
        solved = [Solved.example(one, arena.reference(one)) for one in arena.samples("train")]
        size = self._examples or len(solved)
        memory, events = context, list[Record]()
        for place in range(0, len(solved), size):
            update = induce(memory, solved[place : place + size], arena=arena, session=f"induce/{place}")
            memory = update.context
            events += update.events
        return ContextUpdate(context=memory, events=tuple(events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return one induction for each part of the training samples."""
        del arena
        parts = -(-learning.samples // self._examples) if self._examples else min(1, learning.samples)
        return Workload(rollouts=exactly(0), roles={ROLE: exactly(parts)})
