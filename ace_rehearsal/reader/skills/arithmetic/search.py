"""Find a formula over a question's numbers that gives a known answer.

The search knows common shapes of arithmetic (shares, differences, growth, discounting, annuities), not
which question wants which: that is what a lesson records. Letters say what may stand there: a to f any
amount, r and s rates, t lengths of time, n how often a year.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from ace_rehearsal.reader.skills.arithmetic.formulas import FormulaError, evaluate, letters
from ace_rehearsal.reader.skills.arithmetic.quantities import (
    FREQUENCY,
    MONEY,
    PERCENT,
    PLAIN,
    TIME,
    Quantity,
)

SHAPES: tuple[str, ...] = (
    "a / b", "a * b", "a - b", "a + b", "a / b * 100", "(a - b) / b", "(a - b) / b * 100", "a * (1 + r)",
    "a * (1 - r)", "a / (1 + r)", "a / r", "(a - b) / a", "(a - b) / a * 100", "a * r * t", "a / b * 365",
    "365 / (a / b)", "(1 + r / n) ^ n - 1", "(1 + r / n) ^ n * 100 - 100", "exp(r) - 1", "1 / a", "a / (a + b)",
    "(a - b) / c", "(a - b) / c * 100", "a / (b - c)", "a / (b + c)", "(a + b) / c", "a / b + c", "a + b * (c - a)",
    "a + b * c", "a - b * c", "a * b / c", "a / b * t", "a + b - c", "a + b + c", "a - b - c", "a * b * c",
    "a * (1 + r) / (s - r)", "a * (1 + r) / (1 + s)", "(1 + r) / (1 + s) - 1", "a / b - c", "a / ((b + c) / 2)",
    "a * (1 + r) ^ t", "a / (1 + r) ^ t", "a * (1 - (1 + r) ^ (0 - t)) / r", "a * ((1 + r) ^ t - 1) / r",
    "a * (1 + r / n) ^ (n * t)", "a * exp(r * t)", "a * (1 + r * t)", "(a / b) ^ (1 / t) - 1",
    "a * ((1 + r) ^ t - 1)", "a * r / (1 - (1 + r) ^ (0 - t))", "a * (1 + r * t / 12)", "a / (1 + r) ^ (t / 12)",
    "a - (b + c * (d - b))", "a + b - c + d", "a + b + c + d", "(b + c) / a / t * 365", "(c - a - b) / (a + b)",
    "(a - b - c) / d", "(a - b) / (c - d)",
    "(a + b - c) / d", "(a + b) / (c + d)", "a / b - c / d", "a - b + c / (1 + r) ^ t", "a + b - c / (1 + r) ^ t",
    "(a - b + c) * (1 + r) ^ t", "a + b - c - d", "a + b + c + (d - e)", "a + b * c + d * e", "(a * b + c * d) / e",
    "a / (a + b) * c + b / (a + b) * d", "a / (a + b) * c + b / (a + b) * d * (1 - e)",
    "(a * c + b * d * (1 - e)) / (a + b)", "a * b + c * d * (1 - e)", "a / f * c + b / f * d * (1 - e)",
    "a / (1 + r) + b / (1 + r) ^ 2", "a / (1 + r) + b / (1 + r) ^ 2 + c / (1 + r) ^ 3",
    "a / (1 + r) + b / (1 + r) ^ 2 + c / (1 + r) ^ 3 + d / (1 + r) ^ 4",
    "a / (1 + r) + b / (1 + r) ^ 2 + c / (1 + r) ^ 3 + d / (1 + r) ^ 4 + e / (1 + r) ^ 5",
    "b / (1 + r) + c / (1 + r) ^ 2 - a", "b / (1 + r) + c / (1 + r) ^ 2 + d / (1 + r) ^ 3 - a",
    "b * (1 - (1 + r) ^ (0 - t)) / r - a", "a * (1 - (1 + r) ^ (0 - t)) / r * (1 + r)", "a + b / (1 + r)",
    "a + b / (1 + r) + c / (1 + r) ^ 2", "a + b / (1 + r) + c / (1 + r) ^ 2 + d / (1 + r) ^ 3",
    "a / b * 90",
)  # fmt: skip
_ALLOWED = {
    "r": (PERCENT, PLAIN), "s": (PERCENT, PLAIN), "t": (TIME, PLAIN), "n": (FREQUENCY, PLAIN),
}  # fmt: skip
_AMOUNT = (MONEY, PERCENT, PLAIN)
_MOST_TRIES, _MOST_QUANTITIES = 20_000, 8
_UNUSED, _MIXED, _ORDER, _LOOSE, _RANK = 2.5, 2.0, 0.15, 0.5, 0.02


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A formula and which quantity (by place in the question) each letter stands for."""

    formula: str
    places: tuple[tuple[str, int], ...]
    cost: float


def matches(value: float, gold: float) -> bool:
    """Whether a value, rounded to two decimals, is the known answer."""
    return abs(round(value, 2) - gold) < 0.0051 if abs(gold) < 1e4 else abs(value - gold) <= 1e-6 * abs(gold) + 0.011


def find_formula(quantities: Sequence[Quantity], gold: float) -> Finding | None:
    """Return the plainest formula that gives ``gold``, or ``None``; plain means few, fitting and ordered operands."""
    quantities = quantities[:_MOST_QUANTITIES]
    best: Finding | None = None
    tries = 0
    for rank, shape in enumerate(SHAPES):
        if best is not None and best.cost <= _RANK * rank:
            break  # later shapes are less plain than what was found
        names = letters(shape)
        if len(names) > len(quantities):
            continue
        for places in _fillings(names, quantities):
            tries += 1
            if tries > _MOST_TRIES:
                return best
            values = {name: quantities[place].value for name, place in zip(names, places, strict=True)}
            try:
                value = evaluate(shape, values)
            except FormulaError:
                continue
            if not matches(value, gold):
                continue
            cost = _RANK * rank + _cost(names, places, quantities)
            if best is None or cost < best.cost:
                best = Finding(formula=shape, places=tuple(zip(names, places, strict=True)), cost=cost)
    return best


def _fillings(names: Sequence[str], quantities: Sequence[Quantity]) -> Iterator[tuple[int, ...]]:
    fitting = [
        [i for i, quantity in enumerate(quantities) if quantity.kind in _ALLOWED.get(name, _AMOUNT)] for name in names
    ]
    if any(not places for places in fitting):
        return
    for places in permutations(range(len(quantities)), len(names)):
        if all(place in places_of for place, places_of in zip(places, fitting, strict=True)):
            yield places


def _cost(names: Sequence[str], places: Sequence[int], quantities: Sequence[Quantity]) -> float:
    unused = sum(quantity.kind != FREQUENCY for i, quantity in enumerate(quantities) if i not in places)
    amounts = {quantities[place].kind for name, place in zip(names, places, strict=True) if name in "abcdef"}
    loose = sum(quantities[place].kind == PLAIN for name, place in zip(names, places, strict=True) if name in _ALLOWED)
    disorder = sum(first > second for first, second in pairwise(places))
    return _UNUSED * unused + _MIXED * (len(amounts) - 1) / 2 + _LOOSE * loose + _ORDER * disorder
