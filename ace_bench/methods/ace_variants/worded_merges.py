"""ACE whose Curator words merged bullets: ``method.merge_wording=curator``."""

from __future__ import annotations

from collections.abc import Sequence

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.refine import MergeWording
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import Arena
from ace_bench.core.replies import ask
from ace_bench.methods.ace_parts.replies import MergerReply
from ace_bench.methods.role_calls import CURATOR


class WordedMerges:
    """Asks the Curator's model for one content of similar bullets."""

    templates: tuple[str, ...] = ("merger",)

    def bind(self, arena: Arena, session: str) -> MergeWording:
        """Return a function that words a merged bullet; "" where the model fails."""

        def word(bullets: Sequence[Bullet]) -> str:
            messages = arena.prompts.render("merger", {"bullets": "\n".join(bullet.line for bullet in bullets)})
            try:
                return ask(arena.lm(CURATOR, session), messages, MergerReply).content
            except RolloutFault:
                return ""

        return word
