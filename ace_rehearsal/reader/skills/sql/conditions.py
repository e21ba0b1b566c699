"""Conditions for the values of a question that nothing explains, by the words around them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence

from ace_rehearsal.reader.skills.sql import schema
from ace_rehearsal.reader.skills.sql.asked import ASKS, NAMING, NEAR, Asked, direction, sign_before
from ace_rehearsal.reader.skills.sql.schema import Column
from ace_rehearsal.reader.skills.sql.tokens import NUMBER, TEXT, WORD, Token

_YEAR = re.compile(r"(?:19|20)\d\d")
_BEFORE, _AFTER = 5, 2
_FARTHER, _HABIT = 0.1, 0.5


def guessed(asked: Asked, said: Sequence[str]) -> list[str]:
    """Compare each value that no condition mentions yet, on the column that the words around it name."""
    spoken = " ".join(said).lower()
    found: list[str] = []
    for place, word in enumerate(asked.words):
        if sql_value(word) in spoken:
            continue
        column = _beside(asked, place) if word.kind == WORD else _around(asked, place)
        if column is not None:
            found.append(_condition(asked, column, place))
            spoken += found[-1].lower()
    return found


def _beside(asked: Asked, place: int) -> Column | None:
    """The column of texts whose whole name stands next to a plain word that the schema does not know."""
    word = asked.words[place]
    if not word.is_cue or word.stem in asked.known or word.text.lower() in ASKS or direction([word]):
        return None
    for other in asked.words[max(place - 1, 0) : place + 2]:
        columns = asked.schema.named.get(other.text.lower(), ())
        named = len(columns) == 1 and columns[0].kind == schema.TEXT and other.kind == WORD
        if named and not NAMING & {*columns[0].stems}:
            return columns[0]
    return None


def _around(asked: Asked, place: int) -> Column | None:
    """The column that a value is compared with; ``None`` where nothing tells, or it is no value of a column."""
    word = asked.words[place]
    before = asked.words[max(place - _BEFORE, 0) : place]
    ranked = word.kind == NUMBER and before and before[-1].text.lower() in ("top", "first")
    if word.kind not in (NUMBER, TEXT) or _names_column(asked, word) or ranked:
        return None
    around = (*reversed(before), *asked.words[place + 1 : place + 1 + _AFTER])
    stems = [other.stem for other in around if other.is_cue or _names_column(asked, other)]
    column = _fitting(asked, stems, word, _kinds(word, sign_before(asked, place)))
    if column is None and word.kind == TEXT:
        named = (name for other in reversed(before) for name in asked.named_by(other))
        return asked.naming(next(named, asked.main_table))
    return column


def _names_column(asked: Asked, word: Token) -> bool:
    """Whether a capitalised word is no value but the name of a column or table."""
    name = word.text.lower()
    return word.kind == TEXT and (name in asked.schema.named or name in asked.schema.tables)


def _kinds(word: Token, sign: str) -> tuple[str, ...]:
    if word.kind == TEXT:
        return (schema.TEXT, schema.DATE)
    return (schema.NUMBER, schema.DATE) if sign != "=" else (schema.NUMBER, schema.DATE, schema.TEXT)


def _fitting(asked: Asked, stems: Sequence[str], word: Token, kinds: Collection[str]) -> Column | None:
    """The column of some kinds that the words, nearest first, and the habits of earlier queries speak for."""
    best, score = None, 0.0
    for column in asked.schema.columns:
        if column.kind not in kinds:
            continue
        near = NEAR * (column.table.lower() in asked.near)
        named = max((1 - _FARTHER * i for i, stem in enumerate(stems) if stem in column.stems), default=0.0)
        if column.kind == schema.DATE and _YEAR.fullmatch(word.value):
            named = max(named, near)
        habit = math.log1p(asked.habits.get(column.key, 0))
        value = named * (1 + 1 / (len(column.stems) or 1)) + _HABIT * habit
        if value and value + near > score:
            best, score = column, value + near
    return best


def _condition(asked: Asked, column: Column, place: int) -> str:
    """Compare a column with the value at a place, or with a range that begins there."""
    word, sign = asked.words[place], sign_before(asked, place)
    before, after = asked.words[max(place - 1, 0)], asked.words[place + 1 : place + 3]
    if before.text.lower() in ("between", "from") and len(after) == 2 and after[1].kind == word.kind == NUMBER:
        return f"{column.sql} BETWEEN {word.value} AND {after[1].value}"
    if column.kind == schema.DATE and _YEAR.fullmatch(word.value):
        return f"STRFTIME('%Y', {column.sql}) {sign} '{word.value}'"
    value = word.value if column.kind == schema.NUMBER and word.kind == NUMBER else text_literal(word.value)
    return f"{column.sql} {sign} {value}"


def text_literal(value: str) -> str:
    """Write a text as a query holds it."""
    return "'" + value.replace("'", "''") + "'"


def sql_value(word: Token) -> str:
    """A value as it stands in a query, in lower case, without quotes around it."""
    return word.value.lower().replace("'", "''")
