"""What prompts show: the templates of a task, an agent's steps as text, and how long texts are and get shorter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from ace_bench.core.context import Reducible
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Message, Turn

CONTEXT_LENGTH = "context_length"
"""Kind of the fault that a backbone raises for a prompt over its context length."""
REFUSED = "bad_request"
"""Kind of fault of a request that a server refuses for any reason."""
BYTES_PER_TOKEN = 4
"""Rule of thumb for English prose under byte-pair encodings."""
NO_STEPS = "(none)"
LEFT_OUT = "(left out)"
_BRACKETS = re.compile(r"\[([^\[\]\n]{3,400})\]")
_ID = re.compile(r"[A-Za-z][^\s,;'\"]*-[0-9]{4,9}")
RAW_REFLECTION = "raw_reflection"
"""A set whose ``generator`` template shows this field gets each reflection as the model wrote it, in all templates."""


class Prompts(Protocol):
    """A prompt set bound to a task: templates by role."""

    def render(self, role: str, fields: Mapping[str, Any]) -> tuple[Message, ...]:
        """Render a role's messages; an undefined field is an error."""

    def is_dialogue(self, role: str) -> bool:
        """Whether a template is a whole conversation, with worked examples of its own."""

    def uses(self, role: str, field: str) -> bool:
        """Whether a template, or one that it includes, shows a field."""

    def fixed_text(self, role: str) -> str:
        """Return the fixed text of a template and of the templates that it includes. It is "" without the template."""

    @property
    def digest(self) -> str:
        """Checksum over all templates of the set."""

    def require(self, roles: Iterable[str]) -> None:
        """Raise ``ConfigError`` if a template is missing or cannot be used."""


class Sized(Protocol):
    """Part of a prompt that consists of items."""

    @property
    def size(self) -> int:
        """Number of items."""


T = TypeVar("T")
S = TypeVar("S", bound=Sized)


def shrink(part: S) -> S | None:
    """Return a shorter version; ``None`` if it cannot be shortened."""
    return part.shrink() if isinstance(part, Reducible) else None


def send_within_limit(part: S, send: Callable[[S], T]) -> tuple[T, int]:
    """Send a prompt, shortened until it fits; return the result and the number of items left out.

    Only this prompt is shortened; the value itself does not change. A prompt that a server refuses without a reason
    that we know is tried once with less. Raises the backbone's fault if the prompt is too long and cannot be shortened
    further.
    """
    fitting = part
    while True:
        try:
            return send(fitting), part.size - fitting.size
        except RolloutFault as error:
            kind = error.fault.kind
            smaller = shrink(fitting) if kind == CONTEXT_LENGTH or (kind == REFUSED and fitting is part) else None
            if smaller is None:
                raise
            fitting = smaller


def cited_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of bullets named in square brackets, such as ``[shr-00001]`` or ``[a-00001, b-00002]``, once."""
    cited_ids = (name for text in texts for group in _BRACKETS.findall(text) for name in _ID.findall(group))
    return tuple(dict.fromkeys(cited_ids))


def next_hidden(hidden: int, total: int) -> int | None:
    """Return how many of ``total`` outputs to hide next: a quarter more of those still shown, never the newest.

    ``None`` if only the newest is left. It is a quarter at a time, because every change at the front of a prompt
    makes its cached prefix useless.
    """
    remaining = total - 1 - hidden
    return hidden + max(1, remaining // 4) if remaining > 0 else None


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


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of ``text``: one per four UTF-8 bytes, rounded up.

    Tokenizers differ by model, and tiktoken downloads its vocabularies.
    """
    size = len(text) if text.isascii() else len(text.encode())
    return -(-size // BYTES_PER_TOKEN)
