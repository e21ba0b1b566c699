"""ACE: generate, reflect, curate, apply, refine (paper, section 3 and figure 4).

The context is a playbook of bullets. In each step the Generator attempts samples under the playbook. The Reflector
draws a lesson from each attempt, and the Generator tries again with the lesson. The Curator turns the lessons into
operations on bullets. Code applies the operations and refines the playbook: no model rewrites it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ace_bench.ace.echoes import refuse_echoes
from ace_bench.ace.editing import Insight, PlaybookEditor, used_bullets
from ace_bench.ace.learner import CuratorRole, PlaybookLearner, Role
from ace_bench.ace.replies import Delta, ask_curator, ask_for_lesson
from ace_bench.ace.verify import VerifyingEditor
from ace_bench.core.method import Arena, ContextUpdate
from ace_bench.core.types import GeneratorSpec, Rollout, Sample, Step
from ace_bench.methods.base import CURATOR, REFLECTOR, RoleCall, ask_role, curator_fields, is_settled, reflector_fields
from ace_bench.playbook.apply import Limits
from ace_bench.playbook.playbook import Playbook


class Reflector(Role):
    """Draws a lesson from an attempt and votes on the bullets that it used (figures 10 and 13)."""

    templates: ClassVar[tuple[str, ...]] = (REFLECTOR,)

    def reflect(self, playbook: Playbook, rollout: Rollout, insight: Insight, step: Step, arena: Arena) -> Insight:
        """Return the insight with the lesson from one more rollout; without one if the model fails."""
        call = RoleCall(
            arena=arena,
            role=REFLECTOR,
            template=self.templates[0],
            session=insight.session,
            rollout=rollout,
            playbook=used_bullets(playbook, rollout.attempt),
            reflection=insight.advice,
            fields=partial(reflector_fields, rollout),
        )
        lesson, events = ask_role(REFLECTOR, call, ask_for_lesson)
        return insight.with_lesson(rollout, lesson, events)

    def conclude(self, last: Rollout, insight: Insight, arena: Arena) -> Insight:
        """Return the insight unchanged. A lesson from the last attempt would cost another call."""
        return insight


@dataclass(frozen=True, kw_only=True)
class Curator(CuratorRole):
    """Turns lessons into operations on bullets (figures 11 and 14).

    It is shown the last ``window`` lessons on samples, and how large the playbook may be. ``limits`` are enforced. With
    ``refuses_echoes`` bullets that repeat the prompts or speak about the playbook are refused.
    """

    templates: ClassVar[tuple[str, ...]] = (CURATOR,)
    limits: Limits
    token_budget: int
    window: int
    refuses_echoes: bool

    def curate(self, editor: PlaybookEditor, insights: Sequence[Insight], step: Step, arena: Arena) -> None:
        """Propose all deltas in parallel, each under the playbook with its own votes; apply them in sample order."""
        deltas = arena.map(lambda insight: self.propose(editor.preview_votes(insight), insight, step, arena), insights)
        for insight, delta in zip(insights, deltas, strict=True):
            editor.count_votes(insight)
            editor.apply_delta([insight], delta, self.limits)

    def propose(self, playbook: Playbook, insight: Insight, step: Step, arena: Arena) -> Delta:
        """Return the operations for one sample: none without a lesson, or if the model fails."""
        if not insight.lessons:
            return Delta()
        delta = ask_curator(self.call(playbook, insight, step, arena), self.limits)
        return self.without_echoes(delta, [insight], arena)

    def without_echoes(self, delta: Delta, insights: Sequence[Insight], arena: Arena) -> Delta:
        """Refuse contents that repeat the prompts of the Curator and the Reflector, or speak about the playbook."""
        if not self.refuses_echoes:
            return delta
        asked = {template for templates in self.roles.values() for template in templates}
        prompts = [arena.prompts.fixed_text(template) for template in sorted({*asked, REFLECTOR})]
        return refuse_echoes(delta, prompts, [insight.sample for insight in insights])

    def call(self, playbook: Playbook, insight: Insight, step: Step, arena: Arena) -> RoleCall[Playbook]:
        """Show the last attempt at a sample with its last lesson, and the last lessons on earlier samples."""
        lessons = insight.join_recent(playbook.recent, self.window)
        step_count = (step.index + 1, step.total)
        fields = curator_fields(
            playbook, playbook.sections, step_count, self.token_budget, reflection=lessons, operations=self.limits.kinds
        )
        return RoleCall(
            arena=arena,
            role=CURATOR,
            template=self.templates[0],
            session=insight.session,
            rollout=insight.rollouts[-1],
            playbook=playbook,
            reflection=insight.advice_before,
            fields=lambda _: fields,
        )


@dataclass(frozen=True, kw_only=True)
class Ace(PlaybookLearner):
    """The three roles and the loop between them; ``settings`` chooses the parts."""

    generator = GeneratorSpec(template="generator", answer_format="json")
    reflector: Reflector
    curator: Curator

    def update(
        self, context: Playbook, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[Playbook]:
        """Learn from a batch of the Generator's rollouts (paper, 3.1), and refine once (3.2)."""
        editor = self.edit(context, rollouts, step, arena)
        insights = arena.map(partial(self.reflect, context, step=step, arena=arena), rollouts)
        self.curator.curate(editor, insights, step, arena)
        return self.refine(editor, insights)

    def edit(self, playbook: Playbook, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> PlaybookEditor:
        """Return what applies the step's changes to the playbook."""
        if self.verifier is None:
            return PlaybookEditor(playbook, step=step, count=arena.counter("generator"))
        return VerifyingEditor(playbook, rollouts, self.verifier, step, arena)

    def reflect(self, playbook: Playbook, first: Rollout, step: Step, arena: Arena) -> Insight:
        """Reflect and try again with the lesson, round by round, until the Generator is right or repeats itself.

        A right first answer gets one reflection, for its votes.
        """
        insight, latest = Insight.begin(first, self.curator.window), first
        reflections, retries = self.rounds.limits_for(first)
        for trial in range(1, reflections + 1):
            if latest.fault is not None:
                break
            insight = self.reflector.reflect(playbook, latest, insight, step, arena)
            if len(insight.lessons) < trial or latest.feedback.correct or trial > retries:
                break
            previous, latest = latest, arena.rollout(first.sample, playbook, trial=trial, reflection=insight.advice)
            if is_settled(previous, latest):
                break
        return self.reflector.conclude(latest, insight, arena)

    def refine(self, editor: PlaybookEditor, insights: Sequence[Insight]) -> ContextUpdate[Playbook]:
        """Merge similar bullets, drop harmful ones, and keep the playbook within its budget."""
        editor.refine(self.refiner)
        editor.remember(insights, self.remembered)
        return ContextUpdate(context=editor.playbook, events=tuple(editor.events))

    def select(self, context: Playbook, sample: Sample) -> Playbook:
        """Return the playbook with the bullets that matter for a sample (paper, section 3.1)."""
        return context if self.retrieval is None else self.retrieval.select(context, sample.asked)
