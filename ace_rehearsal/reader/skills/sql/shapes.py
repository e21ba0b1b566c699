"""Shapes of queries: put slots for the values of a question into its query, and fill them from another question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ace_rehearsal.reader.skills.sql.lessons import SLOT_MARK, Shape, shape_of
from ace_rehearsal.reader.skills.sql.tokens import (
    NUMBER,
    NUMERAL,
    SLOT,
    TEXT,
    WORD,
    Token,
    read_question,
    slot_kind,
)

_LITERAL = re.compile(r"'((?:[^']|'')*)'|(?<![\w.\"'\[])(\d+(?:\.\d+)?)(?![\w.\"'\]])|\"[^\"]*\"")
_COMPARED = re.compile(r"([\w.]+|\w+\.\"[^\"]+\")\s*(?:=|[<>]=?|LIKE)\s*'?%?\[([a-h])")
_SLOTS = "abcdefgh"
_CASES = {"title": str.title, "lower": str.lower, "upper": str.upper}
_MOST_WORDS, _LEAST_PART = 48, 4
_OTHER_KIND = 0.4
_WANTED = {
    "count": "many number count",
    "mean": "average mean",
    "sum": "total sum much altogether",
    "share": "percentage percent share proportion ratio",
    "difference": "difference",
    "most": "most highest largest biggest latest newest last top longest tallest maximum best expensive youngest",
    "least": "least lowest smallest earliest oldest first shortest cheapest fewest minimum worst",
    "not": "not no without never",
    "more": "more over above exceed exceeds after greater higher later longer",
    "less": "less under below before fewer lower earlier shorter",
    "each": "each every",
    "or": "or",
    "sorted": "sort sorted order ordered alphabetical",
}
_WANTS = {word: want for want, words in _WANTED.items() for word in words.split()}
_KINDS = frozenset(("mean", "share", "difference", "most", "least", "not", "more", "less", "or"))
"""Wants that change a query whatever else it says; "total", "each" and "sorted" are often left unsaid."""
_ASIDE_WORDS = "list give name find show state tell provide please return distinct repetition once"
_ASIDE = frozenset(_ASIDE_WORDS.split())


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A shape filled from another question, and the share of both questions that stands in line, in [0, 1]."""

    sql: str
    share: float


@lru_cache(maxsize=1_024)
def slotted(question: str, sql: str) -> Shape:
    """Put a slot wherever the query holds a value that the question names."""
    words = read_question(question)[:_MOST_WORDS]
    slots: dict[int, str] = {}

    def replaced(match: re.Match[str]) -> str:
        quoted = match[1] is not None
        value = match[1] if quoted else match[2]
        for place, word in enumerate(words):
            mark = _mark(word, (value or "").replace("''", "'"), quoted=quoted) if value is not None else None
            if mark is None or (place not in slots and len(slots) == len(_SLOTS)):
                continue
            slots.setdefault(place, _SLOTS[len(slots)])
            text = f"{mark[0]}[{slots[place]}{mark[1]}]{mark[2]}"
            return f"'{text}'" if quoted else text
        return match[0]

    filled = _LITERAL.sub(replaced, sql)
    shown = (
        word.text if place not in slots else f"[{slots[place]}{'' if word.kind == TEXT else ',' + word.kind}]"
        for place, word in enumerate(words)
    )
    return shape_of(" ".join(re.sub(r"[\"`\n]", "", text) for text in shown), filled)


