r"""Reads and writes playbooks in the official text format.

Two dialects share the form (``## SECTION`` headings, then bullets): ``[id] helpful=X harmful=Y :: content`` of
the finance code and ``[id] content`` of the AppWorld code. This module adds ``neutral=Z`` if it is not zero, and
contents of several lines. Rules of reading:

- A bullet starts at ``[slug-number]`` (four digits or more; no link target after it) or ``[anything] helpful=``;
  it ends at the next bullet or heading. All lines between belong to its content, blank ones included.
- A heading starts with exactly two ``#`` in the first column; inside a code fence that is closed again before the
  next bullet such a line is content. Bullets before the first heading go to ``others``.
- A content line that looks like a bullet or heading is written with a backslash before it, which reading removes:
  exporting and importing returns every content unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ace_bench.contexts.playbook.bullets import BEFORE_FIRST_STEP, Bullet, measured, number_of
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.text_syntax import (
    COUNTED_HEAD,
    PLAIN_HEAD,
    heading,
    starts_bullet,
    unescaped,
    write_bullets,
)
from ace_bench.contexts.playbook.wording import OTHERS, clean, slug, tidy
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.errors import DataError

_COUNTERS = re.compile(
    r"helpful[ \t]*=[ \t]*([0-9]{1,9})[ \t,;]*harmful[ \t]*=[ \t]*([0-9]{1,9})"
    r"(?:[ \t,;]*neutral[ \t]*=[ \t]*([0-9]{1,9}))?[ \t]*::[ \t]*(.*)"
)
_FENCE = "```"


class Imported(NamedTuple):
    """A playbook read from text, and notes on everything that was changed or left out."""

    playbook: Playbook
    notes: tuple[str, ...]


def write_text(playbook: Playbook, *, counters: bool = True) -> str:
    """Write a playbook section by section, with counters inline (finance) or without (AppWorld)."""
    return write_bullets(playbook.sections, playbook.bullets, counters=counters)


def read_text(text: str, *, sections: Iterable[str], count: TokenCounter) -> Imported:
    """Read a playbook; its sections are ``sections`` and those of the text.

    Ids are kept, and new numbers continue above the highest. A duplicate id (the official counter restarts at 1) or an
    id without a number is replaced, with a note. Raises ``DataError`` with the line if counters cannot be read or the
    text holds no playbook.
    """
    reader = _Reader(text)
    reader.read()
    if not reader.headings and not reader.entries:
        raise DataError("line 1: no playbook: neither a '## SECTION' heading nor a '[id] ...' bullet")
    bullets, notes = _bullets(reader.entries, count)
    ordered = sorted([*reader.notes, *notes])
    return Imported(
        playbook=Playbook.of(bullets, sections=[*sections, *reader.headings]),
        notes=tuple(f"line {line}: {note}" for line, note in ordered),
    )


@dataclass
class _Entry:
    """A bullet whose lines are being collected."""

    line: int
    id: str
    section: str
    votes: tuple[int, int, int]
    content: list[str]


class _Head(NamedTuple):
    id: str
    votes: tuple[int, int, int]
    content: str


@dataclass
class _Reader:
    """One pass over the lines; ``notes`` are pairs of line number and text."""

    text: str
    headings: list[str] = field(default_factory=list)
    entries: list[_Entry] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)

    def read(self) -> None:
        lines = tidy(self.text).split("\n")
        fence_follows = _fences_ahead(lines)
        entry: _Entry | None = None
        section, fenced = OTHERS, False
        for number, line in enumerate(lines, start=1):
            head = _head(line, number)
            title = heading(line)
            if head is not None:
                entry = _Entry(number, head.id, section, head.votes, [head.content])
                self.entries.append(entry)
                fenced = _toggles(head.content)
            elif title is not None and not (fenced and fence_follows[number]):
                entry, section, fenced = None, title, False
                self.headings.append(title)
            elif entry is not None:
                entry.content.append(unescaped(line))
                fenced ^= _toggles(line)
            elif line.strip():
                self.notes.append((number, f"text outside of bullets is left out: {line.strip()[:80]!r}"))


def _bullets(entries: Sequence[_Entry], count: TokenCounter) -> tuple[list[Bullet], list[tuple[int, str]]]:
    bullets: list[Bullet] = []
    notes: list[tuple[int, str]] = []
    taken: set[str] = set()
    following = 1 + max((number_of(entry.id) or 0 for entry in entries), default=0)
    for entry in entries:
        content = clean("\n".join(entry.content))
        if not content:
            notes.append((entry.line, f"bullet [{entry.id}] has no content and is left out"))
            continue
        bullet_id = entry.id
        if bullet_id in taken or number_of(bullet_id) is None:
            bullet_id = f"{slug(entry.section)}-{following:05d}"
            following += 1
            problem = "is used twice" if entry.id in taken else "has no number"
            notes.append((entry.line, f"id [{entry.id}] {problem}; this bullet becomes [{bullet_id}]"))
        taken.add(bullet_id)
        helpful, harmful, neutral = entry.votes
        bullet = Bullet(
            id=bullet_id,
            section=entry.section,
            content=content,
            helpful=helpful,
            harmful=harmful,
            neutral=neutral,
            created=BEFORE_FIRST_STEP,
            changed=BEFORE_FIRST_STEP,
            tokens=0,
        )
        bullets.append(measured(bullet, count))
    return bullets, notes


def _head(line: str, number: int) -> _Head | None:
    """Read the start of a bullet; ``None`` for any other line."""
    counted = COUNTED_HEAD.fullmatch(line)
    if counted:
        found = _COUNTERS.fullmatch(counted[2])
        if not found:
            raise DataError(f"line {number}: counters must read 'helpful=X harmful=Y :: content'")
        return _Head(counted[1], (int(found[1]), int(found[2]), int(found[3] or 0)), found[4])
    plain = PLAIN_HEAD.fullmatch(line)
    return _Head(plain[1], (0, 0, 0), plain[2]) if plain else None


def _fences_ahead(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether a fence mark follows before the next bullet; one item more than lines."""
    ahead = [False] * (len(lines) + 1)
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place]
        ahead[place] = not starts_bullet(line) and (_toggles(line) or ahead[place + 1])
    return ahead


def _toggles(line: str) -> bool:
    """Return whether a line opens or closes a code fence; paired marks within a line do neither."""
    return line.count(_FENCE) % 2 == 1
