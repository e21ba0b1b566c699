"""Syntax of the official playbook text (headings, bullets, escaped lines), and how it is written.

The rules and the reader are in ``text_format``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.wording import section_name

_HEADING = re.compile(r"##(?!#)[ \t]*(.*)")
PLAIN_HEAD = re.compile(r"[ \t]*\[([A-Za-z][^\s\[\]]*-[0-9]{4,9})\](?!\()[ \t]*(.*)")
COUNTED_HEAD = re.compile(r"[ \t]*\[([^\s\[\]]+)\][ \t]*(helpful[ \t]*=.*)")
_ESCAPED = re.compile(r"([ \t]*)\\(\\*)(.*)")


def write_bullets(sections: Iterable[str], bullets: Iterable[Bullet], *, counters: bool) -> str:
    """Write bullets section by section, with counters inline (finance) or without (AppWorld)."""
    lines: dict[str, list[str]] = {section: [f"## {_title(section)}"] for section in sections}
    for bullet in bullets:
        first, *rest = bullet.content.split("\n")
        lines[bullet.section].append(f"[{bullet.id}] {_inline_counters(bullet) if counters else ''}{first}")
        lines[bullet.section] += map(_escaped, rest)
    return "\n\n".join(map("\n".join, lines.values())) + "\n"


def heading(line: str) -> str | None:
    """Return the section of a heading; ``None`` for any other line."""
    match = _HEADING.fullmatch(line)
    return section_name(match[1]) or None if match else None


def starts_bullet(line: str) -> bool:
    """Whether a bullet starts at a line."""
    return bool(COUNTED_HEAD.fullmatch(line) or PLAIN_HEAD.fullmatch(line))


def _special(line: str) -> bool:
    return starts_bullet(line) or heading(line) is not None


def _escaped(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    rest = line[len(indent) :]
    return f"{indent}\\{rest}" if _special(f"{indent}{rest.lstrip(chr(92))}") else line


def unescaped(line: str) -> str:
    """Undo the escaping of a content line."""
    match = _ESCAPED.fullmatch(line)
    return f"{match[1]}{match[2]}{match[3]}" if match and _special(f"{match[1]}{match[3]}") else line


def _inline_counters(bullet: Bullet) -> str:
    neutral = f" neutral={bullet.neutral}" if bullet.neutral else ""
    return f"helpful={bullet.helpful} harmful={bullet.harmful}{neutral} :: "


def _title(section: str) -> str:
    """Write a section as a heading, in capitals if these can be read back (some letters cannot)."""
    title = section.replace("_", " ").upper()
    return title if section_name(title) == section else section
