"""The loop of the authors' AppWorld code (ace-agent/ace-appworld): every finished attempt is learnt from by itself.

Replies are taken as they are written, the Reflector's tags count for nothing, and a Curator's reply counts as a whole
or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from ace_bench.core.method import Arena, ContextUpdate, Span
from ace_bench.core.types import Record, Rollout, Step
from ace_bench.methods.official.editing import DroppedOperations
from ace_bench.methods.official.learner import OfficialLearner, agent_operations, ask_for_blank_or_text
from ace_bench.methods.official.playbook import TextPlaybook
from ace_bench.methods.role_calls import CURATOR, REFLECTOR, RoleCall, curator_fields, reflector_fields

_FINISHED = ("completed", "cost")
"""How an attempt ends that is learnt from; one that used up its steps is not."""


@dataclass(frozen=True, kw_only=True)
class OfficialAppWorld(OfficialLearner):
    """ACE as the AppWorld code runs it."""

    def curations(self, reflections: int) -> Span:
        """Every reflected attempt is curated."""
        return Span(1, reflections)

    def update(
        self, context: TextPlaybook, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[TextPlaybook]:
        """Learn from the attempts at one sample after another."""
        lesson = _Lesson(method=self, arena=arena, step=step, playbook=context)
        for rollout in rollouts:
            lesson.learn(rollout)
        return ContextUpdate(context=lesson.playbook, events=tuple(lesson.events))


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """An attempt, the playbook that it was made under, and the reflection in its conversation."""

    rollout: Rollout
    playbook: TextPlaybook
    reflection: str | None = None


@dataclass(kw_only=True)
class _Lesson:
    """Learns from the attempts at the samples of a step; the result is in ``playbook``, with ``events``."""

    method: OfficialAppWorld
    arena: Arena
    step: Step
    playbook: TextPlaybook
    events: list[Record] = field(default_factory=list)

    def learn(self, first: Rollout) -> None:
        """Reflect, curate and try again under the new playbook while attempts fail and retries are left.

        The first reflection on an attempt, for the Curator, sees the test report of the attempt before; the second, for
        the next attempt's conversation, sees the new playbook and the attempt's own report. An attempt that did not
        finish is not reflected on: the next one is shown the same reflection again.
        """
        tried = _Attempt(rollout=first, playbook=self.playbook)
        report: str | None = None
        retries = self.method.rounds.limits_for(first)[1]
        for trial in count(1):
            feedback, reflection = tried.rollout.feedback, tried.reflection
            if tried.rollout.attempt.ended in _FINISHED:
                for_curator = self._reflect(tried, report)
                if (self.step.index + 1) % self.method.curator_every == 0:
                    self._curate(tried, for_curator)
                report = feedback.report
                if feedback.correct is False:
                    reflection = self._reflect(tried, report)
            if feedback.correct is not False or tried.rollout.fault is not None or trial > retries:
                return
            latest = self.arena.rollout(first.sample, self.playbook, trial=trial, reflection=reflection)
            tried = _Attempt(rollout=latest, playbook=self.playbook, reflection=reflection)

    def _reflect(self, tried: _Attempt, report: str | None) -> str:
        """Return the Reflector's reply as it is, "" where the call failed."""
        shown = {**reflector_fields(tried.rollout, self.playbook), "report": report}
        return self._ask(REFLECTOR, tried, shown)

    def _curate(self, tried: _Attempt, reflection: str) -> None:
        """Apply the Curator's operations; a reply that cannot be used as a whole changes nothing."""
        budget, step = self.method.token_budget, self.step
        shown = curator_fields(self.playbook, self.arena.sections, (step.index + 1, step.total), budget, reflection)
        reply = self._ask(CURATOR, tried, {**shown, "operations": ["ADD"]})
        before = self.playbook
        try:
            operations = agent_operations(reply, self.arena.sections)
            self.playbook = before.with_bullets_added(operations, count=self.arena.counter("generator"))
        except (ValueError, DroppedOperations) as error:
            self._note(tried, {"event": "rejected", "operation": {"type": "reply"}, "reason": str(error)})
        new = (bullet for bullet in self.playbook.ids if bullet not in before.ids)
        self._note(tried, *({"event": "accepted", "type": "ADD", "bullet": bullet} for bullet in new))

    def _ask(self, role: str, tried: _Attempt, shown: Record) -> str:
        call = RoleCall(
            arena=self.arena,
            role=role,
            template=role,
            session=tried.rollout.key,
            rollout=tried.rollout,
            playbook=self.playbook,
            attempted_under=tried.playbook,
            reflection=tried.reflection,
            fields=lambda _: shown,
        )
        reply, events = call.send(ask_for_blank_or_text)
        self._note(tried, *events)
        return reply or ""

    def _note(self, tried: _Attempt, *events: Record) -> None:
        self.events += [{"sample": tried.rollout.sample.id, **event} for event in events]
