"""A number in running text: its unit and the words around it, as weighted features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ace_rehearsal.reader.words import is_cue, is_number, stem, tokens

PERCENT, MONEY, PRICE, SHARES, TIME, COUNT = "percent", "dollars", "dollars per share", "shares", "years", "number"
UNITS = (PERCENT, MONEY, PRICE, SHARES, TIME, COUNT)

_SCALES = frozenset({"million", "billion", "thousand", "trillion"})
_LINKS = frozenset({"and", "to", "or", "through", "from"})
_SHARE_WORDS = frozenset(
    {"share", "shares", "unit", "units", "rsu", "rsus", "option", "options", "warrants", "stock", "psu", "psus"}
)
_TIME_WORDS = frozenset({"year", "years", "month", "months", "day", "days", "yr", "quarters", "weeks"})
_CURRENCIES = frozenset("$€£¥")
_REACH = 7.0
_BESIDE = 3


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A number's surroundings: words before and after in reading order, and its unit."""

    unit: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@lru_cache(maxsize=2_048)
def read_passage(entity: str, sentence: str) -> Passage:
    """Find a number in a sentence; where it does not occur, the whole sentence stands before it."""
    words = tokens(sentence)
    wanted = tokens(entity)
    place = _place(words, wanted)
    if place is None:
        return Passage(unit=COUNT, before=tuple(words), after=())
    start, end = place
    return Passage(unit=_unit(words, start, end), before=tuple(words[:start]), after=tuple(words[end:]))


def _place(words: Sequence[str], wanted: Sequence[str]) -> tuple[int, int] | None:
    numbers = [word for word in wanted if is_number(word)] or list(wanted)
    if not numbers:
        return None
    for index, word in enumerate(words):
        if word.lower() == numbers[0].lower():
            return index, index + 1
    return None


def _unit(words: Sequence[str], start: int, end: int) -> str:
    money = start > 0 and words[start - 1] in _CURRENCIES
    for index in range(end, min(end + 9, len(words))):
        word = words[index].lower()
        if word in {"%", "percent", "percentage"}:
            return PERCENT if not money else MONEY
        if word == "per" and money:
            follows = [item.lower() for item in words[index + 1 : index + 4]]
            return PRICE if _SHARE_WORDS.intersection(follows) else MONEY
        if word in _SCALES or word in _LINKS or word in _CURRENCIES or is_number(word):
            continue
        if money:
            return PRICE if {"per", "a"} & set(words[index : index + 1]) else MONEY
        if word in _TIME_WORDS:
            return TIME
        return SHARES if _SHARE_WORDS.intersection(w.lower() for w in words[index : index + 4]) else COUNT
    return MONEY if money else COUNT


def features(passage: Passage, extra: Sequence[str] = ()) -> Mapping[str, float]:
    """Weighted features: stems by closeness, stems right beside the number by side, pairs of neighbours."""
    found: dict[str, float] = {}
    _side(found, [word for word in reversed(passage.before) if not is_number(word)], "<")
    _side(found, [word for word in passage.after if not is_number(word)], ">")
    for word in extra:
        if is_cue(word):
            found.setdefault(stem(word), 0.25)
    return found


def _side(found: dict[str, float], words: Sequence[str], mark: str) -> None:
    previous = ""
    beside = 0
    for distance, word in enumerate(words):
        if not is_cue(word):
            continue
        key = stem(word)
        weight = max(1.0 / (1.0 + distance / _REACH), 0.1)
        if weight > found.get(key, 0.0):
            found[key] = weight
        if beside < _BESIDE:
            found[mark + key] = max(found.get(mark + key, 0.0), 0.6 * weight)
            if previous:
                pair = f"{previous}+{key}" if mark == ">" else f"{key}+{previous}"
                found[pair] = max(found.get(pair, 0.0), 0.8 * weight)
            previous = key
            beside += 1
