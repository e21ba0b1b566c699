"""Shortens a prompt that is too long for its backbone, and counts what was left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from ace_bench.core.context import Reducible
from ace_bench.core.errors import RolloutFault


class Sized(Protocol):
    """Part of a prompt that consists of items."""

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
    """Two parts of one prompt: ``first`` is shortened as far as possible before ``second``."""

    first: First
    second: Second

    @property
    def size(self) -> int:
        """Number of items of both parts."""
        return self.first.size + self.second.size

    def shrink(self) -> PromptParts[First, Second] | None:
        """Shorten the first part or, if that is not possible, the second."""
        first = shrink(self.first)
        if first is not None:
            return replace(self, first=first)
        second = shrink(self.second)
        return None if second is None else replace(self, second=second)


def shrink(shown: S) -> S | None:
    """Return a shorter version; ``None`` if it cannot be shortened."""
    return shown.shrink() if isinstance(shown, Reducible) else None


def send_within_limit(shown: S, send: Callable[[S], T]) -> tuple[T, int]:
    """Send a prompt, shortened until it fits; return the result and the number of items left out.

    Only this prompt is shortened; the value itself does not change. Raises the backbone's fault if the prompt is too
    long and cannot be shortened further.
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
