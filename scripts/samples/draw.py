"""The texts of the sample sets, and random draws that are the same on every Python version."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

SIZES = {"train": 60, "val": 20, "test": 60}

WORDINGS = {"train": (0, 1), "val": (0, 2), "test": (1, 2)}
"""The wordings that each split draws: half of those in test do not occur in training."""


class Draw:
    """Draws from a seed. Only ``random()`` is used, because Python guarantees only its values across versions."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def number(self, low: int, high: int) -> int:
        """Draw a whole number of ``low`` to ``high``, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def one(self, options: Sequence[T]) -> T:
        """Draw one of the options."""
        return options[self.number(0, len(options) - 1)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order."""
        keyed = [(self._random.random(), position) for position in range(len(items))]
        return [items[position] for _, position in sorted(keyed)]


def read_blocks(name: str) -> list[list[str]]:
    """Return the blocks of lines of a file beside this one, without comments; empty lines separate them."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    return [block.splitlines() for block in re.split(r"\n\n+", text.strip())]
