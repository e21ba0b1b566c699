"""Writes bullets in the authors' text format; the rules and the reader are in ``text_format``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ace_bench.playbook.authors_text import Dialect, read_line, title_of, write_head
from ace_bench.playbook.bullets import Bullet, clean, section_name

_HEADING = re.compile(r"##(?!#)[ \t]*(.*)")
_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
PLAIN_HEAD = re.compile(rf"[ \t]*\[([A-Za-z][^\s\[\]]*-[0-9]{{4,9}}|{_UUID})\](?!\()(.*)")
COUNTED_HEAD = re.compile(r"[ \t]*\[([^\s\[\]]+)\][ \t]*(helpful[ \t]*=.*)")
_COUNTERS_WITHIN = re.compile(r"\bhelpful[ \t]*[=:][ \t]*[0-9].{0,20}\bharmful[ \t]*[=:]")
_ESCAPED = re.compile(r"([ \t]*)\\(\\*)(.*)")


def heading(line: str) -> str | None:
    """Return the section of a heading; ``None`` for any other line."""
    match = _HEADING.fullmatch(line)
    return section_name(match[1]) or None if match else None


def starts_bullet(line: str) -> bool:
    """Whether a bullet starts at a line."""
    return bool(COUNTED_HEAD.fullmatch(line) or PLAIN_HEAD.fullmatch(line))


def resembles_bullet(line: str) -> bool:
    """Whether a line has the two counters of a bullet, in any form. A line that explains the form has none."""
    return not line.lstrip().startswith("\\") and _COUNTERS_WITHIN.search(line) is not None


def _special(line: str) -> bool:
    """Whether this reader or the authors' would take a line for a bullet with counters or a heading."""
    is_special = starts_bullet(line) or resembles_bullet(line) or line.strip().startswith("##")
    return is_special or read_line(line, "finance") is not None


def escape(content: str) -> str:
    """Return a content with a backslash before each further line that looks like a bullet or heading."""
    first, *other_lines = content.split("\n")
    return "\n".join([first, *map(_escape_line, other_lines)])


