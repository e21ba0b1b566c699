"""ACE whose Generator is shown more than the playbook as it is, after an ACE engine for a coding assistant.

``method.generator_reflections=N`` and ``method.bullet_order=helpful``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ace_bench.contexts.playbook.playbook import RECENT_REFLECTIONS, Playbook
from ace_bench.core.errors import SettingError
from ace_bench.core.method import Arena, ContextUpdate
from ace_bench.core.types import Sample, Step
from ace_bench.methods.ace import Ace
from ace_bench.methods.ace_parts.step import Insight, PlaybookEditor


@dataclass(frozen=True, kw_only=True)
class AceWithOtherView(Ace):
    """Shows each first rollout of adaptation the last ``earlier_lessons`` on other samples; evaluation shows none.

    With ``helpful_first`` the bullets with the most helpful less harmful votes come first.
    """

    earlier_lessons: int
    helpful_first: bool

    @property
    def remembered(self) -> int:
        """The lessons that the playbook keeps."""
        return max(super().remembered, self.earlier_lessons)

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
        shown = super().select(context, sample)
        return replace(shown, helpful_first=True) if self.helpful_first else shown

    def prepare(
        self, context: Playbook, samples: Sequence[Sample], step: Step, arena: Arena
    ) -> ContextUpdate[Playbook]:
        """Return the playbook with the lessons, for the rollouts of this step alone."""
        if not self.earlier_lessons:
            return ContextUpdate(context=context)
        return ContextUpdate(context=context.having(shown_reflections=context.recent[-self.earlier_lessons :]))

    def refine(
        self, editor: PlaybookEditor, insights: Sequence[Insight], step: Step, arena: Arena
    ) -> ContextUpdate[Playbook]:
        """Refine, and show the lessons no longer."""
        refined = super().refine(editor, insights, step, arena)
        return replace(refined, context=refined.context.having(shown_reflections=None))
