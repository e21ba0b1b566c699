"""Arithmetic lessons: a formula, what kind of question it answers, and how to know its operands."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from ace_rehearsal.reader.skills.arithmetic.formulas import FormulaError, letters, parse_formula
from ace_rehearsal.reader.skills.arithmetic.quantities import KINDS, Quantity, cues
from ace_rehearsal.reader.skills.arithmetic.search import Finding
from ace_rehearsal.reader.words import content_stems

_LESSON = re.compile(
    r'For questions like "([^"]*)" compute ([-+*/^(). a-z0-9]{1,240}?) and round to 2 decimals, '
    r'where ([^\n]{1,1500}?"\.)'
)
_ROLE = re.compile(r'([a-z]) is the ([a-z]+) in "([^"\[\]]*)\[[a-z]\]([^"\[\]]*)"')
_ASKING = re.compile(
    r"\b(?:calculate|compute|determine|find|evaluate|estimate|assess|identify|what|how|derive|work out|figure out)\b",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d][\w'’&/-]*")
_TOPIC, _BESIDE = 12, 4
_YOUNG, _ASKED, _SAME = 20, 1.5, 0.85


@dataclass(frozen=True, kw_only=True)
class Role:
    """How an operand is known: its kind and the stems beside it."""

    letter: str
    kind: str
    cues: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class FormulaLesson:
    """One lesson, read. Roles stand in the order in which the operands occurred in the question."""

    topic: frozenset[str]
    formula: str
    roles: tuple[Role, ...]
    words: frozenset[str]


def topic_words(question: str) -> tuple[str, ...]:
    """Words of the request itself: what stands after "calculate", "find", "what is" and the like."""
    asks = list(_ASKING.finditer(question))
    if not asks:
        return tuple(_WORDS.findall(question))[-_TOPIC:]
    pieces = re.split(r"(?<=[.?!])\s|\n", question[asks[-1].start() :])
    return tuple(_WORDS.findall(pieces[0]))[:_TOPIC]


def word_lesson(question: str, quantities: Sequence[Quantity], finding: Finding) -> str:
    """Word a found formula so that a reader can apply it to another question of the kind."""
    roles = sorted(finding.places, key=lambda item: item[1])
    described = ", ".join(f"{letter} is the {_described(quantities[place], letter)}" for letter, place in roles)
    topic = " ".join(topic_words(question)).replace('"', "")
    return f'For questions like "{topic}" compute {finding.formula} and round to 2 decimals, where {described}.'


def _described(quantity: Quantity, letter: str) -> str:
    before, after = " ".join(quantity.before[-_BESIDE:]), " ".join(quantity.after[:_BESIDE])
    return f'{quantity.kind} in "{before} [{letter}] {after}"'


@lru_cache(maxsize=16_384)
def read_lessons(content: str) -> tuple[FormulaLesson, ...]:
    """Read every arithmetic lesson a text holds; formulas that cannot be parsed are passed over."""
    found: list[FormulaLesson] = []
    for match in _LESSON.finditer(content):
        roles = tuple(_role(role) for role in _ROLE.finditer(match[3]))
        try:
            parse_formula(match[2])
        except FormulaError:
            continue
        if {role.letter for role in roles} != set(letters(match[2])):
            continue
        topic = frozenset(content_stems(_WORDS.findall(match[1])))
        found.append(
            FormulaLesson(topic=topic, formula=match[2], roles=roles, words=topic.union(*(r.cues for r in roles)))
        )
    return tuple(found)


def _role(match: re.Match[str]) -> Role:
    kind = match[2] if match[2] in KINDS else ""
    beside = Quantity(
        value=0.0, kind=kind, before=tuple(_WORDS.findall(match[3])), after=tuple(_WORDS.findall(match[4]))
    )
    return Role(letter=match[1], kind=kind, cues=cues(beside))


def spoken_lessons(text: str) -> tuple[str, ...]:
    """Lessons of a text in their own wording, each once."""
    return tuple(dict.fromkeys(match[0] for match in _LESSON.finditer(text)))


@dataclass(frozen=True, kw_only=True)
class Topics:
    """Lessons of one context, the entries they stand in, and how rare their words are among them."""

    lessons: tuple[FormulaLesson, ...]
    owners: tuple[int, ...]
    rarity: Mapping[str, float]
    lengths: tuple[float, ...]


@lru_cache(maxsize=8)
def gather_lessons(contents: tuple[str, ...]) -> Topics:
    """Collect the lessons of a context. Sums are exact (``fsum``): they must not depend on the order of a set."""
    pairs = [(owner, lesson) for owner, content in enumerate(contents) for lesson in read_lessons(content)]
    lessons = tuple(lesson for _, lesson in pairs)
    counts = Counter(chain.from_iterable(lesson.words for lesson in lessons))
    # The floor keeps a young playbook from taking every word for a rare one.
    total = max(len(lessons), _YOUNG) + 1
    rarity = {word: math.log(total / (count + 0.5)) for word, count in counts.items()}
    squares = {word: value**2 for word, value in rarity.items()}
    lengths = tuple(math.sqrt(math.fsum([squares[word] for word in lesson.words])) or 1.0 for lesson in lessons)
    return Topics(lessons=lessons, owners=tuple(owner for owner, _ in pairs), rarity=rarity, lengths=lengths)


def likenesses(topics: Topics, question: str) -> list[tuple[float, int]]:
    """Similarity of a question to every lesson, in about [0, 1], best first; words of the request count more."""
    own = set(content_stems(_WORDS.findall(question)))
    asked = set(content_stems(topic_words(question)))
    weights = {word: topics.rarity.get(word, 1.0) ** 2 for word in own}
    length = math.sqrt(math.fsum(weights.values())) or 1.0
    found: list[tuple[float, int]] = []
    for number, (lesson, whole) in enumerate(zip(topics.lessons, topics.lengths, strict=True)):
        shared = [
            weights[word] * (_ASKED if word in asked and word in lesson.topic else 1.0) for word in lesson.words & own
        ]
        found.append((math.fsum(shared) / (whole * length), number))
    found.sort(key=lambda item: (-item[0], item[1]))
    return found


def same_lesson(first: str, second: str) -> bool:
    """Whether two texts teach the same formula in nearly the same words."""
    for one in read_lessons(first):
        for other in read_lessons(second):
            if one.formula != other.formula:
                continue
            if one.words and len(one.words & other.words) / min(len(one.words), len(other.words) or 1) > _SAME:
                return True
    return False
