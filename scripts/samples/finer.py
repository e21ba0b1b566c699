"""FiNER-like samples: four numbers of filing-style sentences, to be tagged.

``finer.txt`` assigns tags to wordings. A sentence often shares no word with its tag, so the assignment must be learnt
from training samples; test samples use it with other companies, numbers and wordings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scripts.samples.draw import SIZES, WORDINGS, Draw, read_blocks

QUESTIONS = 4

_SLOT = re.compile(r"\{(\w+):(\w)\}")
_COMPANIES = {
    "train": ("Alder Ridge Corp.", "Bluefin Foods", "the Company", "Corvane Energy", "Dunmore Trust", "Eastmoor Bank"),
    "val": ("the Group", "Fairlight Media", "Gantry Steel", "Halden Health"),
    "test": ("Ironbark Mining", "the Registrant", "Juniper Freight", "Kestrel Labs", "Lowland Paper", "Marlow Homes"),
}
_YEARS = {"train": (2013, 2017), "val": (2018, 2019), "test": (2020, 2023)}
_DAYS = ("March 31", "June 30", "September 30", "December 31", "January 28", "May 15", "October 2")


@dataclass(frozen=True)
class Question:
    """A number in a sentence and its tag."""

    entity: str
    sentence: str
    tag: str


def blocks() -> list[list[str]]:
    """Return the conventions of ``finer.txt``, each as its three wordings."""
    return read_blocks("finer.txt")


def tags() -> list[str]:
    """Return all tags that sentences use, in random but fixed order."""
    names = sorted({tag for block in blocks() for line in block for tag, _ in _SLOT.findall(line)})
    return Draw("finer-tags").shuffled(names)


def rows(split: str) -> list[dict[str, str]]:
    """Return a split's samples in the data's own format: ``context`` and ``target``."""
    questions = _questions(split, Draw(f"finer-{split}"))
    return [_row([next(questions) for _ in range(QUESTIONS)]) for _ in range(SIZES[split])]


def _row(questions: list[Question]) -> dict[str, str]:
    header = (
        f"These US GAAP tags may be used: {','.join(tags())}. Below are {QUESTIONS} questions that do not depend on "
        f"each other. Reply with their {QUESTIONS} tags in the order of the questions, separated by commas (,), and "
        f"with nothing more.\n"
    )
    listed = "".join(
        f'{number}. What is best tag for entity "{question.entity}" in sentence: "{question.sentence}?"\n'
        for number, question in enumerate(questions, start=1)
    )
    context = f"{header}{listed}Output US GAAP tags:"
    return {"context": context, "target": ",".join(question.tag for question in questions)}


def _questions(split: str, draw: Draw) -> Iterator[Question]:
    """Yield questions endlessly; every convention occurs once before any repeats."""
    while True:
        for block in draw.shuffled(blocks()):
            yield from _sentence(block[draw.one(WORDINGS[split])], split, draw)


def _sentence(wording: str, split: str, draw: Draw) -> list[Question]:
    year = str(draw.number(*_YEARS[split]))
    fixed = {"[company]": draw.one(_COMPANIES[split]), "[date]": f"{draw.one(_DAYS)} , {year}", "[year]": year}
    for name, value in fixed.items():
        wording = wording.replace(name, value)
    slots = _SLOT.findall(wording)
    values: list[str] = []
    while len(values) < len(slots):
        value = _number(slots[len(values)][1], draw)
        if value not in (*values, year):
            values.append(value)
    values_left = iter(values)
    sentence = _SLOT.sub(lambda _: next(values_left), wording)
    sentence = sentence[0].upper() + sentence[1:]
    return [Question(value, sentence, tag) for value, (tag, _) in zip(values, slots, strict=True)]


def _number(kind: str, draw: Draw) -> str:
    if kind == "m":
        return f"{draw.number(11, 9_999) / 10:.1f}"
    if kind == "k":
        return f"{draw.number(101, 999) * 1_000:,}"
    if kind == "c":
        return f"{draw.number(10_000, 4_000_000):,}"
    if kind == "p":
        return f"{draw.number(105, 995) / 100:.2f}"
    if kind == "d":
        return f"{draw.number(200, 9_900) / 100:.2f}"
    return str(draw.number(2, 40 if kind == "n" else 15))
