"""Lossy compression of a playbook, as a rewrite by a language model tends to do it, and joining of entries."""

from __future__ import annotations

from collections.abc import Sequence

_ROOM = 6_000
"""Characters a rewritten playbook has at most: asked for a whole text, models write about this much."""
_SHORT = 160


def condense(entries: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Bring ``(section, content)`` entries down to a modest size.

    While they fit they stay as they are, on one line each. Beyond that the older half is shortened, which
    blurs what it says, and what still does not fit is dropped from the oldest on.
    """
    lines = [(section, " ".join(content.split())) for section, content in dict.fromkeys(entries) if content.strip()]
    if _size(lines) <= _ROOM:
        return tuple(lines)
    half = len(lines) // 2
    lines = [(s, c[:_SHORT].rstrip() if i < half else c) for i, (s, c) in enumerate(lines)]
    while len(lines) > 1 and _size(lines) > _ROOM:
        lines.pop(0)
    return tuple(lines)


def _size(lines: Sequence[tuple[str, str]]) -> int:
    return sum(len(section) + len(content) + 4 for section, content in lines)


def merge(contents: Sequence[str]) -> str:
    """Say once what several contents say: those that another one contains are left out."""
    kept: list[str] = []
    for content in dict.fromkeys(" ".join(content.split()) for content in contents):
        if content and not any(content in other for other in kept):
            kept = [other for other in kept if other not in content]
            kept.append(content)
    return " ".join(kept) or "-"
