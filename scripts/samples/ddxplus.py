"""DDXPlus-like samples: profiles of made-up patients, to be diagnosed.

``ddxplus.txt`` describes the conditions in plain words that share little with their names, so that the link must be
learnt from training samples. Test samples show other combinations of findings, half of them in wordings that do not
occur in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ace_bench.tasks.ddxplus import DIAGNOSIS, PROFILE
from scripts.samples.draw import SIZES, WORDINGS, Draw, read_blocks

_ANYONE = "Anyone"
_SEXES = {"M": "male", "F": "female"}


@dataclass
class Picture:
    """The findings of a condition, each in three wordings."""

    name: str
    ages: tuple[int, int]
    sexes: str
    symptoms: list[list[str]] = field(default_factory=list)
    history: list[list[str]] = field(default_factory=list)


def pictures() -> dict[str, Picture]:
    """Return the blocks of ``ddxplus.txt`` by name."""
    return {picture.name: picture for picture in map(_read_picture, read_blocks("ddxplus.txt"))}


def _read_picture(block: list[str]) -> Picture:
    heading, *lines = block
    name, ages, sexes = heading.split(" | ")
    low, high = ages.split("-")
    picture = Picture(name=name, ages=(int(low), int(high)), sexes=sexes)
    for line in lines:
        (picture.symptoms if line.startswith("+") else picture.history).append(line[2:].split(" | "))
    return picture


def rows(split: str) -> list[dict[str, str]]:
    """Return a split's samples in the data's own format; every condition occurs before any repeats."""
    draw = Draw(f"ddxplus-{split}")
    by_condition = pictures()
    anyone = by_condition.pop(_ANYONE)
    turns = [picture for _ in range(SIZES[split]) for picture in draw.shuffled(list(by_condition.values()))]
    return [_row(picture, anyone, split, draw) for picture in turns[: SIZES[split]]]


def _row(picture: Picture, anyone: Picture, split: str, draw: Draw) -> dict[str, str]:
    def worded(findings: list[list[str]], count: int) -> list[str]:
        return [wordings[draw.one(WORDINGS[split])] for wordings in draw.shuffled(findings)[:count]]

    complaint, *symptoms = worded(picture.symptoms, 4)
    profile = profile_text(
        str(draw.number(*picture.ages)),
        _SEXES[draw.one(picture.sexes)],
        complaint,
        draw.shuffled([*symptoms, *worded(anyone.symptoms, 2)]),
        draw.shuffled([*worded(picture.history, draw.number(0, 1)), *worded(anyone.history, 2)]),
    )
    return {PROFILE: profile, DIAGNOSIS: picture.name}


def profile_text(age: str, sex: str, complaint: str, symptoms: Sequence[str], history: Sequence[str]) -> str:
    """Format a profile: one finding per line; empty parts are left out."""
    parts = [f"Age: {age}\nSex: {sex}\nChief complaint: {complaint}"]
    for heading, lines in (("Symptoms", symptoms), ("History", history)):
        if lines:
            parts.append("\n".join([f"{heading}:", *(f"- {line}" for line in lines)]))
    return "\n\n".join(parts)
