"""Words of English prose as the reader sees them: tokens, crude stems, function words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

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
"""Words that say nothing about a topic. "not" and "per" are among them: units are read apart from words."""


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
    """Whether a token is a word that can tell topics apart."""
    return token[0].isalpha() and len(token) > 1 and token.lower() not in FUNCTION_WORDS


def content_stems(words: Iterable[str]) -> list[str]:
    """Stems of the words that can tell topics apart, in order, repeated as they occur."""
    return [stem(word) for word in words if is_cue(word)]


@lru_cache(maxsize=8_192)
def camel_stems(name: str) -> tuple[str, ...]:
    """Stems of the words a CamelCase name is made of, each once, function words and digits left out."""
    parts = (part for part in _CAMEL.findall(name) if part.isalpha())
    return tuple(dict.fromkeys(stem(part) for part in parts if part.lower() not in FUNCTION_WORDS))
