"""What GEPA and MIPROv2 check before DSPy is loaded."""

from __future__ import annotations

from typing import Literal

from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Arena
from ace_bench.core.resources import require
from ace_bench.core.types import Labels

Size = Literal["light", "medium", "heavy"]
"""DSPy's names for budgets (``auto``)."""

_LIBRARIES = ("dspy", "optuna")


def check_optimisable(name: str, arena: Arena) -> None:
    """Raise ``ConfigError`` if DSPy is missing, no score can be known, or a split it needs is empty."""
    require(f"method={name}", *_LIBRARIES)
    if arena.labels is Labels.NONE:
        raise ConfigError(
            f"method={name} searches for the best score, and with labels=none there is none; use labels=gold or "
            "labels=correctness"
        )
    for split in ("train", "val"):
        if not arena.samples(split):
            raise ConfigError(f"method={name} needs samples in the split {split}; raise limit, or choose another task")
