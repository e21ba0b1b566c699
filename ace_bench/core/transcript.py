"""The steps of an agent as text for prompts, and the bullets that they name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ace_bench.core.types import Turn

NO_STEPS = "(none)"
LEFT_OUT = "(left out)"
_BRACKETS = re.compile(r"\[([^\[\]\n]{3,400})\]")
_ID = re.compile(r"[A-Za-z][^\s,;'\"]*-[0-9]{4,9}")


def cited_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of bullets named in square brackets, such as ``[shr-00001]`` or ``[a-00001, b-00002]``, once."""
    found = (name for text in texts for group in _BRACKETS.findall(text) for name in _ID.findall(group))
    return tuple(dict.fromkeys(found))


def next_hidden(hidden: int, total: int) -> int | None:
    """Return how many of ``total`` outputs to hide next: a quarter more of those still shown, never the newest.

    ``None`` if only the newest is left. It is a quarter at a time, because every change at the front of a prompt
    makes its cached prefix useless.
    """
    left = total - 1 - hidden
    return hidden + max(1, left // 4) if left > 0 else None


@dataclass(frozen=True)
class Transcript:
    """The steps in order; the outputs of the first ``hidden`` ones are left out."""

    turns: tuple[Turn, ...]
    hidden: int = 0

    @property
    def size(self) -> int:
        """Number of outputs shown."""
        return len(self.turns) - self.hidden

    def shrink(self) -> Transcript | None:
        """Return a version without more of the oldest outputs; the newest stays."""
        hidden = next_hidden(self.hidden, len(self.turns))
        return None if hidden is None else replace(self, hidden=hidden)

    @property
    def shown(self) -> tuple[Turn, ...]:
        """The steps with only the outputs that are shown."""
        hidden = (replace(turn, observation=LEFT_OUT) for turn in self.turns[: self.hidden])
        return (*hidden, *self.turns[self.hidden :])

    @property
    def text(self) -> str:
        """All steps, each with its thought, its code and its output."""
        steps = (_step(number, turn, hidden=number <= self.hidden) for number, turn in enumerate(self.turns, start=1))
        return "\n\n".join(steps) or NO_STEPS


def _step(number: int, turn: Turn, *, hidden: bool) -> str:
    head = [f"### Step {number}", *([turn.thought] if turn.thought else [])]
    if not turn.action:
        return "\n".join([*head, "(no code)"])
    output = LEFT_OUT if hidden else turn.observation.strip("\n")
    return "\n".join([*head, "```python", turn.action.strip("\n"), "```", "Output:", "```", output, "```"])
