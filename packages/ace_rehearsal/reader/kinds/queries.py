"""Kind of question: write an SQL query (BIRD-SQL); a lesson's query is used again with this question's values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ace_rehearsal.reader.items import Item
from ace_rehearsal.reader.lessons import QUERY, Lesson, one_line
from ace_rehearsal.reader.retrieval import Index
from ace_rehearsal.reader.slots import fill_slots
from ace_rehearsal.reader.words import content_stems, stem, tokens

_TABLE = re.compile(r"\bCREATE TABLE (?:IF NOT EXISTS )?[\"`\[]?(\w+(?: \w+)*)", re.IGNORECASE)
_FROM = re.compile(r"\b(?:FROM|JOIN)\s+(?:\"([^\"]+)\"|(\w+))", re.IGNORECASE)
_ASKED = re.compile(r"(?:\A|\n)[ \t]*(?:User )?[Qq]uestion:[ \t]*")
_FENCED = re.compile(r"```(?:sql)?\s*(.*?)```", re.DOTALL)
_TOKEN = re.compile(r"'(?:[^']|'')*'|\w+|[^\w\s\"`;]")


@dataclass(frozen=True, kw_only=True)
class QueryItem(Item):
    """A question about a database with these tables."""

    verb = QUERY
    weight = 10.0
    least = 0.12

    tables: frozenset[str]

    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        used = {(quoted or bare).lower() for quoted, bare in _FROM.findall(lesson.payload)}
        return fill_slots(lesson.cue, lesson.payload, self.cue, index) if used <= self.tables else None

    def guesses(self) -> Mapping[str, float]:
        """Count the rows of the table that the question names."""
        asked = set(content_stems(tokens(self.cue)))
        ranked = sorted(self.tables, key=lambda name: (-len({stem(w) for w in name.split("_")} & asked), name))
        return {f'SELECT COUNT(*) FROM "{ranked[0]}"': 0.0}

    def payload(self, answer: str) -> str:
        fenced = _FENCED.search(answer)
        return one_line(fenced[1] if fenced else answer).replace("`", '"').rstrip("; ")

    def same(self, one: str, other: str) -> bool:
        return same_query(one, other)


def read_query(background: str, question: str) -> Sequence[QueryItem]:
    """Recognise a question below the statements that create a database's tables."""
    tables = frozenset(name.lower() for name in _TABLE.findall(f"{background}\n{question}"))
    asked = _ASKED.split(question)[-1] if tables else ""
    return [QueryItem(cue=one_line(asked).replace('"', "'"), tables=tables)] if asked.strip() else []


def same_query(one: str, other: str) -> bool:
    """Whether queries are the same apart from white space, case, quoting of names and the order of conditions."""
    first, second = (Counter(t if t[0] == "'" else t.lower() for t in _TOKEN.findall(text)) for text in (one, other))
    return bool(first) and first == second
