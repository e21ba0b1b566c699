"""Samples on which the paper expects no gain from a playbook (section 5, "Limitations and Challenges").

``two_hop`` is like HotPotQA: everything needed is in the question's own paragraphs, and no other question is about the
same names. ``make_24`` is like the Game of 24: one rule solves all, which is to compute each expression. Questions name
their options, so that guessing is right on about a quarter.
"""

from __future__ import annotations

import json

from scripts.samples.draw import Draw

SIZES = {"train": 40, "val": 10, "test": 150}
_STARTS = ("bre", "cal", "dor", "el", "fen", "gal", "har", "il", "jor", "kel", "lin", "mar", "nor", "os", "per", "quin")
_ENDS = ("ba", "ced", "dane", "fa", "gor", "lis", "mond", "nack", "per", "ric", "sal", "tin", "vane", "wick", "zan")
_BRIDGES = (
    ("{person} directed the film {thing}.", "{person} was born in {place}.", "Where was the director of {thing} born?"),
    ("{person} built the bridge {thing}.", "{person} is buried in {place}.", "Where is the builder of {thing} buried?"),
    ("{person} wrote the opera {thing}.", "{person} studied in {place}.", "Where did the author of {thing} study?"),
    ("{person} founded the bank {thing}.", "{person} lives in {place}.", "Where does the founder of {thing} live?"),
)
_OPTIONS, _TARGET = 4, 24
_COLUMNS = {"two_hop": "question", "make_24": "puzzle"}
"""The sets, and their columns of questions: tables tell runs apart by settings, not by data."""


def contents() -> dict[str, str]:
    """Return the files of both sets by their path below the samples folder."""
    return {f"{name}/questions.jsonl": _write(name) for name in _COLUMNS}


def _write(name: str) -> str:
    draw, taken = Draw(name), set[str]()
    rows = []
    for split, size in SIZES.items():
        for number in range(size):
            text, options, answer = (_two_hop if name == "two_hop" else _make_24)(draw, taken)
            question = f"{text} Answer with one of these options: {' | '.join(options)}"
            rows.append({"id": f"{split}-{number:03d}", _COLUMNS[name]: question, "answer": answer, "split": split})
    return "".join(json.dumps(row) + "\n" for row in rows)


def _name(draw: Draw, taken: set[str]) -> str:
    """Draw a name that no other question has."""
    while (name := (draw.one(_STARTS) + draw.one(_STARTS) + draw.one(_ENDS)).capitalize()) in taken:
        pass
    taken.add(name)
    return name


def _two_hop(draw: Draw, taken: set[str]) -> tuple[str, list[str], str]:
    first_fact, second_fact, question = draw.one(_BRIDGES)
    facts = [{kind: _name(draw, taken) for kind in ("person", "thing", "place")} for _ in range(_OPTIONS)]
    sentences = draw.shuffled([text.format(**fact) for fact in facts for text in (first_fact, second_fact)])
    options = draw.shuffled([fact["place"] for fact in facts])
    return f"{' '.join(sentences)} {question.format(**facts[0])}", options, facts[0]["place"]


def _make_24(draw: Draw, taken: set[str]) -> tuple[str, list[str], str]:
    while True:
        numbers = [draw.number(1, 13) for _ in range(4)]
        answer, value = _expression(draw, numbers)
        listed = ", ".join(map(str, sorted(numbers)))
        if value == _TARGET and listed not in taken:
            break
    taken.add(listed)
    options = [answer]
    while len(options) < _OPTIONS:
        wrong, value = _expression(draw, draw.shuffled(numbers))
        if wrong not in options and 0 < abs(value - _TARGET) < _TARGET:
            options.append(wrong)
    return f"Which expression makes 24 of the numbers {listed}?", draw.shuffled(options), answer


def _expression(draw: Draw, numbers: list[int]) -> tuple[str, int]:
    """Draw an expression of four numbers; return it with its value."""
    (a, b, c, d), (sign1, sign2, sign3) = numbers, [draw.one("+-*") for _ in range(3)]
    if draw.number(0, 1):
        text, value = (
            f"(({a} {sign1} {b}) {sign2} {c}) {sign3} {d}",
            _apply(sign3, _apply(sign2, _apply(sign1, a, b), c), d),
        )
    else:
        text, value = (
            f"({a} {sign1} {b}) {sign2} ({c} {sign3} {d})",
            _apply(sign2, _apply(sign1, a, b), _apply(sign3, c, d)),
        )
    return text, value


def _apply(sign: str, left_value: int, right_value: int) -> int:
    return {"+": left_value + right_value, "-": left_value - right_value, "*": left_value * right_value}[sign]
