"""Words of English prose for the reader: tokens, crude stems, function words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import zip_longest

_TOKEN = re.compile(r"[^\W\d_][^\W_]*(?:_[^\W_]+)*(?:['’][a-z]+)?|\d[\d,]*(?:\.\d+)?|\.\d+|[$€£¥%]")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENDINGS = ("'s", "’s", "ies", "ings", "ing", "ed", "es", "s", "e", "y")
_STEM_LENGTH = 6
_SHORTEST = 3

_FUNCTION_WORDS = """
    a an and are as at be been being but by can could did do does for from had has have he her his how i if in
    into is it its may me more most my no nor not of on or our out per she should so some such than that the their
    them then there these they this those through to under up upon us was we were what when where which while who
    whom will with would you your over about after all also any approximately before between both during each
    however including other respectively same based following was whether
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words without a topic. "not" and "per" are included, because units are read separately."""


def pieces(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Every match in a text, with what stands between it and the next."""
    starts = list(pattern.finditer(text))
    for start, following in zip_longest(starts, starts[1:]):
        yield start, text[start.end() : following.start() if following else None]


def tokens(text: str) -> list[str]:
    """Words, numbers and currency or percent signs of a text, in order."""
    return _TOKEN.findall(text)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Reduce a word to a short lower-case stem; stems are compared, never shown."""
    lowered = word.lower()
    for ending in _ENDINGS:
        if lowered.endswith(ending) and len(lowered) - len(ending) >= _SHORTEST:
            lowered = lowered[: -len(ending)]
            break
    return lowered[:_STEM_LENGTH]


def is_cue(token: str) -> bool:
    """Whether a token is a content word."""
    return token[0].isalpha() and len(token) > 1 and token.lower() not in FUNCTION_WORDS


def content_stems(words: Iterable[str]) -> list[str]:
    """Stems of the content words in order, with repetitions."""
    return [stem(word) for word in words if is_cue(word)]


@lru_cache(maxsize=8_192)
def camel_stems(name: str) -> tuple[str, ...]:
    """Distinct stems of the words in a CamelCase name, without function words and digits."""
    parts = (part for part in _CAMEL.findall(name) if part.isalpha())
    return tuple(dict.fromkeys(stem(part) for part in parts if part.lower() not in FUNCTION_WORDS))
