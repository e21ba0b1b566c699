"""A question in words and values: what may fill the slots of a query, and what stands around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from ace_rehearsal.reader.words import FUNCTION_WORDS, stem

WORD, NUMBER, TEXT, SLOT = "word", "number", "text", "slot"
_PIECE = re.compile(
    r"\"([^\"\n]{1,120})\"|“([^”\n]{1,120})”|(?<![\w’'])'([^\n]{1,120}?)'(?!\w)"  # quoted
    r"|(\[[a-h](?:,\w+)?\])"  # a slot of a lesson
    r"|(\d{1,4}[-/]\d{1,2}(?:[-/]\d{1,4})?(?!\d))"  # dates
    r"|(-?\d[\d,]*(?:\.\d+)?(?![\w-]|\.\w)|\d+(?:st|nd|rd|th)\b)"
    r"|(\w+(?:[-.:]\w+)*(?:['’](?!s\b)\w+)*)"
)
_DIGITS = "two three four five six seven eight nine ten"
_NUMBERS = {word: str(number) for number, word in enumerate(_DIGITS.split(), start=2)}
_SENTENCE = re.compile(r"[.?!]\s|\n")
_MEASURE = re.compile(r"(\d+(?:\.\d+)?)(?:cm|kg|km|lb|lbs|mm|m|g|k|s|ms)", re.IGNORECASE)
NUMERAL = re.compile(r"-?\d+(?:\.\d+)?")
_DAY = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})")
_MOST = 200
_EMPTY = FUNCTION_WORDS | {"every"}
_STARTERS = """
    please list give name find show state tell calculate compute provide identify among write indicate count sort
    rank mention determine describe return display explain compare per under was mr mrs dr no not
"""
_NO_NAMES = FUNCTION_WORDS.union(_STARTERS.split())
"""Words that are no part of a name even where they are capitalised, as at the start of a sentence."""


@dataclass(frozen=True, kw_only=True)
class Token:
    """One piece of a question. ``kind`` is word, number, text or slot; ``value`` is what a query would hold."""

    kind: str
    text: str
    value: str
    stem: str

    @property
    def is_cue(self) -> bool:
        """Whether it can tell topics apart."""
        return self.kind == WORD and len(self.text) > 1 and self.text.lower() not in _EMPTY


def slot_kind(slot: Token) -> str:
    """The kind of value that stood where a slot stands now: ``[a]`` is a text, ``[a,number]`` says what it is."""
    return slot.text[3:-1] or TEXT


@lru_cache(maxsize=16_384)
def read_question(text: str) -> tuple[Token, ...]:
    """Words and values of a question, in order; runs of capitalised words are one value."""
    found: list[Token] = []
    run: list[Token] = []
    end = 0
    for match in islice(_PIECE.finditer(text[: 40 * _MOST]), _MOST):
        piece, gap = _token(match), text[end : match.start()]
        end = match.end()
        starts = (not found and not run) or _SENTENCE.search(gap) is not None
        if run and (starts or gap.strip()):
            found.extend(_named(run))
            run = []
        starts = starts or (not run and piece.text.lower() in _NO_NAMES)
        if piece.kind == WORD and piece.text[:1].isupper() and not starts:
            run.append(piece)
            continue
        found.extend(_named(run))
        run = []
        found.append(piece)
    return (*found, *_named(run))


def _named(run: Sequence[Token]) -> list[Token]:
    if not run:
        return []
    text = " ".join(piece.text for piece in run)
    return [Token(kind=TEXT, text=text, value=text, stem=" ".join(piece.stem for piece in run))]


def _token(match: re.Match[str]) -> Token:
    quoted = match[1] or match[2] or match[3]
    if quoted:
        return Token(kind=NUMBER if NUMERAL.fullmatch(quoted) else TEXT, text=quoted, value=quoted, stem=quoted.lower())
    kind, value = _read(match)
    return Token(kind=kind, text=match[0], value=value, stem=stem(value) if kind == WORD else value.lower())


def _read(match: re.Match[str]) -> tuple[str, str]:
    """Kind and value of a piece without quotes; dates are written as SQLite writes them."""
    text = match[0]
    if match[4]:
        return SLOT, text
    if day := _DAY.fullmatch(text):
        return TEXT, f"{day[1]}-{int(day[2]):02}-{int(day[3]):02}"
    if measure := _MEASURE.fullmatch(text):
        return NUMBER, measure[1]
    if match[6]:
        return NUMBER, re.sub(r"[a-z]|,", "", text)
    if text.lower() in _NUMBERS:
        return NUMBER, _NUMBERS[text.lower()]
    return (TEXT if any(map(str.isdigit, text)) else WORD), text
