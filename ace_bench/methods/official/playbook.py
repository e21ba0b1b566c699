"""The playbook of the authors' code: one text, edited exactly as that code edits it, byte for byte.

Ids can occur twice in it, contents are not cleaned and can hold further bullets and headings: only the text itself is
equal to theirs, so it is what is saved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec

from ace_bench.contexts.base import ContextValue
from ace_bench.contexts.loading import load_context
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import GeneratorSpec, Record, Sample
from ace_bench.methods.official.editing import add_bullets, count_tags, number_after, without_counters
from ace_bench.playbook import authors_text
from ace_bench.playbook.authors_text import Dialect, bullet_lines, heading_of, read_line
from ace_bench.playbook.bullets import BEFORE_FIRST_STEP, Bullet
from ace_bench.playbook.playbook import NO_COUNTERS
from ace_bench.playbook.text_writer import official_text

_LINE_END = re.compile("\r\n?")
_MAX_NUMBER = 10**9


@dataclass(frozen=True, kw_only=True)
class TextPlaybook(ContextValue):
    """The text, the number of the next bullet, and the length of the text in tokens.

    Text and numbers equal the authors' code after the same operations: ids can occur twice, contents are not cleaned,
    and nothing is checked for duplicates. The value cannot be shortened. As in the authors' code, a prompt that is too
    long for the backbone fails. ``Playbook`` is the kind without these limits.
    """

    text: str
    dialect: Dialect
    next_number: Annotated[int, msgspec.Meta(ge=1, le=_MAX_NUMBER + 1)] = 1
    text_tokens: int = 0

    kind = "playbook_text"
    generator = GeneratorSpec(template="generator", answer_format="json")

    @classmethod
    def start(cls, sections: Iterable[str], *, dialect: Dialect, count: TokenCounter) -> TextPlaybook:
        """Return a playbook of headings only."""
        text = official_text(sections, (), None, dialect)
        return cls(text=text, dialect=dialect, text_tokens=count(text))

    @classmethod
    def build_from(cls, text: str, *, dialect: Dialect, count: TokenCounter) -> TextPlaybook:
        """Return a playbook with a text as it is.

        New bullets are numbered from 1 (finance), whatever ids the text holds, or after its highest number (AppWorld).
        Raises ``DataError`` if that number is too large.
        """
        number = number_after(text, dialect) if dialect == "appworld" else 1
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
        return len(bullet_lines(self.text, self.dialect))

    @cached_property
    def bullet_ids(self) -> tuple[str, ...]:
        """The ids of the bullets in the order of the text."""
        return tuple(bullet.id for bullet in bullet_lines(self.text, self.dialect))

    def with_bullets_added(self, operations: Sequence[Record], *, count: TokenCounter) -> TextPlaybook:
        """Apply the Curator's operations: each ADD adds a bullet, others do nothing.

        Raises ``DroppedOperations`` if the authors' code fails; it then keeps the playbook and drops the reply.
        """
        text, number = add_bullets(self.text, operations, next_number=self.next_number, dialect=self.dialect)
        return replace(self._with_text(text, count), next_number=number)

    def with_tags(self, tags: object, *, count: TokenCounter) -> TextPlaybook:
        """Count the Reflector's tags: a list of objects with ``id`` and ``tag``, as its reply holds them."""
        return self._with_text(count_tags(self.text, tags, self.dialect), count)

    def _with_text(self, text: str, count: TokenCounter) -> TextPlaybook:
        return self if text == self.text else replace(self, text=text, text_tokens=count(text))

    @cached_property
    def statistics(self) -> str:
        """Number of bullets, in total and by section, as the indented JSON of the Curator's prompt."""
        return authors_text.statistics(self.text, self.dialect)

    def excerpt(self, ids: Iterable[str]) -> str:
        """Show the bullets with the given ids in the order of the text, or the sentence that says there are none."""
        return authors_text.excerpt(self.text, dict.fromkeys(ids), self.dialect)

    def official_text(self) -> str:
        """Return the text."""
        return self.text

    def prompt_text(self) -> str:
        """Return the text without counters; it keeps headings without bullets."""
        return without_counters(self.text, self.dialect)

    def bullet_changes(
        self, later: Sequence[TextPlaybook], samples: Sequence[Sequence[str]]
    ) -> tuple[Sequence[Record], Sequence[Record]]:
        """Return the bullets of the text, and what each later version changed."""
        return text_changes([bullets_of(version.text, version.dialect) for version in (self, *later)], samples)

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
                "official_excerpt": self.excerpt,
                "statistics": lambda: self.statistics,
            }
        )

    def _official_playbook(self, *, counters: bool = True) -> str:
        """Return the text. Only its dialect decides whether it shows counters."""
        return self.text


