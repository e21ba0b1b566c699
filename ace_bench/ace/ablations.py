"""ACE with one part replaced; each class names its setting and its table of the paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from ace_bench.ace.ace import Ace, Curator, Reflector
from ace_bench.ace.editing import Insight, PlaybookEditor
from ace_bench.ace.replies import Delta, Lesson
from ace_bench.core.errors import SettingError
from ace_bench.core.method import Arena, ContextUpdate
from ace_bench.core.replies import ask
from ace_bench.core.types import Rollout, Sample, Step
from ace_bench.methods.base import CURATOR, RoleCall, ask_role
from ace_bench.playbook.apply import Add
from ace_bench.playbook.playbook import RECENT_REFLECTIONS, Playbook


class RewriterReply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole new playbook: the ablation without incremental updates (paper, A.5)."""

    reasoning: str = ""
    playbook: str


class NoReflector(Reflector):
    """Gives the Curator the attempt and its feedback themselves."""

    templates = ()

    def reflect(self, playbook: Playbook, rollout: Rollout, insight: Insight, step: Step, arena: Arena) -> Insight:
        """Take what is known of the attempt for the lesson; the Curator's prompt shows an agent's steps in any case."""
        attempt = (("Reasoning", rollout.attempt.reasoning), ("Answer", rollout.attempt.answer))
        parts = (
            *(() if rollout.attempt.trajectory else attempt),
            ("Feedback", rollout.feedback.message),
            ("Reference answer", rollout.feedback.gold),
        )
        text = "\n".join(f"{label}: {text}" for label, text in parts if text)
        return insight.with_lesson(rollout, Lesson(text, ()))


class _Misleading(Reflector):
    templates = ("reflector_harmful",)


@dataclass(frozen=True)
class HarmfulReflector(Reflector):
    """A Reflector that is asked to mislead in all rounds of every ``every``-th step."""

    every: int
    templates = (*Reflector.templates, *_Misleading.templates)

    def reflect(self, playbook: Playbook, rollout: Rollout, insight: Insight, step: Step, arena: Arena) -> Insight:
        """Return the insight with a lesson or, in its step, with a misleading one."""
        if (step.index + 1) % self.every == 0:
            return _Misleading().reflect(playbook, rollout, insight, step, arena)
        return super().reflect(playbook, rollout, insight, step, arena)


_ENTRY = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?\((?P<section>[^)]*)\)\s*(?P<content>.*)$")


class RewritingCurator(Curator):
    """Writes the whole playbook anew for each sample; an empty text changes nothing."""

    templates = ("rewriter",)

    def curate(self, editor: PlaybookEditor, insights: Sequence[Insight], step: Step, arena: Arena) -> None:
        """Rewrite sample by sample: each rewriting replaces the one before."""
        for insight in insights:
            editor.count_votes(insight)
            if not insight.lessons:
                continue
            text, events = ask_role(CURATOR, self.call(editor.playbook, insight, step, arena), _ask_for_playbook)
            entries = tuple(read_entries(text or ""))
            if entries:
                editor.remove_bullets()
            editor.apply_delta([insight], Delta(entries, events), self.limits)


def _ask_for_playbook(call: RoleCall[Playbook]) -> str:
    return ask(call.lm, call.messages, RewriterReply).playbook


def read_entries(text: str) -> list[Add]:
    """Read the entries of a playbook, one per line: ``(section) text``.

    Lines without a section continue the entry before them; text before the first entry goes to ``others``.
    """
    entries: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        match = _ENTRY.match(line)
        if match:
            entries.append((match["section"], [match["content"]]))
        elif entries:
            entries[-1][1].append(line)
        elif line.strip():
            entries.append(("others", [line]))
    return [Add(section=section, content="\n".join(lines).strip()) for section, lines in entries]


@dataclass(frozen=True, kw_only=True)
class AceWithOtherView(Ace):
    """Shows each first rollout of adaptation the last ``earlier_lessons`` on other samples; evaluation shows none.

    With ``helpful_first`` the bullets with the most helpful less harmful votes come first.
    """

    earlier_lessons: int
    helpful_first: bool

    def check(self, arena: Arena) -> None:
        """Reject prompts that do not show the lessons or the bullets."""
        super().check(arena)
        template = self.generator.template
        if self.earlier_lessons and not arena.prompts.uses(template, RECENT_REFLECTIONS):
            raise SettingError(
                f"generator_reflections={self.earlier_lessons} needs prompts that show the field "
                f"{RECENT_REFLECTIONS}, as prompts/default does: set 0, or add it to {template}.j2"
            )
        if self.helpful_first and not arena.prompts.uses(template, "playbook"):
            raise SettingError(
                "bullet_order=helpful needs prompts that show the field playbook, as prompts/default does: set created"
            )

    def select(self, context: Playbook, sample: Sample) -> Playbook:
        """Return the bullets for a sample, in the chosen order."""
        selected = super().select(context, sample)
        return replace(selected, helpful_first=True) if self.helpful_first else selected

    def prepare(
        self, context: Playbook, samples: Sequence[Sample], step: Step, arena: Arena
    ) -> ContextUpdate[Playbook]:
        """Return the playbook with the lessons. Only the rollouts of this step use it."""
        if not self.earlier_lessons:
            return ContextUpdate(context=context)
        return ContextUpdate(context=context.replace_fields(shown_reflections=context.recent[-self.earlier_lessons :]))

    def refine(self, editor: PlaybookEditor, insights: Sequence[Insight]) -> ContextUpdate[Playbook]:
        """Refine, and show the lessons no longer."""
        refined = super().refine(editor, insights)
        return replace(refined, context=refined.context.replace_fields(shown_reflections=None))
