"""Syntax of the official playbook text (headings, bullets, escaped lines), and how it is written.

The rules and the reader are in ``text_format``.
"""

from __future__ import annotations

import re

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.wording import clean, section_name
from ace_bench.contexts.playbook_text.dialects import read_line

_HEADING = re.compile(r"##(?!#)[ \t]*(.*)")
PLAIN_HEAD = re.compile(r"[ \t]*\[([A-Za-z][^\s\[\]]*-[0-9]{4,9})\](?!\()(.*)")
COUNTED_HEAD = re.compile(r"[ \t]*\[([^\s\[\]]+)\][ \t]*(helpful[ \t]*=.*)")
_ESCAPED = re.compile(r"([ \t]*)\\(\\*)(.*)")


def heading(line: str) -> str | None:
    """Return the section of a heading; ``None`` for any other line."""
    match = _HEADING.fullmatch(line)
    return section_name(match[1]) or None if match else None


def starts_bullet(line: str) -> bool:
    """Whether a bullet starts at a line."""
    return bool(COUNTED_HEAD.fullmatch(line) or PLAIN_HEAD.fullmatch(line))


def _special(line: str) -> bool:
    """Whether this reader or the authors' would take a line for a bullet with counters or a heading."""
    return starts_bullet(line) or line.strip().startswith("##") or read_line(line, "finance") is not None


def escaped(content: str) -> str:
    """Return a content with a backslash before each further line that looks like a bullet or heading."""
    first, *rest = content.split("\n")
    return "\n".join([first, *map(_escaped, rest)])


def _escaped(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    rest = line[len(indent) :]
    return f"{indent}\\{rest}" if _special(f"{indent}{rest.lstrip(chr(92))}") else line


def unescaped(line: str) -> str:
    """Undo the escaping of a content line."""
    match = _ESCAPED.fullmatch(line)
    return f"{match[1]}{match[2]}{match[3]}" if match and _special(f"{match[1]}{match[3]}") else line


def read_content(written: str) -> str:
    """Return the content that a text writes as ``written``."""
    first, *rest = written.split("\n")
    return clean("\n".join([first, *map(unescaped, rest)]))


def bullet_head(bullet: Bullet, *, counters: bool) -> str:
    """Write what stands before a content: the id and, in the finance dialect, two counters. Theirs has no third one."""
    return f"[{bullet.id}] helpful={bullet.helpful} harmful={bullet.harmful} ::" if counters else f"[{bullet.id}]"


def heading_line(section: str) -> str:
    """Write a heading, in capitals if these can be read back (some letters cannot)."""
    title = section.replace("_", " ").upper()
    return f"## {title if section_name(title) == section else section}"