def _escape_line(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    unindented = line[len(indent) :]
    return f"{indent}\\{unindented}" if _special(f"{indent}{unindented.lstrip(chr(92))}") else line


def unescape(line: str) -> str:
    """Undo the escaping of a content line."""
    match = _ESCAPED.fullmatch(line)
    return f"{match[1]}{match[2]}{match[3]}" if match and _special(f"{match[1]}{match[3]}") else line


def read_content(written: str) -> str:
    """Return the content that a text writes as ``written``."""
    first, *other_lines = written.split("\n")
    return clean("\n".join([first, *map(unescape, other_lines)]))


def heading_line(section: str) -> str:
    """Write a heading, in capitals if these can be read back (some letters cannot)."""
    title = section.replace("_", " ").upper()
    return f"## {title if section_name(title) == section else section}"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """An imported text with ids in the places of its bullets. No operation changes it.

    ``parts`` are texts and ids in turn, a text first and last. ``counted`` says whether the bullets had counters.
    ``contents`` are, by id, the contents that the text wrote in another way than exports do, with the blanks before
    them.
    """

    parts: tuple[str, ...]
    counted: bool = True
    contents: tuple[tuple[str, str], ...] = ()

    def imported(self, bullet: Bullet) -> str | None:
        """Return how the text wrote the content of a bullet; ``None`` if as exports do, or if it has changed since."""
        written = self._contents.get(bullet.id)
        return written if written is not None and read_content(written) == bullet.content else None

    def limited(self, ids: Collection[str]) -> Layout:
        """Return the layout without what the text wrote of other bullets."""
        return replace(self, contents=tuple(content for content in self.contents if content[0] in ids))

    @cached_property  # msgspec does not save what begins with an underscore
    def _contents(self) -> Mapping[str, str]:
        return dict(self.contents)

    def fill(
        self, bullets: Sequence[Bullet], *, text_of: Callable[[Bullet], str], heading_of: Callable[[str], str]
    ) -> str:
        """Return the text with the bullets as they are now.

        The line of a removed bullet goes. A new bullet follows the last line of its section that is not blank; sections
        that the text lacks follow its last such line, each under its heading.
        """
        texts = {bullet.id: text_of(bullet) for bullet in bullets}
        pieces, ends = _arrange(self.parts, texts)
        placed = set(self.parts[1::2])
        following: dict[int, list[str]] = {}
        lacking: dict[str, list[str]] = {}
        for bullet in bullets:
            if bullet.id in placed:
                continue
            if (end := ends.get(bullet.section)) is not None:
                following.setdefault(end, []).append(f"\n{texts[bullet.id]}")
            else:
                lacking.setdefault(bullet.section, [f"\n\n{heading_of(bullet.section)}"]).append(
                    f"\n{texts[bullet.id]}"
                )
        last = max((index for index, piece in enumerate(pieces, start=1) if piece.strip()), default=0)
        following.setdefault(last, []).extend(text for lines in lacking.values() for text in lines)
        rows = ([*following.get(index, ()), piece] for index, piece in enumerate(pieces))
        return "".join(piece for row in rows for piece in row) + "".join(following.get(len(pieces), ()))


def _arrange(parts: Iterable[str], texts: Mapping[str, str]) -> tuple[list[str], dict[str, int]]:
    """Return the pieces of the text, and by section the number of pieces up to its last one that is not blank.

    Where a heading occurs again, the section is the first one.
    """
    pieces: list[str] = []
    ends: dict[str, int] = {}
    section: str | None = None
    for index, part in enumerate(parts):
        if index % 2 and part not in texts:
            _drop_line_start(pieces)
            continue
        for piece in [texts[part]] if index % 2 else _lines(part):
            pieces.append(piece)
            title = None if index % 2 else heading(piece)
            if title is not None:
                section = None if title in ends else title
            if section is not None and piece.strip():
                ends[section] = len(pieces)
    return pieces, ends


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, and each line break by itself."""
    first, *other_lines = text.split("\n")
    yield first
    for line in other_lines:
        yield "\n"
        yield line


def _drop_line_start(pieces: list[str]) -> None:
    while pieces and not pieces[-1].strip():
        if pieces.pop() == "\n":
            return


def write_text(sections: Iterable[str], bullets: Sequence[Bullet], layout: Layout | None, *, counters: bool) -> str:
    """Write bullets section by section, with counters inline (finance) or without (AppWorld), for exports.

    Neutral votes are left out, since the authors' code cannot read them; a saved playbook (JSON) has them. Bullets of a
    playbook that was imported without counters get them only when there are votes.
    """

    def text_of(bullet: Bullet) -> str:
        with_counters = counters and (layout is None or layout.counted or bool(bullet.helpful or bullet.harmful))
        written = (layout and layout.imported(bullet)) or f" {escape(bullet.content)}"
        return write_head(bullet, counters=with_counters) + written

    text = _write(sections, bullets, layout, text_of, heading_line)
    return text if layout else f"{text}\n"


def official_text(sections: Iterable[str], bullets: Sequence[Bullet], layout: Layout | None, dialect: Dialect) -> str:
    """Write bullets section by section under the authors' headings or the imported text's, for prompts."""

    def text_of(bullet: Bullet) -> str:
        written = (layout and layout.imported(bullet)) or f" {bullet.content}"
        return write_head(bullet, counters=dialect == "finance") + written

    return _write(sections, bullets, layout, text_of, lambda section: f"## {title_of(section, dialect)}")


def _write(
    sections: Iterable[str],
    bullets: Sequence[Bullet],
    layout: Layout | None,
    text_of: Callable[[Bullet], str],
    heading_of: Callable[[str], str],
) -> str:
    if layout is not None:
        return layout.fill(bullets, text_of=text_of, heading_of=heading_of)
    lines = {section: [heading_of(section)] for section in sections}
    for bullet in bullets:
        lines[bullet.section].append(text_of(bullet))
    return "\n\n".join(map("\n".join, lines.values()))
