"""ACE without a Reflector (table 3 of the paper, "w/o Reflector"): ``method.reflector=off``."""

from __future__ import annotations

from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.method import Arena
from ace_bench.core.types import Rollout, Step
from ace_bench.methods.ace import Reflector
from ace_bench.methods.ace_parts.replies import Lesson
from ace_bench.methods.ace_parts.step import Insight


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
