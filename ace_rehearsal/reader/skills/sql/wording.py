"""Word what a gold query teaches: phrases of its question and the SQL that says them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ace_rehearsal.reader.skills.sql.asked import Asked, request_words, superlative_words
from ace_rehearsal.reader.skills.sql.lessons import ORDER, SHOW, WHERE, Meaning
from ace_rehearsal.reader.skills.sql.meanings import PLAIN, cues_after, cues_before
from ace_rehearsal.reader.skills.sql.queries import Parts
from ace_rehearsal.reader.skills.sql.tokens import NUMBER, TEXT, WORD, Token
from ace_rehearsal.reader.words import camel_stems

_LITERAL = re.compile(r"'((?:[^']|'')*)'|(?<![\w.\"])(\d+(?:\.\d+)?)(?![\w\"])")
_OWN = re.compile(r"\A\*|\A\Z|\bCOUNT\(|\b(?:CASE|IIF|SELECT|OVER)\b")
"""Things shown that belong to their own question alone."""
_GENERAL_WORDS = "most least highest lowest top first last best worst largest smallest"
_GENERAL = frozenset(_GENERAL_WORDS.split())
"""Superlatives that say nothing by themselves."""
_LONGEST_PHRASE = 4


def meanings_of(asked: Asked, gold: Parts | None, known: str) -> tuple[Meaning, ...]:
    """Meanings in a gold query where one phrase can be made out for each; SQL that ``known`` holds is left out."""
    if gold is None or not gold.simple:
        return ()
    return (*_conditions(asked, gold, known), *_shown(asked, gold, known), *_order(asked, gold, known))


def _conditions(asked: Asked, gold: Parts, known: str) -> list[Meaning]:
    named = {condition: _named(asked, condition) for condition in gold.conditions}
    missed = [condition for condition in gold.conditions if condition not in known]
    found = [
        meaning
        for condition in missed
        if len(named[condition]) == 1
        for meaning in _of_value(asked, condition, *named[condition][0])
    ]
    places = {place for values in named.values() for place, _ in values}
    unsaid = [i for i, word in enumerate(asked.words) if word.kind in (NUMBER, TEXT) and i not in places]
    silent = [condition for condition in missed if not named[condition]]
    phrases = _unexplained(asked, gold, places)
    if len(silent) == len(phrases) == 1 and not unsaid:
        found.append(Meaning(phrase=phrases[0], kind=WHERE, sql=silent[0]))
    return found


def _shown(asked: Asked, gold: Parts, known: str) -> list[Meaning]:
    shown = ", ".join(gold.shown)
    request = [word for word in request_words(asked) if word.text.lower() not in PLAIN]
    if not request or shown in known or _OWN.search(shown) or ("(" in shown and len(gold.shown) > 1):
        return []
    return [Meaning(phrase=_phrase(request), kind=SHOW, sql=shown)]


def _order(asked: Asked, gold: Parts, known: str) -> list[Meaning]:
    words = superlative_words(asked)
    if not gold.order or gold.order in known or all(word.text.lower() in _GENERAL for word in words):
        return []
    return [Meaning(phrase=_phrase(words), kind=ORDER, sql=gold.order)]


def _phrase(words: Sequence[Token]) -> str:
    return re.sub(r"[\"`\n]", "", " ".join(word.text for word in words))[:120]


def _named(asked: Asked, condition: str) -> list[tuple[int, str]]:
    """Places of the words that a condition compares with, and the values as the condition writes them."""
    found: list[tuple[int, str]] = []
    for match in _LITERAL.finditer(condition):
        value = (match[1] if match[1] is not None else match[2]).strip("%").replace("''", "'")
        for place, word in enumerate(asked.words):
            if (word.is_cue or word.kind != WORD) and word.value.lower() == value.lower():
                found.append((place, value))
                break
    return found


def _of_value(asked: Asked, condition: str, place: int, value: str) -> list[Meaning]:
    """What a value among its neighbours means; a plain word, such as "female", means its condition by itself."""
    word = asked.words[place]
    if word.kind == WORD:
        return [Meaning(phrase=_phrase([word]), kind=WHERE, sql=condition)]
    beside = cues_before(asked, place)[-2:], cues_after(asked, place)[:1]
    if not any(beside):
        return []
    mark = "[a]" if word.kind == TEXT else f"[a,{word.kind}]"
    phrase = " ".join(filter(None, (_phrase(beside[0]), mark, _phrase(beside[1]))))
    return [Meaning(phrase=phrase, kind=WHERE, sql=condition.replace(value.replace("'", "''"), "[a]", 1))]


def _unexplained(asked: Asked, gold: Parts, values: set[int]) -> list[str]:
    """Runs of words that no table, column or value of the gold query, and no asking word, accounts for."""
    shown = {stem for sql in (*gold.shown, gold.order) for stem in _stems_of(sql)}
    columns = {stem for sql in gold.conditions for stem in _stems_of(sql)}
    tables = {stem for name in gold.tables for stem in camel_stems(name)}
    explained = shown | columns | asked.tables
    explained |= {word.stem for word in (*request_words(asked), *superlative_words(asked))}
    runs: list[list[Token]] = [[]]
    for place, word in enumerate(asked.words):
        plain = word.text.lower() in PLAIN or place in values
        if word.is_cue and word.stem not in explained and not plain:
            runs[-1].append(word)
        elif runs[-1]:
            if word.is_cue and word.stem in tables:
                runs[-1].append(word)
            runs.append([])
    return [_phrase(run[:_LONGEST_PHRASE]) for run in runs if run]


def _stems_of(sql: str) -> set[str]:
    return {stem for name in re.findall(r"\w+", sql) for stem in camel_stems(name)}
