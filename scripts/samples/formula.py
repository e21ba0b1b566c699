"""Formula-like samples: word problems whose answers are computed.

As in the real data, margins, returns on assets and rates of change are percentages (15.0), while yields and required
returns are fractions (0.15); only the formula shows which, and the question does not.

``formula.txt`` holds the formulas and the wordings of the problems.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from ace_bench.backbones.embedded.expressions import evaluate
from scripts.samples.draw import SIZES, WORDINGS, Draw, read_blocks

_BUSINESSES = {
    "train": ("bakery", "shipyard", "software house", "bicycle maker", "vineyard", "textile mill"),
    "val": ("brewery", "print shop", "toy maker", "ferry line"),
    "test": ("furniture maker", "drone start-up", "coffee roaster", "quarry", "hotel chain", "seed merchant"),
}

_RANGES = {
    "money": (20, 900, 1_000),
    "big_money": (10, 95, 100_000),
    "rate": (20, 120, 1),
    "small_rate": (5, 19, 1),
    "price": (80, 900, 25),
    "dividend": (10, 60, 5),
    "count": (5, 400, 1_000),
    "big_count": (500, 4_000, 1_000),
    "index": (240, 260, 1),
    "beta": (60, 180, 1),
    "years": (2, 12, 1),
}
"""Smallest, largest and step of each kind of number: dollars, tenths of a percent, cents, hundredths, or ones."""


class Formula(NamedTuple):
    """A formula, the kinds of its numbers, how the answer is computed, and three wordings of a problem."""

    name: str
    text: str
    explanation: str
    numbers: Mapping[str, str]
    computation: str
    wordings: tuple[str, ...]


@cache
def read_formulas() -> tuple[Formula, ...]:
    """Return the formulas of ``formula.txt``."""
    return tuple(
        Formula(name, text, explanation, dict(re.findall(r"(\w+)=(\w+)", numbers)), computation, tuple(wordings))
        for name, text, explanation, numbers, computation, *wordings in read_blocks("formula.txt")
    )


def rows(split: str) -> list[dict[str, str]]:
    """Return a split's samples in the data's own format: ``context`` and ``target``."""
    draw = Draw(f"formula-{split}")
    chosen: list[Formula] = []
    while len(chosen) < SIZES[split]:
        chosen += draw.shuffled(read_formulas())
    return [_row(formula, split, draw) for formula in chosen[: SIZES[split]]]


def _row(formula: Formula, split: str, draw: Draw) -> dict[str, str]:
    drawn = {name: _number(kind, draw) for name, kind in formula.numbers.items()}
    texts = {name: text for name, (text, _) in drawn.items()}
    wording = formula.wordings[draw.one(WORDINGS[split])]
    question = wording.format(business=draw.one(_BUSINESSES[split]), **texts)
    answer = round(evaluate(formula.computation, {name: value for name, (_, value) in drawn.items()}), 2)
    context = (
        f"Use formula {formula.name} to answer the question. Give a number with 2 decimal places and nothing beside "
        f"it. Formula: {formula.text}, Explanation: {formula.explanation}. "
        f'Question: "{question}". Answer:'
    )
    # Adding zero turns -0.0 into 0.0.
    return {"context": context, "target": str(answer + 0.0)}


def _number(kind: str, draw: Draw) -> tuple[str, float]:
    """Draw a number of a kind: how the question writes it, and its value."""
    low, high, step = _RANGES[kind]
    units = draw.number(low, high) * step
    if kind in ("money", "big_money"):
        in_words = units >= 1_000_000 and draw.number(1, 2) == 1
        return (f"${units / 1e6:g} million" if in_words else f"${units:,}"), float(units)
    if kind in ("rate", "small_rate"):
        return f"{units / 10:g}%", units / 1_000
    if kind in ("price", "dividend"):
        return f"${units / 100:.2f}", units / 100
    if kind == "beta":
        return f"{units / 100:.2f}", units / 100
    return f"{units:,}", float(units)
