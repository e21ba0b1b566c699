"""What both optimisers work with, and the conditions under which they work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dspy
from dspy.utils.exceptions import LMError

from ace_bench.contexts.instruction import Instruction
from ace_bench.core.arena import Arena
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Completion, Fault, Message, Record
from ace_bench.methods.dspy_bridge.exceptions import arriving
from ace_bench.methods.dspy_bridge.language_model import language_model
from ace_bench.methods.dspy_bridge.program import PROPOSER, Attempts, PrefetchCallback, program
from ace_bench.methods.dspy_bridge.silence import silenced


class OptimiserSession:
    """A task's program, the model that proposes, and a note of every proposal that failed."""

    def __init__(self, start: Instruction, arena: Arena, name: str):
        self.attempts = Attempts(arena)
        self.program = program(start, self.attempts)
        self.faults: list[Record] = []
        self._lm = arena.lm(PROPOSER, f"{name}/0")
        self.proposer = language_model(PROPOSER, self._ask)

    @contextmanager
    def open(self, **settings: Any) -> Iterator[None]:
        """Let an optimiser work: in silence, one attempt after the other, and without a trace in DSPy's settings."""
        with arriving(), silenced(), dspy.context(
            lm=self.proposer,  # the generator is asked in rollouts alone, but DSPy wants to know of a model
            callbacks=[PrefetchCallback(self.attempts)],
            num_threads=1,
            disable_history=True,
            **settings,
        ):  # fmt: skip
            yield

    def failed(self, error: Exception) -> None:
        """Note a reply that could not be used; a call that failed is noted already."""
        if not isinstance(error, LMError):
            self._note(Fault(owner="model", kind="unreadable_reply", message=str(error)))

    def _ask(self, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        try:
            return self._lm(messages, schema)
        except RolloutFault as error:
            self._note(error.fault)
            raise

    def _note(self, fault: Fault) -> None:
        self.faults.append({"event": "fault", "role": PROPOSER, **vars(fault)})