def _mark(word: Token, value: str, *, quoted: bool) -> tuple[str, str, str] | None:
    """How a value comes from a word: what stands before it, its case, what stands after; ``None`` if it does not."""
    if word.kind == NUMBER and not quoted:
        return ("", "", "") if _number(word.value) == _number(value) else None
    at = value.lower().find(word.value.lower())
    if not quoted or at < 0 or not word.value or (word.kind == WORD and not word.is_cue):
        return None
    before, part, after = value[:at], value[at : at + len(word.value)], value[at + len(word.value) :]
    if (before or after).strip("%") and (len(part) < _LEAST_PART or word.kind == WORD):
        return None
    if part == word.value:
        return before, "", after
    how = next((name for name, change in _CASES.items() if change(word.value) == part), None)
    return None if how is None else (before, f",{how}", after)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def fill(shape: Shape, words: Sequence[Token], known: Mapping[str, str]) -> Filled | None:
    """The query for another question; ``known`` gives values of columns that are said outright.

    ``None`` where a slot finds no value, a value no slot, or the questions want different things.
    """
    old, new = shape.words[:_MOST_WORDS], words[:_MOST_WORDS]
    wanted, given = _wants(old), _wants(new)
    if wanted & _KINDS != given & _KINDS:
        return None
    places = _assign(old, new)
    fixed = {word.stem for word in old if word.kind in (NUMBER, TEXT)}
    taken = set(places.values())
    if any(word.kind in (NUMBER, TEXT) and j not in taken and word.stem not in fixed for j, word in enumerate(new)):
        return None
    values = {old[i].text[1]: (new[j].value, False) for i, j in places.items()}
    for match in _COMPARED.finditer(shape.sql):
        if match[1].lower() in known:
            values[match[2]] = known[match[1].lower()], True
    sql = fill_slots(shape.sql, values)
    one = _cues(old) | wanted
    other = _cues(word for j, word in enumerate(new) if j not in taken) | given
    share = 2 * len(one & other) / (len(one) + len(other) or 1)
    return None if sql is None else Filled(sql=sql, share=share)


def _wants(words: Sequence[Token]) -> frozenset[str]:
    """What the words ask for beyond their topics: a count, a mean, the most, the opposite of something."""
    return frozenset(_WANTS[word.text.lower()] for word in words if word.text.lower() in _WANTS)


def _cues(words: Iterable[Token]) -> set[str]:
    return {word.stem for word in words if word.is_cue and not {word.text.lower()} & (_ASIDE | _WANTS.keys())}


def _assign(old: Sequence[Token], new: Sequence[Token]) -> Mapping[int, int]:
    """Give every slot the value that fits it best by kind and neighbours, best pairs first."""
    slots = [i for i, word in enumerate(old) if word.kind == SLOT]
    fixed = {word.stem for word in old if word.kind != SLOT and word.is_cue}
    plain = _cues(new) - fixed
    open_to = [j for j, word in enumerate(new) if word.kind != WORD or word.stem in plain]
    fits = sorted(
        (-_kind_fit(old[i], new[j]) - _beside(old, i, new, j), i, j)
        for i in slots
        for j in open_to
        if _kind_fit(old[i], new[j])
    )
    places: dict[int, int] = {}
    for _, i, j in fits:
        if i not in places and j not in places.values():
            places[i] = j
    return places


def _kind_fit(slot: Token, word: Token) -> float:
    kind = slot_kind(slot)
    if word.kind == kind:
        return 1.0
    return _OTHER_KIND if NUMBER not in (kind, word.kind) or TEXT in (kind, word.kind) else 0.0


def _beside(old: Sequence[Token], i: int, new: Sequence[Token], j: int) -> float:
    """Whether the same words stand around a slot and a value, from none, 0, to all, 1."""
    here = {word.stem for word in (*old[max(i - 2, 0) : i], *old[i + 1 : i + 3])}
    there = {word.stem for word in (*new[max(j - 2, 0) : j], *new[j + 1 : j + 3])}
    return len(here & there) / (len(here) or 1)


def fill_slots(sql: str, values: Mapping[str, tuple[str, bool]]) -> str | None:
    """Put values into slots, exact ones as they are, others in the case the slot wants; ``None`` where one lacks."""
    if any(match[1] not in values for match in SLOT_MARK.finditer(sql)):
        return None

    def value(match: re.Match[str]) -> str:
        text, exact = values[match[1]]
        if match[2] and not exact:
            text = _CASES[match[2]](text)
        if sql[: match.start()].count("'") % 2:
            return text.replace("'", "''")
        return text if NUMERAL.fullmatch(text) else "'" + text.replace("'", "''") + "'"

    return SLOT_MARK.sub(value, sql)
