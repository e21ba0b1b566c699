"""What to do when a prompt is too long for its backbone: show less of what can give way, and say how much less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from ace_bench.core.context import Reducible
from ace_bench.core.errors import RolloutFault


class Sized(Protocol):
    """Something that is shown in a prompt, in items that can be counted."""

    @property
    def size(self) -> int:
        """Number of items."""
        ...


T = TypeVar("T")
S = TypeVar("S", bound=Sized)
First = TypeVar("First", bound=Sized)
Second = TypeVar("Second", bound=Sized)

CONTEXT_LENGTH = "context_length"
"""Kind of the fault that a backbone raises for a prompt over its context length."""


@dataclass(frozen=True)
class PromptParts(Generic[First, Second]):
    """Two parts of one prompt: ``first`` gives way to the last before ``second`` does."""

    first: First
    second: Second

    @property
    def size(self) -> int:
        """Items of both."""
        return self.first.size + self.second.size

    def shrink(self) -> PromptParts[First, Second] | None:
        """Return the pair with a smaller first part or, where there is none, a smaller second part."""
        first = shrink(self.first)
        if first is not None:
            return replace(self, first=first)
        second = shrink(self.second)
        return None if second is None else replace(self, second=second)


def shrink(shown: S) -> S | None:
    """Return a smaller version of something, ``None`` where it has nothing to give up."""
    return shown.shrink() if isinstance(shown, Reducible) else None


def send_within_limit(shown: S, send: Callable[[S], T]) -> tuple[T, int]:
    """Send with ever smaller versions of a context until one fits; return the result and the items left out.

    The context itself stays as it is: only this prompt shows less. Raises the backbone's fault where the context
    has nothing to give up, or where the rest alone is too long.
    """
    fitting = shown
    while True:
        try:
            return send(fitting), shown.size - fitting.size
        except RolloutFault as error:
            smaller = shrink(fitting) if error.fault.kind == CONTEXT_LENGTH else None
            if smaller is None:
                raise
            fitting = smaller
