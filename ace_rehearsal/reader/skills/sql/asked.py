"""A question over a schema: which tables and columns it names, what it asks for, in which order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ace_rehearsal.reader.skills.sql.schema import DATE, NUMBER, TEXT, Column, Schema
from ace_rehearsal.reader.skills.sql.tokens import Token
from ace_rehearsal.reader.words import camel_stems, stem

_MOST = "most highest largest biggest greatest tallest longest heaviest latest newest youngest maximum best top"
_LEAST = "least lowest smallest fewest shortest lightest earliest oldest first minimum cheapest worst fastest"
_DIRECTIONS = {**dict.fromkeys(_MOST.split(), "DESC"), **dict.fromkeys(_LEAST.split(), "ASC")}
_MORE = "more|greater|higher|larger|older|later|bigger|taller|heavier"
_LESS = "less|lower|fewer|smaller|younger|earlier|shorter"
_COMPARISONS = tuple(
    (re.compile(rf"\b(?:{words})$"), sign)
    for words, sign in (
        ("at least|no less than|not less than|since", ">="),
        ("at most|no more than|not more than|up to", "<="),
        (rf"(?:{_MORE}) than|over|above|after|exceed\w*", ">"),
        (rf"(?:{_LESS}) than|under|below|before", "<"),
    )
)
_ASKS_WORDS = "what which who whose list name give find show state tell provide identify return display"
ASKS = frozenset(_ASKS_WORDS.split())
"""Words that begin a request; what is asked for stands behind them."""
_STOPS_WORDS = """
    of for that who whose with in from by on at where when has have had is are was were did does do if among
"""
_STOPS = frozenset(_STOPS_WORDS.split())
NAMING = frozenset((stem("name"), stem("title"), stem("label")))
"""Stems of the names of columns that name things."""
NEAR = 0.6
"""What it is worth for a column that the question names its table."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question and the schema it is asked of."""

    schema: Schema
    text: str
    words: tuple[Token, ...]
    habits: Mapping[str | frozenset[str], int] = field(default_factory=dict)

    @cached_property
    def near(self) -> frozenset[str]:
        """Tables that the question names."""
        own = self.stems | {part for word in self.words for part in word.stem.split()}
        return frozenset(name for name in self.schema.tables if own.issuperset(camel_stems(name) or (name,)))

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of the words of the question."""
        return frozenset(word.stem for word in self.words)

    @cached_property
    def tables(self) -> frozenset[str]:
        """Stems of the words in the names of all tables."""
        return frozenset(stem for name in self.schema.tables for stem in camel_stems(name))

    def named_by(self, word: Token) -> tuple[str, ...]:
        """Tables whose whole name is one word."""
        return tuple(name for name in self.schema.tables if camel_stems(name) == (word.stem,))

    @property
    def main_table(self) -> str:
        """The first table that the question names, else the first of all."""
        return next(iter(sorted(self.near) or self.schema.tables))

    @cached_property
    def known(self) -> frozenset[str]:
        """Stems of the words in the names of tables and columns."""
        return self.tables.union(*(column.stems for column in self.schema.columns))

    def column(self, stems: Sequence[str], kinds: Iterable[str] = (TEXT, NUMBER, DATE)) -> Column | None:
        """The column whose name shares most with some words; ``None`` where none shares any."""
        near, allowed, given = self.near, set(kinds), set(stems)
        best, score = None, 0.0
        for column in self.schema.columns:
            shared = len(given & set(column.stems))
            if not shared or column.kind not in allowed:
                continue
            value = shared + shared / len(column.stems) + NEAR * (column.table.lower() in near)
            if value > score:
                best, score = column, value
        return best

    def naming(self, table: str) -> Column | None:
        """The column that names the rows of a table."""
        columns = self.schema.tables[table]
        own = {*camel_stems(table), *NAMING}
        ranked = sorted(
            columns,
            key=lambda column: (
                -self.habits.get(f"show {column.key}", 0),
                column.kind != TEXT,
                not own & set(column.stems),
                len(set(column.stems) - own),
            ),
        )
        return ranked[0] if ranked else None


def request_words(asked: Asked) -> list[Token]:
    """What is asked for: from the asking word up to the first word that begins to narrow it down."""
    found: list[Token] = []
    begun = False
    for word in asked.words:
        lowered = word.text.lower()
        if not begun:
            begun = lowered in ASKS
        elif lowered in _STOPS and any(other.is_cue for other in found):
            break
        elif (word.is_cue or lowered == "and") and lowered not in ASKS and lowered not in _DIRECTIONS:
            found.append(word)
    return found


def superlative_words(asked: Asked) -> list[Token]:
    """The first superlative and the words behind it that tell what it ranks."""
    for place, word in enumerate(asked.words):
        if word.text.lower() in _DIRECTIONS:
            behind = asked.words[place + 1 : place + 3]
            return [word, *(other for other in behind if other.is_cue and other.text.lower() not in ASKS)]
    return []


def direction(words: Iterable[Token]) -> str:
    """``DESC`` or ``ASC`` as the first superlative among some words has it; "" where there is none."""
    return next((_DIRECTIONS[word.text.lower()] for word in words if word.text.lower() in _DIRECTIONS), "")


def sign_before(asked: Asked, place: int) -> str:
    """The comparison that the words before a value call for."""
    before = " ".join(word.text.lower() for word in asked.words[max(place - 4, 0) : place])
    return next((sign for pattern, sign in _COMPARISONS if pattern.search(before)), "=")
