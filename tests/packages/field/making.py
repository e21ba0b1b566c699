"""What the tests of the field's memories share: a task of two subjects, verdicts, and faults."""

from __future__ import annotations

from collections.abc import Sequence

from ace_bench.core.prompts import CONTEXT_LENGTH
from ace_bench.core.types import Fault, Sample
from tests.runners.scripted import Call, Toy, answer, gold

BROKEN = Fault(owner="model", kind="content_filter", message="no")
TOO_LONG = Fault(owner="model", kind=CONTEXT_LENGTH, message="too long")
SUBJECTS = ("the price of tin in Malacca", "seven silent violins")


class Themed(Toy):
    """Samples on two subjects in turn."""

    def samples(self, split: str) -> Sequence[Sample]:
        return [
            Sample(
                id=sample.id,
                split=split,
                inputs={"background": "Toy.", "question": f"{SUBJECTS[number % 2]}, part {number}?"},
            )
            for number, sample in enumerate(super().samples(split))
        ]


def even_right(call: Call) -> str:
    """Right on samples with even numbers."""
    return answer(gold(call.sample) if int(call.sample[-1]) % 2 == 0 else f"wrong on {call.sample}")
