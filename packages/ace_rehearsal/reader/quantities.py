"""Numbers in a question: value, kind, and adjacent words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ace_rehearsal.reader.words import content_stems

MONEY, PERCENT, TIME, FREQUENCY, PLAIN = "money", "percent", "time", "frequency", "number"

_SCALE = {"thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
_FREQUENCIES = {
    "bi-annually": 2.0, "bi-annual": 2.0,
    "semi-annually": 2.0, "semiannually": 2.0, "semi-annual": 2.0, "semiannual": 2.0, "half-yearly": 2.0,
    "biannually": 2.0, "quarterly": 4.0, "bimonthly": 6.0, "monthly": 12.0, "fortnightly": 26.0, "weekly": 52.0,
    "daily": 365.0, "annually": 1.0, "yearly": 1.0, "continuously": 0.0, "continuous": 0.0,
}  # fmt: skip
_SPELLED = {
    "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0,
    "nine": 9.0, "ten": 10.0, "twelve": 12.0,
}  # fmt: skip
_PERIODS = {"year": 1.0, "yr": 1.0, "month": 1 / 12, "week": 1 / 52, "day": 1.0, "quarter": 1.0, "period": 1.0}
_LENGTHS = "years?|yrs?|months?|weeks?|days?|quarters?|periods?"
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w)])[-−–])?(?P<money>[$€£¥]\s?)?"
    r"(?P<digits>(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d))"
    r"(?:\s?(?P<scale>thousand|million|billion|trillion|mn|bn|[kKmM])\b)?"
    r"(?P<percent>\s?%|\s(?:percent|per cent)\b)?"
    rf"(?:[\s-]{{1,2}}(?P<period>{_LENGTHS})\b)?"
    rf"|\b(?P<word>{'|'.join([*_FREQUENCIES, *_SPELLED])})\b(?:[\s-](?P<after>{_LENGTHS})\b)?",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[;?!\n]|\.(?=\s|$)|,(?!\d)|\b(?:and|while|whereas|against|versus)\b")
_SPAN = 5
_MOST, _LARGEST = 12, 1e15


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number as written: ``value`` in base units (percents as fractions), words before and after it."""

    value: float
    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@lru_cache(maxsize=1_024)
def read_quantities(question: str) -> tuple[Quantity, ...]:
    """All numbers of a question in order, at most a dozen; calendar years are left out."""
    matches = [match for match in _NUMBER.finditer(question) if match["word"] or match["digits"]]
    found: list[Quantity] = []
    for place, match in enumerate(matches):
        read = _value(match)
        if read is None or abs(read[0]) > _LARGEST:
            continue
        start = matches[place - 1].end() if place else 0
        end = matches[place + 1].start() if place + 1 < len(matches) else len(question)
        left = _words(_CLAUSE.split(question[start : match.start()])[-1])
        after = _words(_CLAUSE.split(question[match.end() : end])[0])
        found.append(Quantity(value=read[0], kind=read[1], before=left[-_SPAN:], after=after[:_SPAN]))
        if len(found) == _MOST:
            break
    return tuple(found)


def _value(match: re.Match[str]) -> tuple[float, str] | None:
    if match["word"]:
        return _spelled(match["word"].lower(), (match["after"] or "").lower())
    value = float(match["digits"].replace(",", ""))
    bare = match["digits"].isdigit() and not (match["money"] or match["scale"] or match["percent"] or match["period"])
    if bare and 1950 <= value <= 2050:
        return None
    value *= _SCALE.get((match["scale"] or "").lower(), 1.0)
    value = -value if match["sign"] else value
    if match["percent"]:
        # Through the decimal text, because 0.07 and 7 / 100 may differ in the last bit.
        return round(value / 100, 10), PERCENT
    if match["period"]:
        return value * _PERIODS[match["period"].lower().rstrip("s")], TIME
    return value, MONEY if match["money"] else PLAIN


def _spelled(word: str, period: str) -> tuple[float, str] | None:
    if word in _FREQUENCIES:
        return _FREQUENCIES[word], FREQUENCY
    if not period:
        return None
    return _SPELLED[word] * _PERIODS[period.rstrip("s")], TIME


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W\d][\w'’&-]*", text))


@lru_cache(maxsize=4_096)
def cues(quantity: Quantity) -> Mapping[str, float]:
    """Stems of the words near a number; closer words weigh more."""
    found: dict[str, float] = {}
    for words in (reversed(quantity.before), quantity.after):
        for distance, key in enumerate(content_stems(words)):
            found[key] = max(found.get(key, 0.0), 1.0 / (1.0 + 0.5 * distance))
    return found
