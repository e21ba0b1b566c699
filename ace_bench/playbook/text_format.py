r"""Reads and writes playbooks in the official text format.

Two dialects share the form (``## SECTION`` headings, then bullets): ``[id] helpful=X harmful=Y :: content`` of
the finance code and ``[id] content`` of the AppWorld code. Rules of reading:

- A bullet starts at ``[slug-number]`` (four digits or more; no link target after it) or ``[anything] helpful=``;
  it ends at the next bullet or heading. All lines between belong to its content, blank ones included. A third counter,
  ``neutral=Z``, is read, too: exports of earlier versions have it.
- A heading starts with exactly two ``#`` in the first column; inside a code fence that is closed again before the
  next bullet such a line is content. Bullets before the first heading go to ``others``.
- A content line that looks like a bullet or heading is written with a backslash before it, which reading removes:
  exporting and importing returns every content unchanged. The authors' code takes a content's further lines for text
  of its section: prompts show them, statistics and excerpts do not.
- A file whose first bullet is an item of a Markdown list (``- [id] ...``, ``* ``, ``+ ``, ``1. ``, also with the id in
  bold) is read as if it had no list marks; an item with counters is read so in every file.
- A line that has counters, or stands outside of bullets and begins with ``[anything]``, and is no bullet by these
  rules, is an error; so is a file of text without a bullet.
- Headings, blank lines and other text around the bullets stay in the playbook's ``layout``: an unchanged playbook is
  written as it was read, byte for byte, but for line ends, control characters, list marks, spaces within
  ``[id] helpful=...``, ids that had to be replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from ace_bench.core.backbones import TokenCounter
from ace_bench.core.errors import DataError
from ace_bench.playbook.bullets import COUNTERS, OTHERS, Bullet, measure, number_of, slug, tidy
from ace_bench.playbook.playbook import MAX_NUMBER, Playbook
from ace_bench.playbook.text_writer import (
    COUNTED_HEAD,
    PLAIN_HEAD,
    Layout,
    escape,
    heading,
    read_content,
    resembles_bullet,
    starts_bullet,
)

_COUNTERS = re.compile(
    r"helpful[ \t]*=[ \t]*([0-9]{1,9})[ \t,;]*harmful[ \t]*=[ \t]*([0-9]{1,9})"
    r"(?:[ \t,;]*neutral[ \t]*=[ \t]*([0-9]{1,9}))?[ \t]*::(.*)"
)
_UNREAD_COUNTERS = re.compile(r"[\s(\[{*_]*helpful[ \t]*[=:][ \t]*[0-9]+.{0,10}\bharmful[ \t]*[=:]")
_LISTED = re.compile(r"([ \t]*)(?:[-*+\u2022]|[0-9]{1,4}[.)])[ \t]+(\*\*|`)?(\[[^\s\[\]]+\](?!\())(?(2)\2)(.*)")
_BRACKETED = re.compile(r"[ \t]*(?:(?:[-*+\u2022]|[0-9]{1,4}[.)])[ \t]+)?[*_`]*\[[^\s\[\]]{3,}\](?!\()")
_COUNTED_FORM = "helpful=X harmful=Y :: content"
_FORM = f"'[id-00001] {_COUNTED_FORM}'"
_FOR_AGENTS = "<!-- ace-bench playbook"
"""What begins the block of a playbook in AGENTS.md or a skill."""
_FENCE = "```"
_Note = tuple[int, str]
"""A line's number, and what was changed or left out there."""


class Imported(NamedTuple):
    """A playbook read from text, and notes on everything that was changed or left out."""

    playbook: Playbook
    notes: tuple[str, ...]


def read_text(text: str, *, sections: Iterable[str], count: TokenCounter) -> Imported:
    """Read a playbook; its sections are ``sections`` and the text's own.

    Ids are kept, and new numbers continue above the highest. A duplicate id (the official counter restarts at 1) or an
    id without a number is replaced, with a note. Raises ``DataError`` with the line if counters cannot be read or the
    text holds no playbook.
    """
    if (start := text.find(_FOR_AGENTS)) >= 0:
        line = text.count("\n", 0, start) + 1
        raise DataError(f"line {line}: an export for agents; `ace-bench playbook import` makes a playbook of it")
    text = _without_list_marks(tidy(text))
    headings, entries, notes = _read_entries(text)
    bullets, replaced = _bullets(entries, count)
    if not bullets and (notes or replaced or not headings):
        line = min(notes + replaced, default=(1, ""))[0]
        line_text = text.split("\n")[line - 1].strip()[:80]
        problem = f"{line_text!r} is not a bullet, and no line is one" if line_text else "there is no bullet"
        raise DataError(f"line {line}: {problem}; write {_FORM} below a heading '## SECTION'")
    book = Playbook.build_from([bullet for bullet, _ in bullets], sections=[*sections, *headings])
    if book.official_text() != text:
        book = replace(book, layout=_layout(text, bullets))
    ordered = sorted([*notes, *replaced])
    return Imported(playbook=book, notes=tuple(f"line {line}: {note}" for line, note in ordered))


def _without_list_marks(text: str) -> str:
    lines = text.split("\n")
    items = [_LISTED.fullmatch(line) for line in lines]
    first = next((item for line, item in zip(lines, items, strict=True) if item or starts_bullet(line)), None)
    for index, item in enumerate(items):
        if item and (bullet := f"{item[1]}{item[3]}{item[4]}") and starts_bullet(bullet):
            counted = COUNTED_HEAD.fullmatch(bullet) is not None
            lines[index] = bullet if first or counted else lines[index]
    return "\n".join(lines)


