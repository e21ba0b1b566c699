"""Write a query from the words of a question alone and what phrases are known to mean."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ace_rehearsal.reader.skills.sql.asked import Asked, direction, request_words
from ace_rehearsal.reader.skills.sql.conditions import guessed
from ace_rehearsal.reader.skills.sql.lessons import ORDER, SHOW, WHERE, Meaning, tables_in
from ace_rehearsal.reader.skills.sql.schema import DATE, NUMBER, Column, Link
from ace_rehearsal.reader.skills.sql.tokens import NUMBER as NUMBER_WORD
from ace_rehearsal.reader.words import camel_stems, stem

_COUNT = re.compile(r"\bhow many\b|\bnumber of\b|^count\b", re.IGNORECASE)
_SHARE = re.compile(r"\bpercent(?:age)?\b|\bproportion\b|\bshare\b", re.IGNORECASE)
_MEAN = re.compile(r"\baverage\b|\bmean\b", re.IGNORECASE)
_SUM = re.compile(r"\btotal\b|\bsum\b|\baltogether\b", re.IGNORECASE)
_AGGREGATE = re.compile(r"(?:CAST\(|ROUND\()*(?:COUNT|AVG|SUM|MAX|MIN)\(")
_REACH = 5


def compose(asked: Asked, meanings: Sequence[Meaning]) -> str:
    """Write a query for the question; ``meanings`` are those that apply to it."""
    wheres = list(dict.fromkeys(meaning.sql for meaning in meanings if meaning.kind == WHERE))
    wheres += guessed(asked, wheres)
    order = next((meaning.sql for meaning in meanings if meaning.kind == ORDER), "") or _superlative(asked)
    shows = [meaning for meaning in meanings if meaning.kind == SHOW]
    shown = _shown(asked, shows, order)
    tail = ""
    if _SHARE.search(asked.text) and wheres and not _COUNT.search(asked.text):
        last = wheres.pop()
        shown = f"CAST(SUM(CASE WHEN {last} THEN 1 ELSE 0 END) AS REAL) * 100 / COUNT(*)"
    elif order and not _AGGREGATE.match(shown):
        tail = f" ORDER BY {order} LIMIT {_limit(asked)}"
        if _AGGREGATE.match(order):
            tail = f" GROUP BY {shown}{tail}"
    tables = tables_in(" ".join((shown, *wheres, tail))) or tuple(sorted(asked.near))
    if shown == "COUNT(*)":
        tables = (*sorted(_counted(asked), key=lambda name: name not in tables), *tables)
    where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
    return f"SELECT {shown} FROM {asked.schema.source(tables, _links(asked))}{where}{tail}"


def _links(asked: Asked) -> list[Link]:
    """Foreign keys to be preferred: words of the question, such as "owner", are in their names, or they are usual."""
    own = {word.stem for word in asked.words}
    scores: list[tuple[float, Link]] = []
    for link in asked.schema.links:
        named = len(own & set(link.here.stems) - set(camel_stems(link.there.table)))
        ends = frozenset((link.here.key, link.there.key))
        scores.append((named + math.log1p(asked.habits.get(ends, 0)), link))
    return [link for score, link in sorted(scores, key=lambda item: -item[0]) if score]


def _limit(asked: Asked) -> str:
    top = re.search(r"\btop (\w+)", asked.text, re.IGNORECASE)
    number = next((word.value for word in asked.words if top and word.text == top[1] and word.kind == NUMBER_WORD), "1")
    return number if number.isdigit() else "1"


def _shown(asked: Asked, shows: Sequence[Meaning], order: str) -> str:
    """What the query returns: a count, a mean, a sum, or the columns that the start of the question asks for."""
    said = [meaning.sql for meaning in shows]
    aggregates = [sql for sql in said if _AGGREGATE.match(sql)]
    if aggregates:
        return aggregates[0]
    if _COUNT.search(asked.text) and not _AGGREGATE.match(order):
        return "COUNT(*)"
    for pattern, call in ((_MEAN, "AVG"), (_SUM, "SUM")):
        if found := pattern.search(asked.text):
            column = asked.column(_stems_after(asked, found[0]), (NUMBER,))
            if column is not None:
                return f"{call}({column.sql})"
    if said:
        return ", ".join(dict.fromkeys(said))
    columns = [_meant(asked, part) for part in _request(asked)]
    found_columns = list(dict.fromkeys(column.sql for column in columns if column is not None))
    if found_columns:
        return ", ".join(found_columns)
    naming = asked.naming(asked.main_table)
    return naming.sql if naming else "*"


def _meant(asked: Asked, stems: Sequence[str]) -> Column | None:
    """The column asked for: after the name of a table one of its own, by default that which names its rows."""
    table = next((name for name in asked.schema.tables if camel_stems(name) == (stems[0],)), None)
    if table is None:
        return asked.column(stems)
    own = [column for column in asked.schema.tables[table] if set(stems[1:]) & set(column.stems)]
    return own[0] if own else asked.naming(table)


def _request(asked: Asked) -> list[list[str]]:
    """Stems of each of the things asked for."""
    parts: list[list[str]] = [[]]
    for word in request_words(asked):
        if word.text.lower() == "and":
            parts.append([])
        elif word.is_cue:
            parts[-1].append(word.stem)
    return [part for part in parts if part]


def _stems_after(asked: Asked, text: str) -> list[str]:
    names = [word.text.lower() for word in asked.words]
    at = names.index(text.lower()) + 1 if text.lower() in names else 0
    return [word.stem for word in asked.words[at : at + _REACH] if word.is_cue]


def _counted(asked: Asked) -> list[str]:
    """Tables whose rows "how many" counts."""
    found = _COUNT.search(asked.text)
    after = [stem(word) for word in re.findall(r"\w+", asked.text[found.end() :])[:3]] if found else []
    return [name for name in asked.schema.tables if set(camel_stems(name)) and set(camel_stems(name)) <= set(after)]


def _superlative(asked: Asked) -> str:
    for place, word in enumerate(asked.words):
        way = direction([word])
        if not way:
            continue
        stems = [other.stem for other in asked.words[place + 1 : place + 4] if other.is_cue]
        if word.text.lower() in ("youngest", "oldest"):
            stems = ["birthd", "birth", "dob", "age"]
        column = asked.column(stems, (NUMBER, DATE))
        if column is not None:
            return f"{column.sql} {way}"
        if word.text.lower() in ("most", "least", "fewest"):
            return f"COUNT(*) {way}"
    return ""
