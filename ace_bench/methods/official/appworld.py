"""The loop of the authors' AppWorld code (ace-agent/ace-appworld): each finished attempt is one lesson.

Replies are taken as they are written, the Reflector's tags count for nothing, and a Curator's reply counts as a whole
or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from ace_bench.core.method import Span
from ace_bench.core.types import Record, Rollout
from ace_bench.methods.base import CURATOR, REFLECTOR, reflector_fields
from ace_bench.methods.official.editing import DroppedOperations
from ace_bench.methods.official.learner import OfficialLearner, OfficialLesson, agent_operations, ask_for_blank_or_text
from ace_bench.methods.official.playbook import TextPlaybook

_FINISHED = ("completed", "cost")
"""The ends of attempts that are learnt from. An attempt that used up its steps teaches nothing."""


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """An attempt, the playbook that it was made under, and the reflection in its conversation."""

    rollout: Rollout
    playbook: TextPlaybook
    reflection: str | None = None


class _Lesson(OfficialLesson):
    """Learns from the attempts at a sample."""

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
        """Return the Reflector's reply as it is, "" if the call failed."""
        return self._ask(REFLECTOR, tried, {**reflector_fields(tried.rollout, self.playbook), "report": report})

    def _curate(self, tried: _Attempt, reflection: str) -> None:
        """Apply the Curator's operations; a reply that cannot be used as a whole changes nothing."""
        reply = self._ask(CURATOR, tried, self.curator_fields(self.step.index, self.step.total, reflection))
        before = self.playbook
        try:
            operations = agent_operations(reply, self.arena.sections)
            self.playbook = before.with_bullets_added(operations, count=self.arena.counter("generator"))
        except (ValueError, DroppedOperations) as error:
            self.note(tried.rollout, {"event": "rejected", "operation": {"type": "reply"}, "reason": str(error)})
        new = (bullet for bullet in self.playbook.bullet_ids if bullet not in before.bullet_ids)
        self.note(tried.rollout, *({"event": "accepted", "type": "ADD", "bullet": bullet} for bullet in new))

    def _ask(self, role: str, tried: _Attempt, prompt_values: Record) -> str:
        reply = self.ask(
            role,
            tried.rollout,
            ask_for_blank_or_text,
            lambda _: prompt_values,
            session=tried.rollout.key,
            reflection=tried.reflection,
            attempted_under=tried.playbook,
        )
        return reply or ""


@dataclass(frozen=True, kw_only=True)
class OfficialAppWorld(OfficialLearner):
    """ACE as the AppWorld code runs it."""

    lesson = _Lesson
    batches = "the authors' parallel agent is not followed"

    def curations(self, reflections: int) -> Span:
        """Every reflected attempt is curated."""
        return Span(1, reflections)