def load_text_playbook(path: str | Path, *, dialect: Dialect, count: TokenCounter) -> TextPlaybook:
    """Load the text playbook to start from: a saved one, or a text file in the official format, taken as it is.

    Line ends become newlines. Raises ``DataError`` if the file is damaged, ``ConfigError`` if it holds a context of
    another kind or a saved playbook of the other dialect.
    """

    def from_text(text: str) -> Context:
        return TextPlaybook.build_from(_LINE_END.sub("\n", text), dialect=dialect, count=count)

    loaded = load_context(path, TextPlaybook, sections=(), count=count, from_text=from_text)
    if not isinstance(loaded, TextPlaybook):
        raise ConfigError(
            f"{path} holds a context of kind {loaded.kind}; give a playbook as text or {TextPlaybook.kind}"
        )
    if loaded.dialect != dialect:
        raise ConfigError(f"{path} holds a playbook in the dialect {loaded.dialect}; this run needs {dialect}")
    return loaded


def bullets_of(text: str, dialect: Dialect) -> Mapping[str, Bullet]:
    """Return the bullets for readers, each with all lines up to the next bullet or heading.

    They are in the order of the text, by id; an id that occurs again is numbered.
    """
    bullets: dict[str, Bullet] = {}
    id_counts = Counter[str]()
    section, key = "", ""
    for line in text.split("\n"):
        title, head = heading_of(line), read_line(line, dialect)
        if title is not None:
            section, key = title, ""
        elif head is not None:
            id_counts[head.id] += 1
            key = head.id if id_counts[head.id] == 1 else f"{head.id} ({id_counts[head.id]})"
            bullets[key] = Bullet(
                id=key,
                section=section,
                content=head.content,
                helpful=head.helpful,
                harmful=head.harmful,
            )
        elif key:
            bullets[key] = replace(bullets[key], content=f"{bullets[key].content}\n{line}")
    return {
        key: replace(bullet, content=(content := bullet.content.rstrip()), tokens=estimate_tokens(content))
        for key, bullet in bullets.items()
    }


def text_changes(
    versions: Sequence[Mapping[str, Bullet]], samples: Sequence[Sequence[str]]
) -> tuple[Sequence[Record], Sequence[Record]]:
    """Return the bullets of the first version, and what each step changed: ``set`` and ``removed``.

    ``versions`` are the first one and one after each step; ``samples`` are the samples of each step.
    """
    origins: dict[str, tuple[int, Sequence[str]]] = {}
    changes = []
    for index, (learnt, (before, now)) in enumerate(zip(samples, pairwise(versions), strict=False)):
        origins.update(dict.fromkeys(now.keys() - before.keys(), (index, learnt)))
        changed = []
        for key, bullet in now.items():
            if before.get(key) != bullet:
                created, sources = origins.get(key, (BEFORE_FIRST_STEP, ()))
                changed.append(replace(bullet, created=created, changed=index, sources=tuple(sources)).record())
        changes.append({"set": changed, "removed": [key for key in before if key not in now]})
    return [bullet.record() for bullet in versions[0].values()], changes
