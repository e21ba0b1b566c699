"""Writes a playbook of bullets in the authors' text format; ``text_format`` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.text_syntax import bullet_head, escaped, heading_line

if TYPE_CHECKING:
    from ace_bench.contexts.playbook.playbook import Playbook


def write_text(playbook: Playbook, *, counters: bool = True) -> str:
    """Write a playbook section by section, with counters inline (finance) or without (AppWorld).

    Neutral votes are left out, since the authors' code cannot read them; a saved playbook (JSON) has them. Bullets of a
    playbook that was imported without counters get them only when there are votes.
    """
    layout = playbook.layout

    def text_of(bullet: Bullet) -> str:
        shown = counters and (layout is None or layout.counted or bool(bullet.helpful or bullet.harmful))
        written = (layout and layout.imported(bullet)) or f" {escaped(bullet.content)}"
        return bullet_head(bullet, counters=shown) + written

    if layout is not None:
        return layout.fill(playbook.bullets, text_of=text_of, heading_of=heading_line)
    lines = {section: [heading_line(section)] for section in playbook.sections}
    for bullet in playbook.bullets:
        lines[bullet.section].append(text_of(bullet))
    return "\n\n".join(map("\n".join, lines.values())) + "\n"
