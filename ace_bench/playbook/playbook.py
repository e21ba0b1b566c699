"""The playbook, an immutable value that ACE adapts (paper, section 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from ace_bench.contexts.base import ContextValue
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.encoding import convert
from ace_bench.core.errors import DataError
from ace_bench.core.types import GeneratorSpec, Record, Sample
from ace_bench.playbook.authors_text import excerpt, statistics
from ace_bench.playbook.bullets import (
    Bullet,
    BulletIndex,
    age,
    clean,
    measure,
    number_of,
    section_name,
)
from ace_bench.playbook.text_writer import Layout, official_text, write_text

EMPTY_PLAYBOOK = "(empty)"
PARTIAL = "(Only the entries nearest to the reflection are shown; the playbook holds others, too.)"
NO_COUNTERS = NO_REFLECTIONS = "(none)"
RECENT_REFLECTIONS = "recent_reflections"
"""The prompt field with the reflections on earlier samples, where the Generator is shown some."""

_OPTIONAL = ("verdicts", "layout", "shown_reflections")
"""Fields that a saved playbook has only where they have a value."""
MAX_NUMBER = 10**9
_Next = Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER + 1)]


@dataclass(frozen=True, kw_only=True)
class Playbook(ContextValue):
    """Bullets in order of creation, the sections for new ones, and the number of the next bullet.

    Order of creation is the order of the numbers in the ids. All sections share one counter, and no number is used
    twice, even after its bullet is removed. Make a playbook with ``start``, ``build_from`` or ``load``; change it with
    ``apply`` and ``Refiner.refine``. Versions share unchanged bullets with their rendered lines and fingerprints, so
    the cost of a new version follows the size of the change.

    ``recent`` are the latest reflections, the oldest first, for methods that show them to the Curator; the Generator's
    prompts show only ``shown_reflections`` (``None``: no such field), which are never saved. ``verdicts`` say which
    samples were answered right, for methods that check their changes; no prompt shows them. ``layout`` is the text
    around the bullets of an imported playbook, for exports; a saved playbook without it has no such field.
    ``helpful_first`` orders the field ``playbook`` of prompts by utility, and ``partial`` playbooks say there that they
    have other bullets; neither is saved.
    """

    sections: tuple[str, ...]
    bullets: tuple[Bullet, ...]
    next_number: _Next = 1
    recent: tuple[str, ...] = ()
    verdicts: tuple[tuple[str, bool], ...] = ()
    layout: Layout | None = None
    shown_reflections: tuple[str, ...] | None = None
    helpful_first: bool = False
    partial: bool = False

    kind = "playbook"
    generator = GeneratorSpec(template="generator", answer_format="json")

    @classmethod
    def start(cls, sections: Iterable[str]) -> Playbook:
        """Return an empty playbook with the given sections."""
        return cls(sections=_names(sections), bullets=())

    @classmethod
    def build_from(cls, bullets: Iterable[Bullet], *, sections: Iterable[str], next_number: int = 1) -> Playbook:
        """Build a playbook from bullets in any order; numbers continue above the highest id.

        Sections of bullets that are not in ``sections`` are added to them. Raises ``DataError`` for an id without
        a number, an id used twice, a bullet without content and a section that is not in its normal form.
        """
        listed = tuple(bullets)
        seen_ids: set[str] = set()
        for bullet in listed:
            number = number_of(bullet.id)
            if number is None or number > MAX_NUMBER:
                raise DataError(f"bullet id {bullet.id!r} does not end in a number up to {MAX_NUMBER}")
            if bullet.id in seen_ids:
                raise DataError(f"bullet id {bullet.id!r} is used twice")
            if not bullet.content:
                raise DataError(f"bullet {bullet.id!r} has no content")
            if not bullet.section or section_name(bullet.section) != bullet.section:
                raise DataError(f"bullet {bullet.id!r} has section {bullet.section!r}, not in its normal form")
            seen_ids.add(bullet.id)
        highest = max((bullet.number for bullet in listed), default=0)
        return cls(
            sections=_names([*sections, *(bullet.section for bullet in listed)]),
            bullets=tuple(sorted(listed, key=age)),
            next_number=max(next_number, highest + 1),
        )

    @classmethod
    def load(cls, record: Record) -> Playbook:
        """Restore a playbook from its ``dump``, exactly. Raises ``DataError`` that names the first wrong field."""
        stored = super().load(record)
        book = cls.build_from(stored.bullets, sections=stored.sections, next_number=stored.next_number)
        return replace(book, recent=stored.recent, verdicts=stored.verdicts, layout=stored.layout)

    def _saved_fields(self) -> Iterator[tuple[str, Any]]:
        for name, value in super()._saved_fields():
            if name not in ("helpful_first", "partial") and (name not in _OPTIONAL or value):
                yield name, value

    @property
    def size(self) -> int:
        """Number of bullets."""
        return len(self.bullets)

    @property
    def tokens(self) -> int:
        """Sum over the bullets, without the counters: prompts show those separately."""
        return self.index.tokens

    @cached_property
    def index(self) -> BulletIndex:
        """Bullets by id, in order of creation."""
        return BulletIndex().changed(put=self.bullets)

    @property
    def bullet_ids(self) -> Collection[str]:
        """The ids of the bullets, in order of creation."""
        return self.index

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all fields but the verdicts, bullets with their counters: equal content, equal digest."""
        order = "helpful first" if self.helpful_first else None
        optional = [value for value in (self.layout, self.shown_reflections, order) if value is not None]
        head = msgspec.json.encode([self.kind, self.sections, self.next_number, *self.recent, *optional])
        return hashlib.sha256(b"".join([head, *[block.fingerprints for block in self.index.blocks]])).hexdigest()

    def render(self, sample: Sample) -> Mapping[str, Any]:
        """Return the fields ``playbook`` (bullets without counters), ``counters`` and, for imported prompts, functions.

        ``recent_reflections`` is a field only where the playbook has some to show.

        Bullets are in order of creation and separate from counters, so that a new bullet or a vote leaves the prompt
        before it unchanged, for the prefix cache. ``official_playbook(counters=True)`` gives the official layout, which
        groups bullets by section and shows counters inline; ``official_excerpt(ids)`` gives some lines of it and
        ``statistics()`` its counts, as the authors' finance code writes them.
        """
        return self._fields

    @cached_property
    def _fields(self) -> Mapping[str, Any]:
        reflections, official = self.shown_reflections, self._official_fields()
        recent = {} if reflections is None else {RECENT_REFLECTIONS: "\n\n".join(reflections) or NO_REFLECTIONS}
        counters = "\n".join(filter(None, [block.counters for block in self.index.blocks])) or NO_COUNTERS
        return MappingProxyType({"playbook": self._text(), "counters": counters, **recent, **official})

    def _official_fields(self) -> Mapping[str, Callable[..., str]]:
        """Return functions, so that only templates that show the authors' layout spend time on it."""
        sections, bullets, layout = self.sections, self.bullets, self.layout  # no function holds the playbook

        @cache
        def playbook(*, counters: bool = True) -> str:
            return official_text(sections, bullets, layout, "finance" if counters else "appworld")

        return {
            "official_playbook": playbook,
            "official_excerpt": lambda ids: excerpt(playbook(), ids, "finance"),
            "statistics": cache(lambda: statistics(playbook(), "finance")),
        }

    def _text(self) -> str:
        if self.helpful_first:
            ordered = sorted(self.bullets, key=lambda bullet: -bullet.utility)  # stable: of equal ones the oldest first
            return "\n".join([bullet.line for bullet in ordered]) or EMPTY_PLAYBOOK
        lines = [PARTIAL] if self.partial else []
        return "\n".join([*lines, *[block.text for block in self.index.blocks]]) or EMPTY_PLAYBOOK

    def excerpt(self, ids: Iterable[str]) -> str:
        """Show some bullets in the order asked for, each once, for a Reflector.

        Their counters are left out: models copy them where a vote is asked for.
        """
        lines = [self.index[bullet_id].line for bullet_id in dict.fromkeys(ids) if bullet_id in self.index]
        return "\n".join(lines) or NO_COUNTERS

    def official_text(self, *, counters: bool = True) -> str:
        """Return the playbook in the text format of the authors' code."""
        return write_text(self.sections, self.bullets, self.layout, counters=counters)

    def prompt_text(self) -> str:
        """Return the bullets by section, without counters and empty sections."""
        used = {bullet.section for bullet in self.bullets}
        return write_text(filter(used.__contains__, self.sections), self.bullets, None, counters=False)

    def bullet_changes(
        self, later: Sequence[Playbook], samples: Sequence[Sequence[str]]
    ) -> tuple[Sequence[Record], Sequence[Record]]:
        """Return the bullets, and the patch of each later version."""
        patches = [after.patch(before) for before, after in pairwise([self, *later])]
        return [bullet.record() for bullet in self.bullets], patches

    def fitted(self, sections: Iterable[str], count: TokenCounter) -> Playbook:
        """Return the playbook for a task: its ``sections`` come first, and tokens are counted again."""
        bullets = [measure(replace(bullet, content=clean(bullet.content)), count) for bullet in self.bullets]
        playbook = Playbook.build_from(bullets, sections=[*sections, *self.sections], next_number=self.next_number)
        return replace(playbook, layout=self.layout)

    def with_bullets(self, bullets: Sequence[Bullet]) -> Playbook:
        """Return a version with other bullets, which must be in order of creation and below the next number."""
        return replace(self, bullets=tuple(bullets))

    def only(self, ids: Collection[str]) -> Playbook:
        """Return the part of the playbook with the bullets of some ids, for a prompt."""
        bullets = [self.index[bullet_id] for bullet_id in frozenset(ids) if bullet_id in self.index]
        return replace(self, bullets=tuple(sorted(bullets, key=age)), partial=True)

    def with_index(self, index: BulletIndex, **values: Any) -> Playbook:
        """Return a version with the bullets of an index, and other values of other fields."""
        changed = replace(self, bullets=index.bullets, **values)
        vars(changed)["index"] = index
        return changed

    def replace_fields(self, **values: Any) -> Playbook:
        """Return a version with other values of fields other than ``bullets``."""
        return self.with_index(self.index, **values)

    def shrink(self) -> Playbook | None:
        """Return the playbook without its least useful quarter; of equally useful bullets the oldest go first."""
        if not self.bullets:
            return None
        ranked = sorted(self.bullets, key=lambda bullet: (bullet.utility, bullet.changed, bullet.number))
        removed = {bullet.id for bullet in ranked[: max(1, len(ranked) // 4)]}
        return self.with_bullets([bullet for bullet in self.bullets if bullet.id not in removed])

    def patch(self, earlier: Playbook) -> Record:
        """Return what changed since ``earlier``; its size does not depend on the size of the playbook.

        ``set`` holds new and changed bullets, ``removed`` ids, ``verdicts`` the new and changed ones; ``sections``,
        ``recent`` and ``layout`` are present only if they differ. The order follows from the bullets' numbers. Raises
        ``TypeError`` for another kind of context.
        """
        if not isinstance(earlier, Playbook):
            raise TypeError(f"a playbook has no patch against {type(earlier).__name__}")
        changed, removed = self.index.since(earlier.index)
        patch: dict[str, object] = {"next_number": self.next_number}
        if changed:
            patch["set"] = [bullet.record() for bullet in changed]
        if removed:
            patch["removed"] = list(removed)
        if self.sections != earlier.sections:
            patch["sections"] = list(self.sections)
        if self.recent != earlier.recent:
            patch["recent"] = list(self.recent)
        if self.verdicts != earlier.verdicts:
            patch["verdicts"] = [verdict for verdict in self.verdicts if verdict not in {*earlier.verdicts}]
        if self.layout != earlier.layout:
            patch["layout"] = msgspec.to_builtins(self.layout)
        return patch

    def patched(self, patch: Record) -> Playbook:
        """Apply a patch made against this value; the result is the playbook that the patch was made from."""
        try:
            change: _Patch = convert(patch, _Patch)
        except msgspec.ValidationError as error:
            raise DataError(f"not a patch of a playbook: {error}") from error
        for bullet_id in change.removed:
            if bullet_id not in self.index:
                raise DataError(f"the patch was made against another playbook: it removes {bullet_id!r}")
        return Playbook(
            sections=self.sections if change.sections is None else tuple(change.sections),
            bullets=(),
            next_number=change.next_number,
            recent=self.recent if change.recent is None else change.recent,
            verdicts=tuple(dict((*self.verdicts, *change.verdicts)).items()),
            layout=self.layout if isinstance(change.layout, UnsetType) else change.layout,
        ).with_index(self.index.changed(put=change.set, gone=change.removed))


class _Patch(msgspec.Struct):
    next_number: _Next
    set: tuple[Bullet, ...] = ()
    removed: tuple[str, ...] = ()
    sections: list[str] | None = None
    recent: tuple[str, ...] | None = None
    verdicts: tuple[tuple[str, bool], ...] = ()
    layout: Layout | UnsetType | None = UNSET


def _names(sections: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in map(section_name, sections) if name))
