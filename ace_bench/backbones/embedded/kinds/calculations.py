"""Kind of question: compute one number from the numbers of a question (Formula)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, permutations

from ace_bench.backbones.embedded.expressions import (
    FREQUENCY,
    PLAIN,
    ExpressionError,
    Quantity,
    cues,
    evaluate,
    find_expression,
    names_in,
    read_quantities,
)
from ace_bench.backbones.embedded.items import Index, Item
from ace_bench.backbones.embedded.lessons import COMPUTE, Lesson, one_line

_WANTED = re.compile(r"\b(?:numerical|numeric|number|decimals?|decimal places)\b", re.IGNORECASE)
_MOST_ASSIGNMENTS, _UNUSED, _LEAST_FIT = 120, 1.0, 0.3


@dataclass(frozen=True, kw_only=True)
class CalculationItem(Item):
    """A question whose answer is one number."""

    verb = COMPUTE
    least = 0.15

    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        """Compute the lesson's expression with the numbers here that fit its own numbers best."""
        operands, quantities = _operands(lesson.cue, lesson.payload), read_quantities(self.cue)
        if not operands or len(operands) > len(quantities):
            return None
        fits = [[_fit(o, q, abs(i - j)) for j, q in enumerate(quantities)] for i, o in enumerate(operands.values())]
        # The best of the first assignments, which follow the order of the text.
        assignments = islice(permutations(range(len(quantities)), len(fits)), _MOST_ASSIGNMENTS)
        positions = max(assignments, key=lambda chosen: sum(row[n] for row, n in zip(fits, chosen, strict=True)))
        values = {name: quantities[position].value for name, position in zip(operands, positions, strict=True)}
        unused = sum(
            quantity.kind != FREQUENCY for position, quantity in enumerate(quantities) if position not in positions
        )
        fit = min(1.0, sum(row[position] for row, position in zip(fits, positions, strict=True)) / len(fits))
        fit /= 1 + _UNUSED * unused
        try:
            return (as_answer(evaluate(lesson.payload, values)), fit) if fit >= _LEAST_FIT else None
        except ExpressionError:
            return None

    def guesses(self) -> Mapping[str, float]:
        """Divide the first number by the second."""
        values = [quantity.value for quantity in read_quantities(self.cue) if quantity.kind != FREQUENCY]
        is_alone = len(values) < 2 or not values[1]
        return {as_answer((values or [0.0])[0] if is_alone else values[0] / values[1]): 0.1}

    def payload(self, answer: str) -> str:
        number = _number(answer)
        return "" if number is None else find_expression(read_quantities(self.cue), number)

    def is_same(self, first: str, second: str) -> bool:
        number = _number(first)
        return number == _number(second) if number is not None else first.strip() == second.strip()


def read_calculation(background: str, question: str) -> Sequence[CalculationItem]:
    """Recognise a request for a number over a question that holds numbers; without tags it is the last line."""
    form = background or question
    problem = (question if background else question.strip().rpartition("\n")[2]).rpartition("Question:")[2]
    return [CalculationItem(cue=one_line(problem))] if _WANTED.search(form) and read_quantities(problem) else []


@lru_cache(maxsize=16_384)
def _operands(cue: str, expression: str) -> Mapping[str, Quantity]:
    """The numbers of a lesson's question that its expression uses, in order; {} where one is absent."""
    quantities = {f"n{index}": quantity for index, quantity in enumerate(read_quantities(cue), start=1)}
    used = names_in(expression)
    return (
        {name: quantity for name, quantity in quantities.items() if name in used}
        if quantities.keys() >= set(used)
        else {}
    )


def _fit(operand: Quantity, quantity: Quantity, shift: int) -> float:
    """How well a number fits in place of a lesson's number: kind, adjacent words, and position."""
    taught, present = cues(operand), cues(quantity)
    shared = sum(min(weight, present.get(key, 0.0)) for key, weight in taught.items())
    smaller = min(sum(taught.values()), sum(present.values()))
    kinds = {operand.kind, quantity.kind}
    kind = 1.0 if len(kinds) == 1 else 0.5 if PLAIN in kinds and FREQUENCY not in kinds else 0.0
    return kind * (0.35 + 0.65 * (shared / smaller if smaller else 0.0) - 0.03 * shift) + 0.01 * (kind > 0)


def as_answer(value: float) -> str:
    """Write a number with two decimals at most, as the task's own answers are written."""
    return str(round(value, 2) + 0.0)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "").replace("$", "").rstrip("%. \n").strip())
    except ValueError:
        return None
