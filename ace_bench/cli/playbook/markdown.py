"""A playbook as Markdown that people may edit; read by lines, because a Markdown parser loses their other text.

The playbook is a block between comments. The rest of the file belongs to the user. The comment that ends a block lists
what was exported: id, counters and a checksum of each entry. With it, what was edited, deleted or added since is known,
also if the playbook itself has changed meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from ace_bench.core.encoding import digest_of_text
from ace_bench.core.errors import DataError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.playbook.bullets import (
    BEFORE_FIRST_STEP,
    Bullet,
    clean,
    indent,
    measure,
    number_of,
    section_name,
    slug,
)
from ace_bench.playbook.playbook import Playbook

_BEGIN = "<!-- ace-bench playbook: edit, delete and add entries; `ace-bench playbook import` reads them back -->"
_END = "<!-- ace-bench playbook ends"
_BLOCK = re.compile(rf"^<!-- ace-bench playbook:[^\n]*\n(?P<body>.*?)^{_END}(?P<known>.*?)-->", re.M | re.S)
_MARK = re.compile(rf"^(<!-- ace-bench playbook:|{_END})", re.M)
_ENTRY = re.compile(r"[-*+] +(?:\[(?P<id>[^\s\[\]]+)\](?!\())? *(?P<text>.*)")
_BLANK = Bullet(id="", section="", content="", created=BEFORE_FIRST_STEP, changed=BEFORE_FIRST_STEP, tokens=0)
_LARGEST = 10**8
"""Larger numbers in the ids of a file are not accepted."""
_USE = (
    "Lessons from earlier work on similar tasks. Use the entries that fit the task; where an entry warns of a mistake, "
    "avoid it. Name an entry that you rely on by its id in square brackets."
)


class Exported(NamedTuple):
    """An entry when it was exported: its votes and the checksum of its content."""

    helpful: int
    harmful: int
    neutral: int
    checksum: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry as it is in a file now; ``id`` is "" for one that somebody added."""

    id: str
    section: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """What a file holds of a playbook now, and what was exported to it, by id."""

    entries: tuple[Entry, ...]
    exported: Mapping[str, Exported]


def write_block(bullets: Iterable[Bullet], *, title: str) -> str:
    """Return the block of some bullets, by section."""
    ordered = sorted(bullets, key=lambda bullet: bullet.section)  # within a section they stay in order of creation
    lines = list[str]()
    for section, group in groupby(ordered, key=lambda bullet: bullet.section):
        lines += [f"### {section}", "", *(f"- [{bullet.id}] {indent(bullet.content)}" for bullet in group), ""]
    exported = [f"{b.id} {b.helpful} {b.harmful} {b.neutral} {_checksum(b.content)}" for b in ordered]
    return enclose([f"## {title}", "", _USE, "", *lines], exported)


def enclose(lines: Iterable[str], exported: Iterable[str] = ()) -> str:
    """Return lines as a block, without a line break at its end."""
    return "\n".join([_BEGIN, *lines, _END, *exported, "-->"])


def put_block(text: str, block: str, where: str) -> str:
    """Return a text with its block replaced, or added at its end; all else stays as it is. Raises ``DataError``."""
    match = _find(text, where)
    block = block.replace("\n", "\r\n" if "\r\n" in text else "\n")
    if match is not None:
        return f"{text[: match.start()]}{block}{text[match.end() :]}"
    line = "\r\n" if "\r\n" in text else "\n"
    between = line * (not text.endswith("\n")) + line if text else ""
    return f"{text}{between}{block}{line}"


def _find(text: str, where: str) -> re.Match[str] | None:
    matches = [*_BLOCK.finditer(text)]
    if len(_MARK.findall(text)) != 2 * len(matches) or len(matches) > 1:
        raise DataError(
            f"{where}: the comments around the playbook are not one pair: restore them, or delete the block with both"
        )
    return matches[0] if matches else None


