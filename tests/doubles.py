"""Backbones that stand around the embedded one: they keep what they are asked, cost money, or kill the run."""

from collections.abc import Callable, Sequence
from typing import Any

from ace_bench.core.types import Completion, Message, Record


class Recording:
    """A backbone that remembers what it was asked, as role, session and text; ``before`` is called first."""

    context_length = None

    def __init__(
        self,
        inner: Any,
        asked: list[tuple[str, str, str]] | None = None,
        *,
        simulated: bool = True,
        before: Callable[[str], object] = lambda _: None,
    ):
        self._inner, self._before = inner, before
        self.name, self.identity, self.simulated = inner.name, inner.identity, simulated
        self.asked = [] if asked is None else asked

    def count(self, text: str) -> int:
        return self._inner.count(text)

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        self._before(role)
        self.asked.append((role, session, "\n".join(message.content for message in messages)))
        return self._inner.complete(messages, role=role, session=session, schema=schema)


class Crash(BaseException):
    """Stands for a killed process: nothing catches it."""


def crash_after(calls: int, *roles: str) -> Callable[[str], None]:
    """Return a ``before`` that kills the run at the next call of the roles (of any, without roles) after so many."""
    left = [calls]

    def check(role: str) -> None:
        if not roles or role in roles:
            if left[0] == 0:
                raise Crash
            left[0] -= 1

    return check


def refuse(role: str) -> None:
    """A ``before`` that fails the test."""
    raise AssertionError(f"a call was made, of the {role}")
