"""Slots of a query or code: values that its question names, to be replaced by another question's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from functools import lru_cache
from typing import NamedTuple

from ace_bench.backbones.embedded.items import Index
from ace_bench.backbones.embedded.words import FUNCTION_WORDS, stem

_LITERAL = re.compile(r"'((?:[^'\n]|'')*)'|\"([^\"\n]*)\"|(?<![\w.])(\d+(?:\.\d+)?)(?![\w.])")
_CONSTANT = re.compile(rf"^\w+ = (?:{_LITERAL.pattern})$", re.MULTILINE)
_SPAN = re.compile(r"""["“]([^"“”\n]+)["”]|(?<!\w)'([^'\n]+)'(?!\w)|(\.?\w+(?:[.-]\w+)*)""")
_NAME = re.compile(r"[A-Z][\w.-]*(?: (?:[A-Z][\w.-]*|\d+))*")
_COMPARED = re.compile(r"[\w.\"()]+\s*(?:=|<>|<=|>=|<|>|LIKE|in|IN)?\s*\(?\s*\Z")
_KNOWN, _BESIDE, _NEW, _SHAPE, _NO_CANDIDATE = 2.0, 1.0, 1.0, 2.0, 0.5


class Candidate(NamedTuple):
    """A word, name, number or quoted text of a question (``shape`` says which), with the stems beside it."""

    value: str
    shape: str
    before: str
    after: str


class Slot(NamedTuple):
    """A value at ``start`` of a payload; ``context`` is the text before it, such as ``city =``."""

    value: str
    start: int
    context: str
    candidate: Candidate


class Knowledge(NamedTuple):
    """Slot statistics of all lessons of a context: values by context, and the stems of the words outside slots."""

    values: Mapping[str, Set[str]]
    stems: Set[str]


@lru_cache(maxsize=16_384)
def find_slots(cue: str, payload: str) -> tuple[Slot, ...]:
    """The literals of a payload that its question names, in the order of the payload."""
    candidates = {word.value.lower(): word for word in reversed(candidates_in(cue))}
    slots = []
    # In code, only constants on separate lines count; other strings are field names.
    literals = _LITERAL if "\n" not in payload else _CONSTANT
    for match in literals.finditer(payload):
        group = next(number for number in (1, 2, 3) if match[number] is not None)
        value = match[group].strip("%")
        named_by = next((candidates[form] for form in (value.lower(), f"{value.lower()}s") if form in candidates), None)
        if value and named_by is not None:
            start = match.start(group) + match[group].index(value)
            before = _COMPARED.search(payload[max(0, start - 40) : start].rstrip("'\"%"))
            context = " ".join(before[0].split()).lower().rpartition(".")[2] if before else ""
            slots.append(Slot(value, start, context, named_by))
    return tuple(slots)


@lru_cache(maxsize=16_384)
def candidates_in(question: str) -> tuple[Candidate, ...]:
    """The quoted texts, names, numbers and other words of a question, each with the stems beside it."""
    spans = list(_spans(question))
    stems = [stem(value) for value, _ in spans]
    return tuple(
        Candidate(value, shape, before, after)
        for (value, shape), before, after in zip(spans, ["", *stems], [*stems[1:], ""], strict=False)
    )


def _spans(question: str) -> Iterator[tuple[str, str]]:
    position = 0
    while (match := _SPAN.search(question, position)) is not None:
        position = match.end()
        if match[3] is None:
            yield match[1] or match[2], "quoted"
        elif match[3][0].isdigit():
            yield match[3], "number"
        elif match[3][0].isupper() and match.start() and (name := _NAME.match(question, match.start())):
            position = name.end()
            yield name[0].rstrip("."), "name"
        else:
            yield match[3], "word"


@lru_cache(maxsize=4)
def knowledge_of(index: Index) -> Knowledge:
    """Return the slot statistics of an index."""
    values: dict[str, set[str]] = {}
    stems: set[str] = set()
    for lesson in index.lessons:
        slots = find_slots(lesson.cue, lesson.payload)
        taken = {slot.value.lower() for slot in slots}
        for slot in slots:
            values.setdefault(slot.context, set()).add(slot.value.lower())
        stems.update(stem(c.value) for c in candidates_in(lesson.cue) if not _forms(c.value) & taken)
    return Knowledge(values, stems)


def fill_slots(cue: str, payload: str, question: str, index: Index) -> tuple[str, float]:
    """The payload with its slots filled from another question, and how well that went, in (0, 1]."""
    knowledge, candidates = knowledge_of(index), list(candidates_in(question))
    filled: dict[str, str] = {}
    fit = 1.0
    slots = find_slots(cue, payload)
    for slot in slots:
        if slot.value in filled:
            continue
        scores = {candidate: _score(slot, candidate, knowledge) for candidate in candidates}
        best = max(scores, key=lambda candidate: scores[candidate], default=None)
        if best is None or scores[best] <= _SHAPE:
            fit *= _NO_CANDIDATE
            filled[slot.value] = slot.value
            continue
        candidates.remove(best)
        # In the form that lessons use here: "roommate" for "roommates" in the question.
        taught = _forms(best.value) & knowledge.values[slot.context]
        filled[slot.value] = best.value if best.value.lower() in taught or not taught else min(taught)
    for slot in sorted(slots, key=lambda slot: -slot.start):
        payload = payload[: slot.start] + filled[slot.value] + payload[slot.start + len(slot.value) :]
    return payload, fit


def _score(slot: Slot, candidate: Candidate, knowledge: Knowledge) -> float:
    if (slot.candidate.shape == "number") != (candidate.shape == "number") or candidate.value.lower() in FUNCTION_WORDS:
        return 0.0
    if (
        slot.candidate.shape == "number"
        and len(slot.value) == 4
        and "." not in slot.value
        and len(candidate.value) != 4
    ):
        return 0.0  # a year
    in_lessons = _forms(candidate.value) & knowledge.values.get(slot.context, set())
    score = _SHAPE * (slot.candidate.shape == candidate.shape) + _KNOWN * bool(in_lessons)
    score += _BESIDE * (slot.candidate.before == candidate.before) + _BESIDE * (slot.candidate.after == candidate.after)
    return score + _NEW * (stem(candidate.value) not in knowledge.stems)


def _forms(value: str) -> set[str]:
    lowered = value.lower()
    return {lowered, lowered.removesuffix("s")}
