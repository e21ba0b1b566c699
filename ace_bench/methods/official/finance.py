"""The loop of the authors' finance code (ace-agent/ace): reflect round by round, count the tags at once, then curate.

A step learns from one sample after another. Replies are asked for once and read by the authors' rules: a reflection is
the Reflector's whole reply, tags count on any bullet, and a Curator's reply counts as a whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ace_bench.core.errors import UNREADABLE
from ace_bench.core.method import POST_UPDATE_ROLLOUT, Arena, ContextUpdate
from ace_bench.core.replies import ask_once
from ace_bench.core.types import Record, Rollout, Step
from ace_bench.methods.base import CURATOR, REFLECTOR, is_settled, reflector_fields
from ace_bench.methods.official.editing import DroppedOperations
from ace_bench.methods.official.learner import OfficialLearner, OfficialLesson, ask_for_operations, official_tags
from ace_bench.methods.official.playbook import TextPlaybook
from ace_bench.playbook.apply import reject

_IGNORED = "the authors' code does nothing but ADD"


@dataclass(kw_only=True)
class FinanceLesson(OfficialLesson):
    """Learns from a sample, and counts the tags at once."""

    tags: list[Any] = field(default_factory=list)
    """All that the Reflector has given, in order."""
    failed: bool = False
    """Whether a call about the sample got no reply, which is an error in the authors' code."""

    def learn(self, first: Rollout) -> None:
        """Reflect round by round, and curate from the last reflection."""
        reflected, reflections = self.reflect_on(first)
        if reflections and (self.step.epoch_index + 1) % self.method.curator_every == 0:
            prompt_values = self.curator_fields(self.step.epoch_index, self.step.epoch_total, reflections[-1])
            self.curate(reflected, first, prompt_values, before_last="".join(reflections[-2:-1]))

    def reflect_on(self, first: Rollout) -> tuple[Rollout, Sequence[str]]:
        """Reflect and try again, round by round; return the last rollout that was reflected on, and the reflections.

        The rounds end when an answer is right or, where ``labels`` hides that, when it repeats the one before. Each
        new answer and reflection runs under the playbook with the tags counted so far.
        """
        latest, reflected, reflections = first, first, list[str]()
        most, retries = self.method.rounds.limits_for(first)
        for trial in range(1, most + 1):
            if latest.fault is not None:
                break
            reflection = self._reflect(latest, first, "".join(reflections[-1:]))
            if reflection is None:
                self.failed = True
                break
            reflections.append(reflection)
            reflected = latest
            if latest.feedback.correct or trial > retries:
                break
            latest = self.arena.rollout(first.sample, self.playbook, trial=trial, reflection=reflection)
            if is_settled(reflected, latest):
                break
        self.failed |= got_no_reply(latest)
        return reflected, reflections

    def _reflect(self, rollout: Rollout, first: Rollout, before: str) -> str | None:
        """Return the Reflector's reply, with its tags counted; ``None`` if the model fails."""
        fields = partial(reflector_fields, rollout)
        reply = self.ask(REFLECTOR, rollout, ask_once, fields, session=first.key, reflection=before)
        if reply is not None:
            tags = official_tags(reply)
            self.tags += tags
            self.playbook = self.playbook.with_tags(tags, count=self.arena.counter("generator"))
        return reply

    def curate(self, rollout: Rollout, first: Rollout, prompt_values: Record, *, before_last: str) -> None:
        """Apply the Curator's operations; those that the authors' code cannot apply are dropped together.

        Without operations their code drops the blanks around the text, without a reply it leaves the text as it is.
        """
        operations = self.ask(
            CURATOR, rollout, ask_for_operations, lambda _: prompt_values, session=first.key, reflection=before_last
        )
        if operations is None:
            return
        before = self.playbook
        try:
            self.playbook = before.with_bullets_added(operations, count=self.arena.counter("generator"))
        except DroppedOperations as error:
            self.note(first, {"event": "rejected", "operation": {"type": "all of the reply"}, "reason": str(error)})
            return
        new = (Counter(self.playbook.bullet_ids) - Counter(before.bullet_ids)).elements()
        ignored = (operation for operation in operations if operation["type"] != "ADD")
        self.note(first, *({"event": "accepted", "type": "ADD", "bullet": bullet} for bullet in new))
        self.note(first, *(reject(operation, _IGNORED) for operation in ignored))


@dataclass(frozen=True, kw_only=True)
class OfficialFinance(OfficialLearner):
    """ACE as the finance code runs it; ``measure_post_update`` attempts each sample once more, for a metric alone."""

    measure_post_update: bool
    lesson = FinanceLesson
    batches = "the authors' batches are method=combee"

    @property
    def extra_rollouts(self) -> int:
        """The rollouts of a sample that only measure."""
        return int(self.measure_post_update)

    def update(
        self, context: TextPlaybook, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[TextPlaybook]:
        """Learn from one sample after another, and measure the gain."""
        learnt = super().update(context, rollouts, step, arena)
        repeated = self.attempt_again(learnt.context, rollouts, arena)
        events = post_update_events(rollouts, repeated)
        return ContextUpdate(context=learnt.context, events=(*learnt.events, *events))

    def attempt_again(self, playbook: TextPlaybook, rollouts: Sequence[Rollout], arena: Arena) -> Sequence[Rollout]:
        """Attempt each sample under the new playbook, where ``measure_post_update`` is set."""
        if not self.measure_post_update:
            return ()
        trial = 1 + self.max_reflection_rounds  # so that no rollout of the step is replayed
        return arena.map(lambda rollout: arena.rollout(rollout.sample, playbook, trial=trial), rollouts)


def post_update_events(rollouts: Sequence[Rollout], repeated: Sequence[Rollout]) -> Sequence[Record]:
    """Return an event for each sample attempted again; metrics look up the grades by the rollouts' keys."""
    return [
        {"event": POST_UPDATE_ROLLOUT, "sample": first.sample.id, "first": first.key, "again": second.key}
        for first, second in zip(rollouts, repeated, strict=False)  # none is repeated where nothing is measured
    ]


def got_no_reply(rollout: Rollout) -> bool:
    """Whether an attempt failed without a reply. A reply that cannot be read is a wrong answer."""
    return rollout.fault is not None and rollout.fault.kind not in UNREADABLE
