"""ACE on an environment as the authors' AppWorld code runs it: every finished attempt is learnt from by itself.

The playbook is their text (``method.playbook=text``), and so are the rules: replies are taken as they are written, the
Reflector's tags count for nothing, and a Curator's reply counts as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from ace_bench.contexts.playbook_text.operations import DroppedOperations
from ace_bench.contexts.playbook_text.text_playbook import TextPlaybook
from ace_bench.core.arena import Arena
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import ContextUpdate
from ace_bench.core.prompt_limit import send_within_limit
from ace_bench.core.transcript import Transcript
from ace_bench.core.types import Message, Record, Rollout, Step
from ace_bench.methods.ace import curator, reflector
from ace_bench.methods.ace.official_replies import agent_operations
from ace_bench.methods.ace.reflector import NOTHING, ReflectionPlan, dropped_event, fault_event
from ace_bench.methods.ace.settings import AceSettings

_FINISHED = ("completed", "cost")
"""How an attempt ends that is learnt from; one that used up its steps is not."""


@dataclass(frozen=True, kw_only=True)
class _Tried:
    """An attempt, the playbook that it was made under, and the reflection in its conversation."""

    rollout: Rollout
    playbook: TextPlaybook
    advice: str | None = None


@dataclass(kw_only=True)
class AttemptLearner:
    """Learns from a sample's attempts; the result is in ``playbook``, with ``events`` for the journal.

    ``progress`` are the fields of the Curator's prompt about the run: ``step``, ``total`` and ``token_budget``.
    """

    arena: Arena
    plan: ReflectionPlan
    playbook: TextPlaybook
    curates: bool
    progress: Record
    events: list[Record] = field(default_factory=list)

    def learn(self, rollout: Rollout) -> None:
        """Reflect, curate and try again under the new playbook while attempts fail and ``plan`` allows it.

        The first reflection on an attempt, for the Curator, sees the test report of the attempt before; the second, for
        the next attempt's conversation, sees the new playbook and the attempt's own report. An attempt that did not
        finish is not reflected on: the next one is shown the same reflection again.
        """
        tried = _Tried(rollout=rollout, playbook=self.playbook)
        report: str | None = None
        retries = self.plan.most(rollout)[1]
        for trial in count(1):
            feedback, advice = tried.rollout.feedback, tried.advice
            if tried.rollout.attempt.ended in _FINISHED:
                reflection = self._reflect(tried, report)
                if self.curates:
                    self._curate(tried, reflection)
                report = feedback.report
                if feedback.correct is False:
                    advice = self._reflect(tried, report)
            if feedback.correct is not False or tried.rollout.fault is not None or trial > retries:
                return
            latest = self.arena.rollout(rollout.sample, self.playbook, trial=trial, reflection=advice)
            tried = _Tried(rollout=latest, playbook=self.playbook, advice=advice)

    def _reflect(self, tried: _Tried, report: str | None) -> str:
        """Return the Reflector's reply as it is, "" where the call failed."""
        rollout = tried.rollout
        attempt = rollout.attempt
        used = self.playbook.excerpt(attempt.cited).text
        own = {
            "reasoning": attempt.reasoning or NOTHING,
            "reply": attempt.reply,
            "answer": attempt.answer,
            "gold": rollout.feedback.gold,
            "correct": rollout.feedback.correct,
            "feedback": rollout.feedback.message or NOTHING,
            "report": report,
            "cited": attempt.cited,
            "bullets": used,
        }
        return self._ask(reflector.ROLE, self.plan.template, tried, own)

    def _curate(self, tried: _Tried, reflection: str) -> None:
        """Apply the Curator's operations; a reply that cannot be used as a whole changes nothing."""
        own = {
            **self.progress,
            "sections": self.arena.sections,
            "operations": ["ADD"],
            "size": self.playbook.size,
            "tokens": self.playbook.tokens,
            "reflection": reflection,
        }
        reply = self._ask(curator.ROLE, "curator", tried, own)
        before = self.playbook
        try:
            operations = agent_operations(reply, self.arena.sections)
            self.playbook = before.with_bullets_added(operations, count=self.arena.counter("generator"))
        except (ValueError, DroppedOperations) as error:
            self._note(tried, {"event": "rejected", "operation": {"type": "reply"}, "reason": str(error)})
        new = (bullet for bullet in self.playbook.ids if bullet not in before.ids)
        self._note(tried, *({"event": "accepted", "type": "ADD", "bullet": bullet} for bullet in new))

    def _ask(self, role: str, template: str, tried: _Tried, own: Record) -> str:
        rollout = tried.rollout
        sample = rollout.sample

        def send(shown: Transcript) -> str:
            seen = replace(rollout, attempt=replace(rollout.attempt, trajectory=shown.shown))
            fields: dict[str, Any] = {
                **sample.inputs,
                **self.playbook.render(sample),
                "labels": self.arena.labels.value,
                "trajectory": shown.text,
                "conversation": self._conversation(seen, tried),
                **own,
            }
            return self.arena.lm(role, rollout.key)(self.arena.prompts.render(template, fields)).text

        try:
            reply, dropped = send_within_limit(Transcript(rollout.attempt.trajectory), send)
        except RolloutFault as error:
            if error.blank is not None:
                return error.blank
            self._note(tried, fault_event(role, error.fault))
            return ""
        self._note(tried, *dropped_event(role, dropped))
        return reply

    def _note(self, tried: _Tried, *events: Record) -> None:
        self.events += [{"sample": tried.rollout.sample.id, **event} for event in events]

    def _conversation(self, seen: Rollout, tried: _Tried) -> Callable[[], tuple[Message, ...]]:
        return partial(self.arena.conversation, seen, tried.playbook, reflection=tried.advice)


def learn_from_attempts(
    settings: AceSettings, playbook: TextPlaybook, rollouts: Sequence[Rollout], step: Step, arena: Arena
) -> ContextUpdate[TextPlaybook]:
    """Learn from the attempts at a batch of samples, one sample after another."""
    number, total = settings.number(step)
    learner = AttemptLearner(
        arena=arena,
        plan=settings.reflection_plan(step),
        playbook=playbook,
        curates=number % settings.curator_every == 0,
        progress={"step": number, "total": total, "token_budget": settings.token_budget},
    )
    for rollout in rollouts:
        learner.learn(rollout)
    return ContextUpdate(context=learner.playbook, events=tuple(learner.events))
