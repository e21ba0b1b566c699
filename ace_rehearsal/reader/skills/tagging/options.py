"""The options of a tagging task and how well their own words fit a passage, without any lesson."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ace_rehearsal.reader.skills.tagging.passage import COUNT, MONEY, PERCENT, PRICE, SHARES, TIME, Passage
from ace_rehearsal.reader.words import camel_stems, is_cue, stem

_LIST = re.compile(r"\b(?:[A-Za-z]\w*[ \t]*,[\s,]*)+[A-Za-z]\w*")
_FEWEST = 3
_UNIT_WORDS = (
    (PRICE, ("PerShare", "ConversionPrice", "SharePrice", "ExercisePrice", "FairValueAssumptionsExercise")),
    (PERCENT, ("Percentage", "Percent", "Rate", "Ratio")),
    (TIME, ("Period", "Term", "Life", "Years")),
    (SHARES, ("Shares", "Number", "GrantsInPeriod", "Securities", "Units")),
)
_MONEY_ENDS = ("Value", "Amount", "Cost", "Expense", "Cash", "CostMethod", "Amount1", "Capacity", "Liability")
_SIDE_UNITS = frozenset({(SHARES, COUNT), (COUNT, SHARES), (TIME, COUNT), (COUNT, TIME), (COUNT, MONEY)})
_REACH = 14.0
_OTHER_UNIT, _NEAR_UNIT = 0.25, 0.7


@dataclass(frozen=True, kw_only=True)
class OptionSet:
    """Options in the order of the prompt, with the words their names are made of."""

    names: tuple[str, ...]
    places: Mapping[str, int]
    units: tuple[str, ...]
    postings: Mapping[str, tuple[tuple[int, float], ...]]


@lru_cache(maxsize=16)
def read_options(text: str) -> OptionSet | None:
    """Find the longest list of names between commas in a text; ``None`` without one of at least three."""
    lists = _LIST.findall(text)
    names = tuple(dict.fromkeys(re.split(r"[\s,]+", max(lists, key=len)))) if lists else ()
    if len(names) < _FEWEST:
        return None
    stems = [camel_stems(name) for name in names]
    frequency: dict[str, int] = defaultdict(int)
    for words in stems:
        for word in words:
            frequency[word] += 1
    rarity = {word: math.log((len(names) + 1) / count) for word, count in frequency.items()}
    postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for index, words in enumerate(stems):
        whole = math.fsum(rarity[word] for word in words) or 1.0
        for word in words:
            postings[word].append((index, rarity[word] / (whole + 4.0)))
    return OptionSet(
        names=names,
        places={name: index for index, name in enumerate(names)},
        units=tuple(unit_of_option(name) for name in names),
        postings={word: tuple(entries) for word, entries in postings.items()},
    )


@lru_cache(maxsize=8_192)
def unit_of_option(name: str) -> str:
    """Guess from its name what unit an option's values have; money where nothing else is said."""
    bare = name.rstrip("0123456789")
    if bare.endswith(_MONEY_ENDS) and "PerShare" not in bare:
        return MONEY
    for unit, words in _UNIT_WORDS:
        if any(word in name for word in words):
            return unit
    return MONEY


def unit_fit(passage_unit: str, other: str) -> float:
    """How well two units go together, in (0, 1]."""
    if passage_unit == other:
        return 1.0
    return _NEAR_UNIT if (passage_unit, other) in _SIDE_UNITS else _OTHER_UNIT


def own_words(options: OptionSet, passage: Passage) -> list[float]:
    """Score every option by the words of its name that stand near the number; roughly in [0, 1]."""
    scores = [0.0] * len(options.names)
    for word, closeness in _closest(passage).items():
        for index, weight in options.postings.get(word, ()):
            scores[index] += weight * closeness
    return [score * unit_fit(passage.unit, unit) for score, unit in zip(scores, options.units, strict=True)]


def _closest(passage: Passage) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for words in (reversed(passage.before), passage.after):
        for distance, word in enumerate(words):
            if is_cue(word):
                key = stem(word)
                found[key] = max(found.get(key, 0.0), 1.0 / (1.0 + distance / _REACH))
    return found
