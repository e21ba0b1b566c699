"""The two kinds of playbook that ACE adapts, and how its roles are shown them."""

from __future__ import annotations

from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook_text.text_playbook import TextPlaybook
from ace_bench.core.arena import Arena
from ace_bench.core.types import Attempt

AnyPlaybook = Playbook | TextPlaybook


def shown_to_reflector(playbook: AnyPlaybook, attempt: Attempt) -> AnyPlaybook:
    """Return the bullets that an attempt used, or all for an agent's steps (paper, figures 10 and 13).

    A text is shown whole: nothing can be left out of it.
    """
    if isinstance(playbook, TextPlaybook):
        return playbook
    if attempt.trajectory:
        return playbook
    index = playbook.index
    used = [index[cited] for cited in dict.fromkeys(attempt.cited) if cited in index]
    return playbook.with_bullets(sorted(used, key=lambda bullet: (bullet.number, bullet.id)))


def sections_of(playbook: AnyPlaybook, arena: Arena) -> tuple[str, ...]:
    """Return the sections for new bullets."""
    return playbook.sections if isinstance(playbook, Playbook) else arena.sections


def recent_of(playbook: AnyPlaybook) -> tuple[str, ...]:
    """Return the reflections of earlier steps; a text keeps none."""
    return playbook.recent if isinstance(playbook, Playbook) else ()
