"""Headings, blank lines and other text around the bullets of an imported playbook, so that exports keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.text_syntax import heading, read_content


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
        pieces, ends = _arranged(self.parts, texts)
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
        last = max((place for place, piece in enumerate(pieces, start=1) if piece.strip()), default=0)
        following.setdefault(last, []).extend(text for lines in lacking.values() for text in lines)
        rows = ([*following.get(place, ()), piece] for place, piece in enumerate(pieces))
        return "".join(piece for row in rows for piece in row) + "".join(following.get(len(pieces), ()))


def _arranged(parts: Iterable[str], texts: Mapping[str, str]) -> tuple[list[str], dict[str, int]]:
    """Return the pieces of the text, and by section the number of pieces up to its last one that is not blank.

    Where a heading occurs again, the section is the first one.
    """
    pieces: list[str] = []
    ends: dict[str, int] = {}
    section: str | None = None
    for place, part in enumerate(parts):
        if place % 2 and part not in texts:
            _drop_line_start(pieces)
            continue
        for piece in [texts[part]] if place % 2 else _lines(part):
            pieces.append(piece)
            title = None if place % 2 else heading(piece)
            if title is not None:
                section = None if title in ends else title
            if section is not None and piece.strip():
                ends[section] = len(pieces)
    return pieces, ends


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, and each line break by itself."""
    first, *rest = text.split("\n")
    yield first
    for line in rest:
        yield "\n"
        yield line


def _drop_line_start(pieces: list[str]) -> None:
    while pieces and not pieces[-1].strip():
        if pieces.pop() == "\n":
            return
