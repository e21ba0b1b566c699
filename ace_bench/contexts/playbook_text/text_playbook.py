"""A playbook that is one text, edited exactly as the authors' code edits it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any

import msgspec

from ace_bench.contexts.base import ContextValue
from ace_bench.contexts.playbook.playbook import NO_COUNTERS, Excerpt
from ace_bench.contexts.playbook_text import operations as official
from ace_bench.contexts.playbook_text.bullets import text_changes
from ace_bench.contexts.playbook_text.dialects import Dialect, empty_text
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.errors import DataError
from ace_bench.core.types import GeneratorSpec, Record, Sample

_MAX_NUMBER = 10**9


@dataclass(frozen=True, kw_only=True)
class TextPlaybook(ContextValue):
    """The text, the number of the next bullet, and the length of the text in tokens.

    Text and numbers equal those of the authors' code after the same operations: ids can occur twice, contents are not
    cleaned, and nothing is checked for duplicates. The value cannot be shortened: a prompt that is too long for the
    backbone fails, as theirs does. ``Playbook`` is the kind without these limits.
    """

    text: str
    dialect: Dialect
    next_number: Annotated[int, msgspec.Meta(ge=1, le=_MAX_NUMBER + 1)] = 1
    text_tokens: int = 0

    kind = "playbook_text"
    generator = GeneratorSpec(template="generator", reply="json")

    @classmethod
    def start(cls, sections: Iterable[str], *, dialect: Dialect, count: TokenCounter) -> TextPlaybook:
        """Return a playbook of headings only."""
        text = empty_text(sections, dialect)
        return cls(text=text, dialect=dialect, text_tokens=count(text))

    @classmethod
    def of_text(cls, text: str, *, dialect: Dialect, count: TokenCounter) -> TextPlaybook:
        """Return a playbook with a text as it is.

        New bullets are numbered from 1 (finance), whatever ids the text holds, or after its highest number (AppWorld).
        Raises ``DataError`` if that number is too large.
        """
        number = official.number_after(text, dialect) if dialect == "appworld" else 1
        if number > _MAX_NUMBER + 1:
            raise DataError(f"the playbook holds a bullet with a number above {_MAX_NUMBER}; give it a smaller one")
        return cls(text=text, dialect=dialect, next_number=number, text_tokens=count(text))

    @property
    def tokens(self) -> int:
        """Length of the text."""
        return self.text_tokens

    @cached_property
    def size(self) -> int:
        """Number of bullets, as the authors' code counts them."""
        return len(official.bullet_lines(self.text, self.dialect))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the bullets in the order of the text."""
        return tuple(bullet.id for bullet in official.bullet_lines(self.text, self.dialect))

    def with_bullets_added(self, operations: Sequence[Record], *, count: TokenCounter) -> TextPlaybook:
        """Apply the Curator's operations: each ADD adds a bullet, others do nothing.

        Raises ``DroppedOperations`` where the authors' code fails; it then keeps the playbook and drops the reply.
        """
        text, number = official.add_bullets(self.text, operations, next_number=self.next_number, dialect=self.dialect)
        return replace(self._rewritten(text, count), next_number=number)

    def with_tags(self, tags: object, *, count: TokenCounter) -> TextPlaybook:
        """Count the Reflector's tags: a list of objects with ``id`` and ``tag``, as its reply holds them."""
        return self._rewritten(official.count_tags(self.text, tags, self.dialect), count)

    def _rewritten(self, text: str, count: TokenCounter) -> TextPlaybook:
        return self if text == self.text else replace(self, text=text, text_tokens=count(text))

    @cached_property
    def statistics(self) -> str:
        """Number of bullets, in total and by section, as the indented JSON of the Curator's prompt."""
        return official.statistics(self.text, self.dialect)

    def excerpt(self, ids: Iterable[str]) -> Excerpt:
        """Show the bullets with the given ids in the order of the text, or the sentence that says there are none."""
        asked = dict.fromkeys(ids)
        known = {bullet.id for bullet in official.bullet_lines(self.text, self.dialect)}
        unknown = tuple(bullet_id for bullet_id in asked if bullet_id not in known)
        return Excerpt(official.excerpt(self.text, asked, self.dialect), unknown)

    def official_text(self) -> str:
        """Return the text."""
        return self.text

    def prompt_text(self) -> str:
        """Return the text without counters; it keeps headings without bullets."""
        return official.without_counters(self.text, self.dialect)

    def bullet_changes(
        self, later: Sequence[TextPlaybook], samples: Sequence[Sequence[str]]
    ) -> tuple[Sequence[Record], Sequence[Record]]:
        """Return the bullets of the text, and what each later version changed."""
        return text_changes([(one.text, one.dialect) for one in (self, *later)], samples)

    def fitted(self, sections: Iterable[str], count: TokenCounter) -> TextPlaybook:
        """Return the playbook with its tokens counted again."""
        return replace(self, text_tokens=count(self.text))

    def render(self, sample: Sample) -> Mapping[str, Any]:
        """Return the fields of ``Playbook.render``: ``playbook`` and ``official_playbook()`` are the text."""
        return MappingProxyType(
            {
                "playbook": self.text,
                "counters": NO_COUNTERS,
                "official_playbook": self._official_playbook,
                "official_excerpt": lambda ids: self.excerpt(ids).text,
                "statistics": lambda: self.statistics,
            }
        )

    def _official_playbook(self, *, counters: bool = True) -> str:
        """Return the text; whether it shows counters depends on its dialect alone."""
        return self.text
