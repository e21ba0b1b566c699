"""What a prompt's external knowledge says about the words of its question, read as lessons are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from ace_rehearsal.reader.skills.sql.lessons import ORDER, SHOW, WHERE, Meaning
from ace_rehearsal.reader.skills.sql.schema import Column, Schema

_LINK = re.compile(r"\b(?:refers? to|means?|stands? for|indicates?|represents?|can be represented by|is|are)\b", re.I)
_TEST = re.compile(
    r"\s*(?:(=|!=|<>|>=|<=|>|<|LIKE\b)\s*('(?:[^']|'')*'|\"[^\"]*\"|-?\d+(?:\.\d+)?(?![\w.]))"
    r"|(BETWEEN)\s+('[^']*'|-?[\d.]+)\s+AND\s+('[^']*'|-?[\d.]+)|(IS(?: NOT)? NULL)\b)",
    re.IGNORECASE,
)
_CALL = re.compile(r"\b(MAX|MIN|AVG|SUM|COUNT)\(\s*(?:DISTINCT\s+)?$", re.IGNORECASE)
_COMPLEX = re.compile(r"\b(?:DIVIDE|SUBTRACT|MULTIPLY|CASE|calculation)\b|[*/]", re.IGNORECASE)
_NAME = re.compile(r"\s*['\"]?([A-Z0-9][^\n]{0,80}?)['\"]?\s*$")
_LONGEST, _MOST = 4_000, 40


@lru_cache(maxsize=256)
def read_evidence(schema: Schema, text: str, near: frozenset[str]) -> tuple[Meaning, ...]:
    """Meanings that a paragraph of external knowledge states; ``near`` are tables the question speaks of."""
    clauses = re.split(r";|\.\s|\n", text[:_LONGEST])[:_MOST]
    return tuple(dict.fromkeys(meaning for clause in clauses for meaning in _read_clause(schema, clause, near)))


def _read_clause(schema: Schema, clause: str, near: Collection[str]) -> Iterator[Meaning]:
    link = _LINK.search(clause)
    if link is None or _COMPLEX.search(clause):
        return
    left, right = clause[: link.start()], clause[link.end() :]
    conditions = list(_conditions(schema, right, near))
    if not conditions and (turned := list(_conditions(schema, left, near))):
        left, right, conditions = right, left, turned
    phrase = _clean(left)
    for condition in conditions:
        yield Meaning(phrase=phrase, kind=WHERE, sql=condition)
    if conditions:
        return
    named = _NAME.fullmatch(left)
    shown: list[str] = []
    for mention in schema.mentions.finditer(right):
        column = resolve(schema, mention[2], mention[1] or "", near)
        call = _CALL.search(right[: mention.start()])
        if call is None:
            shown.append(column.sql)
        elif call[1].upper() in ("MAX", "MIN"):
            direction = "DESC" if call[1].upper() == "MAX" else "ASC"
            yield Meaning(phrase=phrase, kind=ORDER, sql=f"{column.sql} {direction}")
        else:
            yield Meaning(phrase=phrase, kind=SHOW, sql=f"{call[1].upper()}({column.sql})")
    if shown and named and link[0].lower() == "is" and len(shown) == 1:
        value = named[1].replace("'", "''")
        yield Meaning(phrase=phrase, kind=WHERE, sql=f"{shown[0]} = '{value}'")
    elif shown:
        yield Meaning(phrase=phrase, kind=SHOW, sql=", ".join(dict.fromkeys(shown)))


def _conditions(schema: Schema, text: str, near: Collection[str]) -> Iterator[str]:
    for mention in schema.mentions.finditer(text):
        test = _TEST.match(text, mention.end())
        if test is None or _CALL.search(text[: mention.start()]):
            continue
        column = resolve(schema, mention[2], mention[1] or "", near).sql
        if test[1]:
            value = "'" + test[2][1:-1].replace("''", "'").replace("'", "''") + "'" if test[2][0] in "'\"" else test[2]
            yield f"{column} {test[1].upper()} {value}"
        elif test[3]:
            yield f"{column} BETWEEN {test[4]} AND {test[5]}"
        else:
            yield f"{column} {test[6].upper()}"


def resolve(schema: Schema, name: str, table: str, near: Collection[str]) -> Column:
    """The column meant by a name that the schema has: in the named table, in one nearby, else the first."""
    columns = schema.named[name.lower()]
    own = [column for column in columns if column.table.lower() == table.lower()]
    close = [column for column in columns if column.table.lower() in near]
    return (own or close or list(columns))[0]


def _clean(text: str) -> str:
    return " ".join(re.sub(r"[\"`\n]", " ", text).split())[:160] or "it"
