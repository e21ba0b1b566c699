"""What the tests of the field's memories share: a task of some subjects, verdicts, and faults."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, cycle

from ace_bench.core.prompts import CONTEXT_LENGTH
from ace_bench.core.types import Fault, Sample
from tests.runners.scripted import Call, Toy, answer, gold

BROKEN = Fault(owner="model", kind="content_filter", message="no")
TOO_LONG = Fault(owner="model", kind=CONTEXT_LENGTH, message="too long")


class Themed(Toy):
    """Samples on some subjects in turn."""

    subjects: tuple[str, ...] = ("the price of tin in Malacca", "seven silent violins")

    def samples(self, split: str) -> Sequence[Sample]:
        asked = zip(super().samples(split), cycle(self.subjects), count(), strict=False)
        return [
            Sample(id=one.id, split=split, inputs={"background": "Toy.", "question": f"{subject}, part {number}?"})
            for one, subject, number in asked
        ]


def even_right(call: Call) -> str:
    """Right on samples with even numbers."""
    return answer(gold(call.sample) if int(call.sample[-1]) % 2 == 0 else f"wrong on {call.sample}")
