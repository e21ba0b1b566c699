"""One attempt that was made elsewhere: what was said, and what is known of its outcome."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from ace_bench.core.errors import DataError
from ace_bench.core.prompts import cited_in
from ace_bench.core.redaction import HIDDEN, redact, secret_by_name
from ace_bench.core.types import Attempt, Grade, Turn

Role = Literal["system", "user", "assistant", "tool"]

_NAMED = re.compile(r"""([\w-]+)(["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
"""``name="value"`` and ``"name": "value"``, in calls, code and JSON."""
_TO_USER = "reply_to_user()"
"""The action of a step that only says something, and is answered."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """One message: its text, and the tool calls that an assistant made with it."""

    role: Role
    text: str
    action: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is known of an attempt: a score from 0 to 1 (``None``: nobody gave one), words about it, the right answer.

    ``observed`` is what the environment itself showed, such as an error.
    """

    score: float | None = None
    feedback: str = ""
    reference: str = ""
    observed: str = ""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One attempt in a file; ``name`` is the file's own id for it, or "". What its methods return holds no secrets."""

    name: str
    said: tuple[Said, ...]
    outcome: Outcome

    @classmethod
    def build(cls, name: str, said: Iterable[Said], outcome: Outcome, *, where: str) -> Trace:
        """Return a trace; raises ``DataError`` if nobody asks, or the agent says nothing."""
        found = cls(name=name, said=tuple(said), outcome=outcome)
        if not any(one.text for one in found._asked if one.role != "system"):
            raise DataError(f"{where}: there is no message of a user before the first of the assistant")
        if not any(one.role == "assistant" and (one.text or one.action) for one in found.said):
            raise DataError(f"{where}: the assistant says nothing, so there is no attempt to learn from")
        return found

    @property
    def background(self) -> str:
        """What the agent was told before the question."""
        return hide_secrets("\n\n".join(one.text for one in self._asked if one.role == "system"))

    @property
    def question(self) -> str:
        """What users said before the agent first did."""
        return hide_secrets("\n\n".join(one.text for one in self._asked if one.role != "system" and one.text))

    @cached_property
    def _asked(self) -> tuple[Said, ...]:
        first = next((n for n, one in enumerate(self.said) if one.role == "assistant"), len(self.said))
        return self.said[:first]

    def attempt(self) -> Attempt:
        """Return what the agent did; each of its messages is a step, with what was said to it until the next one."""
        turns: list[Turn] = []
        for one in self.said[len(self._asked) :]:
            text = hide_secrets(one.text)
            if one.role == "assistant":
                turns.append(Turn(thought=text, action=hide_secrets(one.action), observation=""))
            else:
                heard = "\n".join(filter(None, (turns[-1].observation, text)))
                turns[-1] = replace(turns[-1], observation=heard, action=turns[-1].action or _TO_USER)
        texts = [turn.thought for turn in turns if turn.thought]
        return Attempt(
            answer=texts[-1] if texts else "",
            reasoning="\n\n".join(texts),
            cited=cited_in(texts),
            reply=texts[-1] if texts else "",
            trajectory=tuple(turns) if any(turn.action for turn in turns) else (),
            ended="completed",  # it acted where it was made: nothing can be tried again here
            counters={"turns": len(turns)},
        )

    def grade(self, *, right_from: float) -> Grade:
        """Return what the file says of the attempt; ``right_from`` is the least score of a right one."""
        outcome = self.outcome
        score = outcome.score or 0.0
        said = [] if outcome.score is None else [f"Score: {score:g}"]
        return Grade(
            score=score,
            correct=score >= right_from,
            judged=outcome.score is not None,
            observed=hide_secrets(outcome.observed),
            gold=hide_secrets(outcome.reference),
            report=hide_secrets("\n".join(filter(None, [*said, outcome.feedback]))),
        )


def hide_secrets(text: str) -> str:
    """Replace keys, passwords and tokens: by their form, and by the name before a quoted value."""
    return redact(_NAMED.sub(lambda match: _hide(match) if secret_by_name(match[1]) else match[0], text))


def _hide(match: re.Match[str]) -> str:
    quote = match[3][0]
    return f"{match[1]}{match[2]}{quote}{HIDDEN}{quote}"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How outcomes are read.

    ``score`` is the name of the score: a field of a chat, a scorer of Inspect AI, an evaluation of OpenTelemetry;
    ``None`` takes the field ``score``, or the first. ``low`` and ``high`` are the ends of its scale, ``feedback`` and
    ``reference`` the fields of a chat with words about the attempt and with the right answer.
    """

    score: str | None
    low: float
    high: float
    feedback: str
    reference: str

    def scaled(self, value: Any, where: str) -> float:
        """Return a score from 0 to 1; raises ``DataError`` for what is not on the scale."""
        if not isinstance(value, int | float) or not self.low <= value <= self.high:
            raise DataError(
                f"{where}: the score {value!r} is not a number from {self.low:g} to {self.high:g}; task.score_range "
                "sets another scale, task.score another name"
            )
        return (float(value) - self.low) / (self.high - self.low)