def read_block(text: str, where: str) -> Block | None:
    """Return the block of a text, ``None`` if it has none. Raises ``DataError`` that names the line."""
    match = _find(text, where)
    if match is None:
        return None
    entries: list[Entry] = []
    section, blanks = "", list[str]()
    first = text.count("\n", 0, match.start("body")) + 1
    for number, line in enumerate(match["body"].replace("\r\n", "\n").split("\n"), first):
        entry = _ENTRY.fullmatch(line)
        continued = line.removeprefix("\t" if line.startswith("\t") else "  ")
        if line.startswith("### "):
            section = section_name(line[4:])
        elif not line.strip():
            blanks.append(continued)
            continue
        elif section and entry is not None:
            entries.append(Entry(id=entry["id"] or "", section=section, content=entry["text"]))
        elif section and entries and entries[-1].section == section and continued != line:
            entries[-1] = replace(entries[-1], content="\n".join([entries[-1].content, *blanks, continued]))
        elif section:
            raise DataError(
                f"{where}, line {number}: neither an entry (- text, its further lines indented by two blanks) nor a "
                "section (### name)"
            )
        blanks = []
    cleaned = (_with_known_id(entry) for entry in entries)
    return Block(entries=tuple(entry for entry in cleaned if entry.content), exported=_exported(match["known"], where))


def _with_known_id(entry: Entry) -> Entry:
    """Return an entry whose brackets hold no id, such as a box to tick, with these as part of its text."""
    number = number_of(entry.id)
    if entry.id and (number is None or number > _LARGEST):
        return replace(entry, id="", content=clean(f"[{entry.id}] {entry.content}"))
    return replace(entry, content=clean(entry.content))


def _exported(text: str, where: str) -> Mapping[str, Exported]:
    exported: dict[str, Exported] = {}
    for line in filter(str.strip, text.splitlines()):
        try:
            name, helpful, harmful, neutral, checksum = line.split()
            exported[name] = Exported(int(helpful), int(harmful), int(neutral), checksum)
        except ValueError as error:
            raise DataError(f"{where}: the comment that ends the playbook was changed: {line.strip()}") from error
    return exported


def _checksum(content: str) -> str:
    """Return a checksum of a content; blanks at the ends of lines, which editors remove, do not count."""
    return digest_of_text("\n".join(map(str.rstrip, content.split("\n"))))[:8]


def merge_edits(book: Playbook, block: Block, *, source: str) -> Playbook:
    """Return a playbook with what people did to its exported entries; counters of known ids stay.

    Only what differs from the export is an edit, so what the playbook has learnt, or removed, since stays. An empty
    playbook takes all entries, with their exported counters. ``sources`` of new and edited bullets name ``source``.
    """
    put: dict[str, Bullet] = {}
    names: set[str] = set()
    numbers = (number_of(entry.id) or 0 for entry in block.entries)
    free = max([book.next_number, *(number + 1 for number in numbers)])
    for entry in block.entries:
        name = entry.id
        if not name or name in names:  # added, or a copy of another entry
            name, free = f"{slug(entry.section)}-{free:05d}", free + 1
        names.add(name)
        bullet, before = book.index.get(name), block.exported.get(name)
        edited = before is None or before.checksum != _checksum(entry.content)
        if bullet is None and (edited or not book.size):
            helpful, harmful, neutral, _ = before or Exported(0, 0, 0, "")
            bullet = replace(_BLANK, id=name, helpful=helpful, harmful=harmful, neutral=neutral)
        if bullet is None:
            continue
        content = entry.content if edited or not bullet.content else bullet.content
        if (content, entry.section) != (bullet.content, bullet.section):
            sources = tuple(dict.fromkeys((*bullet.sources, f"{source}#{name}")))
            put[name] = measure(
                replace(bullet, content=content, section=entry.section, sources=sources), estimate_tokens
            )
    deleted = [name for name in block.exported if name in book.index and name not in names]
    sections = dict.fromkeys((*book.sections, *(entry.section for entry in block.entries)))
    known_sections = book.replace_fields(sections=tuple(sections), next_number=free)
    return known_sections.with_index(book.index.changed(put=[*put.values()], gone=deleted))