class _Head(NamedTuple):
    """Start of a bullet; ``indent`` and ``length`` are the characters before the bullet and up to its content."""

    id: str
    votes: tuple[int, int, int]
    counted: bool
    content: str
    indent: int
    length: int


class _Entry(msgspec.Struct, kw_only=True):
    """A bullet whose lines are being collected: its place in the text, and what follows its head there."""

    line: int
    start: int
    section: str
    head: _Head
    written: str

    @property
    def content_start(self) -> int:
        return self.start + self.head.length

    @property
    def end(self) -> int:
        return self.content_start + len(self.written.rstrip())


def _read_entries(text: str) -> tuple[list[str], list[_Entry], list[_Note]]:
    """Read the sections and bullets in one pass over the lines."""
    headings, entries, notes = list[str](), list[_Entry](), list[_Note]()
    lines = text.split("\n")
    fence_follows = _fences_ahead(lines)
    entry: _Entry | None = None
    section, fenced, start = OTHERS, False, 0
    for number, line in enumerate(lines, start=1):
        head = _head(line, number)
        title = heading(line)
        if head is not None:
            entry = _Entry(line=number, start=start + head.indent, section=section, head=head, written=head.content)
            entries.append(entry)
            fenced = _toggles(head.content)
        elif title is not None and not (fenced and fence_follows[number]):
            entry, section, fenced = None, title, False
            headings.append(title)
        elif resembles_bullet(line) or (entry is None and _BRACKETED.match(line)):
            raise DataError(
                f"line {number}: {line.strip()[:80]!r} looks like a bullet but cannot be read as one; write {_FORM}, "
                "or put a backslash before the line if it belongs to the bullet above"
            )
        elif entry is not None:
            entry.written += f"\n{line}"
            fenced ^= _toggles(line)
        elif line.strip():
            notes.append((number, f"text outside of bullets stays in the official text alone: {line.strip()[:80]!r}"))
        start += len(line) + 1
    return headings, entries, notes


def _bullets(entries: Sequence[_Entry], count: TokenCounter) -> tuple[list[tuple[Bullet, _Entry]], list[_Note]]:
    bullets: list[tuple[Bullet, _Entry]] = []
    notes: list[_Note] = []
    taken: set[str] = set()
    following = 1 + max(filter(None, (_number(entry.head.id) for entry in entries)), default=0)
    for entry in entries:
        written_id = bullet_id = entry.head.id
        content = read_content(entry.written)
        if not content:
            notes.append((entry.line, f"bullet [{written_id}] has no content and stays in the official text alone"))
            continue
        if bullet_id in taken or _number(bullet_id) is None:
            bullet_id = f"{slug(entry.section)}-{following:05d}"
            following += 1
            problem = "is used twice" if written_id in taken else "has no number"
            notes.append((entry.line, f"id [{written_id}] {problem}; this bullet becomes [{bullet_id}]"))
        taken.add(bullet_id)
        votes: dict[str, Any] = dict(zip(COUNTERS, entry.head.votes, strict=True))
        bullet = Bullet(id=bullet_id, section=entry.section, content=content, **votes)
        bullets.append((measure(bullet, count), entry))
    return bullets, notes


def _number(bullet_id: str) -> int | None:
    """Return the number of an id; ``None`` without one that a bullet can have, such as the last digits of a UUID."""
    number = number_of(bullet_id)
    return number if number is not None and number <= MAX_NUMBER else None


def _layout(text: str, bullets: Sequence[tuple[Bullet, _Entry]]) -> Layout:
    parts: list[str] = []
    contents: list[tuple[str, str]] = []
    end = 0
    for bullet, entry in bullets:
        parts += [text[end : entry.start], bullet.id]
        end = entry.end
        written = text[entry.content_start : end]
        if written != f" {escape(bullet.content)}":
            contents.append((bullet.id, written))
    counted = not bullets or any(entry.head.counted for _, entry in bullets)
    return Layout(parts=(*parts, text[end:]), counted=counted, contents=tuple(contents))


def _head(line: str, number: int) -> _Head | None:
    """Read the start of a bullet; ``None`` for any other line."""
    indent = len(line) - len(line.lstrip(" \t"))
    if counted := COUNTED_HEAD.fullmatch(line):
        match = _COUNTERS.fullmatch(counted[2])
        if not match:
            raise DataError(f"line {number}: counters must read {_COUNTED_FORM!r}")
        votes = (int(match[1]), int(match[2]), int(match[3] or 0))
        return _Head(counted[1], votes, True, match[4], indent, len(line) - len(match[4]) - indent)
    if plain := PLAIN_HEAD.fullmatch(line):
        if _UNREAD_COUNTERS.match(plain[2]):
            raise DataError(f"line {number}: counters must read {_COUNTED_FORM!r}")
        return _Head(plain[1], (0, 0, 0), False, plain[2], indent, len(line) - len(plain[2]) - indent)
    return None


def _fences_ahead(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether a fence mark follows before the next bullet; one item more than lines."""
    ahead = [False] * (len(lines) + 1)
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        ahead[index] = not starts_bullet(line) and (_toggles(line) or ahead[index + 1])
    return ahead


def _toggles(line: str) -> bool:
    """Return whether a line opens or closes a code fence; paired marks within a line do neither."""
    return line.count(_FENCE) % 2 == 1
