"""What both sides did, and the first difference between them in words that show where to look."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_CONTEXT_LINES = 2
_SHOWN = 6_000


@dataclass(frozen=True)
class Call:
    """A call in its place; of a Generator's, ``answer`` is what was read from the reply and ``correct`` its grade."""

    role: str
    prompt: str
    reply: str
    answer: str | None = None
    correct: bool | None = None


@dataclass(frozen=True)
class Step:
    """The playbook after a step, and the number of its next bullet."""

    playbook: str
    next_number: int | None = None


@dataclass(frozen=True)
class Side:
    """One side's run; ``scores`` are shares of 1 by what was tested, in order."""

    calls: Sequence[Call]
    steps: Sequence[Step]
    scores: Mapping[str, Sequence[float]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """How much was equal; ``saved`` counts prompts that theirs sent twice and ours once."""

    calls: int
    saved: int
    steps: int


def compare(theirs: Side, ours: Side) -> Comparison:
    """Raise ``AssertionError`` with the first difference."""
    saved = 0
    for problem in _different_calls(theirs.calls, ours.calls):
        if problem:
            raise AssertionError(problem)
        saved += 1
    for number, (one, other) in enumerate(zip(theirs.steps, ours.steps, strict=False), 1):
        if one.playbook != other.playbook:
            raise AssertionError(f"step {number}: the playbook differs\n{_diff(one.playbook, other.playbook)}")
        assert one.next_number == other.next_number, f"step {number}: the number of the next bullet differs"
    assert len(theirs.steps) == len(ours.steps), f"{len(theirs.steps)} steps of theirs, {len(ours.steps)} of ours"
    assert {name: _rounded(of) for name, of in ours.scores.items()} == {
        name: _rounded(of) for name, of in theirs.scores.items()
    }
    for name, text in theirs.files.items():
        assert ours.files.get(name) == text, f"{name}\n{_diff(text, ours.files.get(name, ''))}"
    assert ours.files.keys() == theirs.files.keys()
    return Comparison(len(ours.calls), saved, len(ours.steps))


def _different_calls(theirs: Sequence[Call], ours: Sequence[Call]) -> Iterator[str]:
    """Yield "" for each call that ours need not repeat, and a text for the first difference."""
    seen: set[tuple[str, str]] = set()
    place = 0
    for number, call in enumerate(theirs, 1):
        same = place < len(ours) and (ours[place].role, ours[place].prompt) == (call.role, call.prompt)
        if not same and (call.role, call.prompt) in seen:
            yield ""
            continue
        where = f"call {number} of theirs, {place + 1} of ours, after {_before(theirs, number - 1)}"
        if place >= len(ours):
            yield f"{where}: theirs asks the {call.role} once more, ours has ended\n{call.prompt[-_SHOWN:]}"
            return
        if problem := _difference(call, ours[place]):
            yield f"{where}: {problem}"
            return
        seen.add((call.role, call.prompt))
        place += 1
    if place < len(ours):
        yield f"ours asks the {ours[place].role} once more after {_before(ours, place)}\n{ours[place].prompt[-_SHOWN:]}"


def _before(calls: Sequence[Call], number: int) -> str:
    if not number:
        return "the start"
    return f"the {calls[number - 1].role}'s reply {calls[number - 1].reply[:1500]!r}"


def _difference(theirs: Call, ours: Call) -> str:
    if theirs.role != ours.role:
        return f"theirs asks the {theirs.role}, ours the {ours.role}\n{ours.prompt[-_SHOWN:]}"
    if theirs.prompt != ours.prompt:
        return f"the {theirs.role}'s prompt differs\n{_diff(theirs.prompt, ours.prompt)}"
    if theirs.reply != ours.reply:
        return f"the {theirs.role}'s reply differs\n{_diff(theirs.reply, ours.reply)}"
    if (theirs.answer, theirs.correct) != (ours.answer, ours.correct):
        read = f"theirs {theirs.answer!r} ({theirs.correct}), ours {ours.answer!r} ({ours.correct})"
        return f"the answer was read differently: {read}\n{theirs.reply}"
    return ""


def _diff(theirs: str, ours: str) -> str:
    lines = difflib.unified_diff(
        [repr(line) for line in theirs.split("\n")],
        [repr(line) for line in ours.split("\n")],
        "theirs",
        "ours",
        lineterm="",
        n=_CONTEXT_LINES,
    )
    return "\n".join(lines)[:_SHOWN]


def _rounded(scores: Sequence[float]) -> list[float]:
    return [round(score, 5) for score in scores]
