"""What solves a sample."""

from __future__ import annotations

from typing import Protocol

from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.task import Session
from ace_bench.core.types import Attempt, Sample


class Agent(Protocol):
    """Solves one sample under a context."""

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str) -> Attempt:
        """Attempt the sample; ``reflection`` is advice for a retry ("" on the first try).

        Raises ``RolloutFault`` when the attempt fails; never grades.
        """
        ...
