"""The bullets of a playbook text, for readers: the authors' code itself keeps only the text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ace_bench.contexts.playbook_text.dialects import Dialect, Line, heading_of, read_line


@dataclass(frozen=True, kw_only=True)
class TextBullet:
    """A bullet with all lines up to the next bullet or heading; ``key`` is its id, numbered where that occurs again."""

    key: str
    section: str
    content: str
    helpful: int
    harmful: int


def bullets_of(text: str, dialect: Dialect) -> list[TextBullet]:
    """Return the bullets in the order of the text."""
    found: list[tuple[Line, str, list[str]]] = []
    section, open_bullet = "", False
    for line in text.split("\n"):
        title, bullet = heading_of(line), read_line(line, dialect)
        if title is not None:
            section, open_bullet = title, False
        elif bullet is not None:
            found.append((bullet, section, [bullet.content]))
            open_bullet = True
        elif open_bullet:
            found[-1][2].append(line)
    seen = Counter[str]()
    bullets = []
    for bullet, section, lines in found:
        seen[bullet.id] += 1
        key = bullet.id if seen[bullet.id] == 1 else f"{bullet.id} ({seen[bullet.id]})"
        content = "\n".join(lines).rstrip()
        counters = {"helpful": bullet.helpful, "harmful": bullet.harmful}
        bullets.append(TextBullet(key=key, section=section, content=content, **counters))
    return bullets
