"""The bullets of a playbook text, for readers: the authors' code itself keeps only the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ace_bench.contexts.playbook.bullets import BEFORE_FIRST_STEP
from ace_bench.contexts.playbook_text.dialects import Dialect, Line, heading_of, read_line
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import Record


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


def text_changes(
    texts: Sequence[tuple[str, Dialect]], samples: Sequence[Sequence[str]]
) -> tuple[Sequence[Record], Sequence[Record]]:
    """Return the bullets of the first text, and what each step changed: ``set`` and ``removed``.

    ``texts`` are the one before the first step and those after the steps, ``samples`` those of each step.
    """
    versions = [{bullet.key: bullet for bullet in bullets_of(*one)} for one in texts]
    origins: dict[str, tuple[int, Sequence[str]]] = {}
    first = [_record(bullet, BEFORE_FIRST_STEP, origins) for bullet in versions[0].values()]
    changes = []
    for index, (learnt, (before, now)) in enumerate(zip(samples, pairwise(versions), strict=False)):
        for key in now.keys() - before.keys():
            origins[key] = (index, learnt)
        changed = [_record(bullet, index, origins) for key, bullet in now.items() if before.get(key) != bullet]
        changes.append({"set": changed, "removed": [key for key in before if key not in now]})
    return first, changes


def _record(bullet: TextBullet, changed: int, origins: dict[str, tuple[int, Sequence[str]]]) -> Record:
    created, sources = origins.get(bullet.key, (BEFORE_FIRST_STEP, ()))
    return {
        "id": bullet.key,
        "section": bullet.section,
        "content": bullet.content,
        "helpful": bullet.helpful,
        "harmful": bullet.harmful,
        "neutral": 0,
        "created": created,
        "changed": changed,
        "sources": list(sources),
        "tokens": estimate_tokens(bullet.content),
    }
