"""Diagnosis lessons: how one is worded, read again, and compared with a patient.

A lesson quotes the findings of a patient in their telling words and names the diagnosis that they turned out to mean,
and what they were taken for. Without the right diagnosis it can only say what it was not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ace_rehearsal.reader.skills.diagnosis.profile import features
from ace_rehearsal.reader.skills.likeness import length_of

_LESSON = re.compile(
    r'(?:Diagnosis|(Doubtful), perhaps) "(\d{1,3})\. [^"\n]{1,120}" where findings are: ([^"\n.]+)\.'
    r'((?: Not "\d{1,3}\. [^"\n]{1,120}"\.)*)'
)
_NUMBER = re.compile(r'"(\d{1,3})\. ')
_LONGEST, _WORDS = 700, 9


@dataclass(frozen=True, kw_only=True)
class DiagnosisLesson:
    """One lesson, read: patients with these features have (``doubtful``: may have) ``number``, and not ``others``."""

    number: int
    others: tuple[int, ...]
    doubtful: bool
    features: Mapping[str, float]
    length: float


def word_lesson(findings: Sequence[str], answer: str, others: Sequence[str], *, doubtful: bool = False) -> str:
    """Word a lesson; ``answer`` and ``others`` are options as answers name them.

    Findings come in the order of the profile until about 700 characters are full.
    """
    told: list[str] = []
    room = _LONGEST
    for finding in findings:
        short = " ".join(finding.split()[:_WORDS])
        room -= len(short) + 2
        if room < 0 and told:
            break
        told.append(short.replace(".", ""))
    start = "Doubtful, perhaps" if doubtful else "Diagnosis"
    wrong = "".join(f' Not "{other}".' for other in others)
    return f'{start} "{answer}" where findings are: {"; ".join(told)}.{wrong}'


@lru_cache(maxsize=16_384)
def read_lessons(content: str) -> tuple[DiagnosisLesson, ...]:
    """Read every diagnosis lesson a text holds; one entry of a playbook normally holds one."""
    return tuple(_lesson(match) for match in _LESSON.finditer(content))


def _lesson(match: re.Match[str]) -> DiagnosisLesson:
    found = features(match[3].split("; "))
    return DiagnosisLesson(
        number=int(match[2]),
        others=tuple(int(number) for number in _NUMBER.findall(match[4])),
        doubtful=match[1] is not None,
        features=found,
        length=length_of(found),
    )


def spoken_lessons(text: str) -> tuple[str, ...]:
    """Lessons of a text in their own wording, each once."""
    return tuple(dict.fromkeys(match[0] for match in _LESSON.finditer(text)))


@lru_cache(maxsize=8)
def gather_lessons(contents: tuple[str, ...]) -> tuple[tuple[int, DiagnosisLesson], ...]:
    """Diagnosis lessons of a context, each with the place of the entry it stands in."""
    return tuple((owner, lesson) for owner, content in enumerate(contents) for lesson in read_lessons(content))


def same_lesson(first: str, second: str) -> bool:
    """Whether two texts say the same diagnosis of the same findings."""
    ones, others = read_lessons(first), read_lessons(second)
    return any(
        (one.number, one.doubtful, one.features) == (other.number, other.doubtful, other.features)
        for one in ones
        for other in others
    )
