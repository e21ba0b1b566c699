"""What GEPA and MIPROv2 share before DSPy is loaded: the first instruction and the checks."""

from __future__ import annotations

from typing import Literal

from ace_bench.contexts.instruction import Instruction
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Arena
from ace_bench.core.resources import require
from ace_bench.core.types import Labels

START = "instruction"
"""Template of the instruction that optimisation starts from: its ``user`` block."""

Size = Literal["light", "medium", "heavy"]
"""DSPy's names for budgets (``auto``)."""

_LIBRARIES = ("dspy", "optuna")


def first_instruction(arena: Arena) -> Instruction:
    """Return the task's own instruction as a context."""
    text = arena.prompts.render(START, {})[-1].content
    return Instruction.measure(text, count=arena.counter("generator"))


def check_optimisable(name: str, arena: Arena) -> None:
    """Raise ``ConfigError`` where DSPy is missing, no score can be known, or a split it needs is empty."""
    require(f"method={name}", *_LIBRARIES)
    if arena.labels is Labels.NONE:
        raise ConfigError(
            f"method={name} searches for the best score, and with labels=none there is none; use labels=gold or "
            "labels=correctness"
        )
    for split in ("train", "val"):
        if not arena.samples(split):
            raise ConfigError(f"method={name} needs samples in the split {split}; raise limit, or choose another task")
