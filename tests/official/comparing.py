"""What both sides did, and the first difference between them in words that show where to look."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

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


def compare(theirs: Side, ours: Side) -> int:
    """Raise ``AssertionError`` with the first difference; return the number of our calls: we repeat no prompt."""
    seen, place = set[tuple[str, str]](), 0
    for number, call in enumerate(theirs.calls, 1):
        other = ours.calls[place] if place < len(ours.calls) else None
        asked = (call.role, call.prompt)
        if asked in seen and (other is None or (other.role, other.prompt) != asked):
            continue
        assert call == other, f"call {number} of theirs, {place + 1} of ours{_diff(call, other)}"
        seen.add(asked)
        place += 1
    assert place == len(ours.calls), f"ours goes on{_diff(None, ours.calls[place])}"
    for number, (step, other_step) in enumerate(zip(theirs.steps, ours.steps, strict=True), 1):
        assert step == other_step, f"step {number}{_diff(step, other_step)}"
    assert ours.scores.keys() == theirs.scores.keys()
    for name, scores in theirs.scores.items():
        assert ours.scores[name] == pytest.approx(scores, abs=1e-5), name
    for name, text in theirs.files.items():
        assert ours.files.get(name) == text, f"{name}{_diff(text, ours.files.get(name))}"
    assert ours.files.keys() == theirs.files.keys()
    return place


def _diff(theirs: object, ours: object) -> str:
    sides = ([repr(line) for line in _describe(side).split("\n")] for side in (theirs, ours))
    lines = difflib.unified_diff(*sides, "theirs", "ours", lineterm="", n=_CONTEXT_LINES)
    return "\n" + "\n".join(lines)[:_SHOWN]


def _describe(side: object) -> str:
    fields = vars(side) if isinstance(side, Call | Step) else {"text": side}
    return "\n".join(f"{name}: {value}" for name, value in fields.items())
