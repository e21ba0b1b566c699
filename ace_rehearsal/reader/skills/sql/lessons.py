"""SQL lessons: what a phrase means in a query, and which query suits questions of a kind. Worded and read again.

A meaning is a condition, an order or something shown; a shape is a whole query. Values that the question names
stand as slots, ``[a]``, in both; ``[a,title]`` also says in which case the query wants the value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from ace_rehearsal.reader.skills.likeness import length_of, likenesses
from ace_rehearsal.reader.skills.sql.tokens import NUMBER, SLOT, TEXT, Token, read_question, slot_kind

_SHAPE = re.compile(r'For questions like "([^"\n]{1,600})" write `([^`\n]{1,2000})`\.')
_MEANING = re.compile(r'"([^"\n]{1,160})" (means|asks for|orders by) `([^`\n]{1,400})`\.')
_TABLE = re.compile(r"\b(?:FROM|JOIN) (\w+|\"[^\"]+\")")
_OWNER = re.compile(r"(?<![\w.\"'])(\w+|\"[^\"]+\")\.(?=[\w\"])")
_NAME = r"(?:\w+|\"[^\"]+\")"
_TESTED = re.compile(rf"(?:({_NAME})\.)?({_NAME}) (?:=|LIKE) '")
_SHOWN = re.compile(rf"\ASELECT (?:DISTINCT )?(?:({_NAME})\.)?({_NAME})(?=,| FROM)")
_JOINED = re.compile(rf"\bON ({_NAME}\.{_NAME}) = ({_NAME}\.{_NAME})")
SLOT_MARK = re.compile(r"\[([a-h])(?:,(title|lower|upper))?\]")
WHERE, SHOW, ORDER = "means", "asks for", "orders by"
_KIND_WEIGHT = 0.4


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """A phrase of a question and the SQL that says it; ``kind`` is where, show or order."""

    phrase: str
    kind: str
    sql: str

    @cached_property
    def words(self) -> tuple[Token, ...]:
        """The phrase, read."""
        return read_question(self.phrase)

    @cached_property
    def tables(self) -> frozenset[str]:
        """Lower-cased names of the tables its columns stand in."""
        return frozenset(tables_in(self.sql))

    @property
    def slot(self) -> Token | None:
        """Where a value stands in the phrase; ``None`` where none does."""
        return next((word for word in self.words if word.kind == SLOT), None)

    @cached_property
    def cues(self) -> frozenset[str]:
        """Stems of the words of the phrase that can tell topics apart."""
        return frozenset(word.stem for word in self.words if word.is_cue)

    @property
    def worded(self) -> str:
        """The lesson as a playbook holds it."""
        return f'"{self.phrase}" {self.kind} `{self.sql}`.'


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A question with slots and the query that answers it."""

    question: str
    sql: str
    tables: frozenset[str]
    features: Mapping[str, float]
    length: float
    shown: tuple[str, ...]
    tested: tuple[str, ...]
    joined: tuple[frozenset[str], ...]

    @cached_property
    def words(self) -> tuple[Token, ...]:
        """The question, read."""
        return read_question(self.question)

    @property
    def worded(self) -> str:
        """The lesson as a playbook holds it."""
        return f'For questions like "{self.question}" write `{self.sql}`.'


def shape_of(question: str, sql: str) -> Shape:
    """Read a question with slots; columns are named ``table.column`` in lower case without quotes."""
    tables = tuple(dict.fromkeys(_bare(name) for name in _TABLE.findall(sql)))
    own = features(read_question(question))
    alone = tables[0] if len(tables) == 1 else ""
    return Shape(
        question=question,
        sql=sql,
        tables=frozenset(tables),
        features=own,
        length=length_of(own),
        shown=tuple(f"show {_bare(m[1]) or alone}.{_bare(m[2])}" for m in _SHOWN.finditer(sql)),
        tested=tuple(f"{_bare(m[1]) or alone}.{_bare(m[2])}" for m in _TESTED.finditer(sql)),
        joined=tuple(frozenset((_bare(m[1]), _bare(m[2]))) for m in _JOINED.finditer(sql)),
    )


def tables_in(sql: str) -> tuple[str, ...]:
    """Lower-cased names of the tables that stand before columns, in order."""
    return tuple(dict.fromkeys(_bare(name) for name in _OWNER.findall(sql)))


def _bare(name: str | None) -> str:
    return (name or "").replace('"', "").lower()


def features(words: Sequence[Token]) -> Mapping[str, float]:
    """What tells one question from another: stems of its words, and, less, that it names values of a kind."""
    kinds = [slot_kind(word) if word.kind == SLOT else word.kind for word in words]
    named = {f"<{kind}>": _KIND_WEIGHT for kind in kinds if kind in (NUMBER, TEXT)}
    return {**named, **{word.stem: 1.0 for word in words if word.is_cue}}


@lru_cache(maxsize=16_384)
def read_shapes(content: str) -> tuple[Shape, ...]:
    """Shapes in a text."""
    return tuple(shape_of(match[1], match[2]) for match in _SHAPE.finditer(content))


@lru_cache(maxsize=16_384)
def read_meanings(content: str) -> tuple[Meaning, ...]:
    """Meanings in a text."""
    return tuple(Meaning(phrase=m[1], kind=m[2], sql=m[3]) for m in _MEANING.finditer(content))


def spoken_lessons(text: str) -> tuple[str, ...]:
    """Lessons of a text in their own wording, each once."""
    return tuple(dict.fromkeys(match[0] for match in (*_MEANING.finditer(text), *_SHAPE.finditer(text))))


def same_lesson(first: str, second: str) -> bool:
    """Whether two texts give the same SQL to the same words."""
    return any(
        (one.kind, one.sql, one.cues) == (other.kind, other.sql, other.cues)
        for one in read_meanings(first)
        for other in read_meanings(second)
    ) or any(
        (one.sql, one.features) == (other.sql, other.features)
        for one in read_shapes(first)
        for other in read_shapes(second)
    )


@dataclass(frozen=True, kw_only=True)
class Taught:
    """The lessons of a context, each with the place of the entry it stands in."""

    meanings: tuple[tuple[int, Meaning], ...]
    shapes: tuple[tuple[int, Shape], ...]

    def over(self, tables: Set[str]) -> Taught:
        """Those that speak of no other tables."""
        return Taught(
            meanings=tuple(item for item in self.meanings if item[1].tables <= tables),
            shapes=tuple(item for item in self.shapes if item[1].tables <= tables),
        )


@lru_cache(maxsize=8)
def gather_lessons(contents: tuple[str, ...]) -> Taught:
    """Lessons of a context."""
    return Taught(
        meanings=tuple((owner, meaning) for owner, text in enumerate(contents) for meaning in read_meanings(text)),
        shapes=tuple((owner, shape) for owner, text in enumerate(contents) for shape in read_shapes(text)),
    )


def habits(shapes: Sequence[tuple[int, Shape]]) -> Counter[str | frozenset[str]]:
    """How often queries show a column, compare it with a text, or join a pair of columns."""
    return Counter(chain.from_iterable((*shape.shown, *shape.tested, *shape.joined) for _, shape in shapes))


def similar(shapes: Sequence[tuple[int, Shape]], words: Sequence[Token]) -> list[tuple[float, int]]:
    """Places of shapes, most like the question first, with their likeness in about [0, 1]."""
    found = likenesses(features(words), [shape for _, shape in shapes])
    found.sort(key=lambda item: (-item[0], item[1]))
    return found
