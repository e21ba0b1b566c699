"""What both optimisers share: program, proposing model, and DSPy's settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dspy
from dspy.utils.exceptions import LMError

from ace_bench.contexts.instruction import Instruction
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import Arena
from ace_bench.core.types import Completion, Fault, Message, Record
from ace_bench.methods.dspy_bridge.exceptions import out_of_dspy
from ace_bench.methods.dspy_bridge.language_model import language_model
from ace_bench.methods.dspy_bridge.program import PROPOSER, PrefetchCallback, ProgramRollouts, program
from ace_bench.methods.dspy_bridge.silence import silenced


class OptimiserSession:
    """A task's program, the model that proposes, and the faults of its proposals."""

    def __init__(self, start: Instruction, arena: Arena, name: str):
        self.rollouts = ProgramRollouts(arena)
        self.program = program(start, self.rollouts)
        self.faults: list[Record] = []
        self._lm = arena.lm(PROPOSER, f"{name}/0")
        self.proposer = language_model(PROPOSER, self._ask)

    @contextmanager
    def open(self, **settings: Any) -> Iterator[None]:
        """Run an optimiser: without output, without threads of DSPy, and without lasting changes to DSPy's settings."""
        with out_of_dspy(), silenced(), dspy.context(
            lm=self.proposer,  # only rollouts call the generator, but DSPy requires a model
            callbacks=[PrefetchCallback(self.rollouts)],
            num_threads=1,
            disable_history=True,
            **settings,
        ):  # fmt: skip
            yield

    def failed(self, error: Exception) -> None:
        """Record an unusable reply as a fault; failed calls are recorded already."""
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
