"""Phrases whose meaning a context teaches: find those that a question holds."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from ace_rehearsal.reader.skills.base import Lesson
from ace_rehearsal.reader.skills.sql.asked import Asked, direction, request_words, sign_before
from ace_rehearsal.reader.skills.sql.conditions import sql_value
from ace_rehearsal.reader.skills.sql.lessons import ORDER, SHOW, WHERE, Meaning, Taught
from ace_rehearsal.reader.skills.sql.shapes import fill_slots
from ace_rehearsal.reader.skills.sql.tokens import Token, slot_kind

_TABLE_NAME, _LEAST_COVER, _LEAST_FIT, _LONGER = 0.3, 0.75, 0.6, 0.1
_BESIDE = 3
_SIGN = re.compile(r" (?:=|[<>]=?) (?='?\[a)")
_TURNED = {"ASC": "DESC", "DESC": "ASC"}
_PLAIN_WORDS = """
    mean distinct together have has had live lives lived work works worked please list many much named called
    belong belongs give state find show tell name names calculate number total average same different percentage
    among per question
"""
PLAIN = frozenset(_PLAIN_WORDS.split())
"""Words that say how something is asked for, not what."""


def applying(
    taught: Taught, lessons: Sequence[Lesson], asked: Asked, told: Sequence[Meaning]
) -> tuple[tuple[str, Meaning], ...]:
    """Meanings whose phrase the question holds, with the ids of their lessons; no word is explained twice.

    What the prompt itself tells of the question, ``told``, comes before every lesson.
    """
    said = " ".join(meaning.sql for meaning in told).lower()
    settled = {meaning.kind for meaning in told} - {WHERE}
    found: list[tuple[float, int, Meaning, frozenset[str]]] = []
    for owner, meaning in taught.meanings:
        if meaning.kind not in settled:
            found.extend(
                (fit * lessons[owner].trust, owner, applied, explained)
                for fit, applied, explained in _applications(meaning, asked, said)
            )
    found.sort(key=lambda item: (-item[0], item[1]))
    taken: set[tuple[str, str]] = set()
    chosen: list[tuple[str, Meaning]] = []
    for _, owner, meaning, explained in found:
        words = {(meaning.kind, stem) for stem in explained}
        if not words & taken:
            taken |= words
            chosen.append((lessons[owner].id, meaning))
    return tuple(chosen)


def _applications(meaning: Meaning, asked: Asked, said: str) -> Iterator[tuple[float, Meaning, frozenset[str]]]:
    """How well the phrase fits the question, what it means there, and the stems it explains."""
    if meaning.cues <= asked.tables:
        return  # a phrase of nothing but tables fits everywhere
    if meaning.slot is not None:
        yield from _slot_fits(meaning, meaning.slot, asked, said)
        return
    cover = _cover(meaning.cues, asked.stems, asked.tables)
    if meaning.kind == SHOW:
        request = {word.stem for word in request_words(asked) if word.is_cue and word.text.lower() not in PLAIN}
        cover *= _cover(request, meaning.cues, frozenset())
    if meaning.kind == ORDER:
        way = direction(asked.words)
        cover *= bool(way)
        meaning = _turned(meaning, way)
    if cover >= _LEAST_COVER:
        yield cover * (1 + _LONGER * len(meaning.cues)), meaning, meaning.cues - asked.tables


def _turned(meaning: Meaning, way: str) -> Meaning:
    """An order the way the question wants it: what ranks the highest also ranks the lowest."""
    if direction(meaning.words) in ("", way):
        return meaning
    expression, _, old = meaning.sql.rpartition(" ")
    return replace(meaning, sql=f"{expression} {_TURNED.get(old, old)}")


def _slot_fits(
    meaning: Meaning, slot: Token, asked: Asked, said: str
) -> Iterator[tuple[float, Meaning, frozenset[str]]]:
    """Values of the question that stand among the words of the phrase, and what the phrase means for them."""
    for place, word in enumerate(asked.words):
        if word.kind != slot_kind(slot) or sql_value(word) in said:
            continue
        beside = {other.stem for other in (*cues_before(asked, place), *cues_after(asked, place))}
        fit = len(meaning.cues & beside) / len(meaning.cues)
        sign = sign_before(asked, place)
        sql = meaning.sql if sign == "=" else _SIGN.sub(f" {sign} ", meaning.sql)
        filled = fill_slots(sql, {"a": (word.value, False)}) if fit >= _LEAST_FIT else None
        if filled is not None:
            yield fit, replace(meaning, phrase=word.text, sql=filled), frozenset((word.stem,))


def cues_before(asked: Asked, place: int) -> list[Token]:
    """Words shortly before a place that can tell topics apart."""
    return [word for word in asked.words[max(place - _BESIDE, 0) : place] if word.is_cue]


def cues_after(asked: Asked, place: int) -> list[Token]:
    """Words right behind a place that can tell topics apart."""
    return [word for word in asked.words[place + 1 : place + _BESIDE] if word.is_cue]


def _cover(stems: Iterable[str], own: Container[str], weak: Container[str]) -> float:
    """Share of some words that others hold; names of tables say little."""
    weights = [(stem in own, _TABLE_NAME if stem in weak else 1.0) for stem in sorted(stems)]
    whole = sum(weight for _, weight in weights)
    return sum(weight for held, weight in weights if held) / whole if whole else 0.0
