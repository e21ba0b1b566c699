"""A backbone whose judge always says the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ace_bench.core.types import Completion
from tests.doubles import Recording

RIGHT = '{"reason": "the same", "verdict": "correct"}'
WRONG = '{"reason": "a filter is missing", "verdict": "incorrect"}'


class JudgeSaying(Recording):
    """Answers as the judge with the same words every time, and as any other role as ``inner`` does."""

    def __init__(self, inner: Any, said: str) -> None:
        super().__init__(inner)
        self._said = said

    def complete(self, *args: Any, role: str, **more: Any) -> Completion:
        done = super().complete(*args, role=role, **more)
        return replace(done, text=self._said) if role == "judge" else done
