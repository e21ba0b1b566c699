"""Splits: by a file for each, by a column, or by seeded shares; and what is repeated between them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ace_bench.core.errors import DataError, SettingError
from ace_bench.core.settings import NotNegative
from ace_bench.tasks.data import SPLITS
from ace_bench.tasks.qa.columns import Question

NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing", "eval"), "test"),
}
"""What a split may be called, in any case."""

Questions = Mapping[str, Sequence[Question]]
"""Questions by split, in the order of their rows."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Sizes of the splits in proportion to each other; 0 leaves a split empty."""

    train: NotNegative
    val: NotNegative
    test: NotNegative

    def __post_init__(self) -> None:
        if not self.train + self.val + self.test:
            raise SettingError("split_ratio: all shares are 0; give at least train and test a share")


@dataclass(frozen=True, kw_only=True)
class Draw:
    """How the rows of one file are divided."""

    shares: Shares
    seed: int


def by_column(questions: Sequence[Question], column: str) -> Questions:
    """Split by the values of a column; raises ``DataError`` for a value that names no split."""
    found: dict[str, list[Question]] = {split: [] for split in SPLITS}
    for question in questions:
        name = NAMES.get(question.split.lower())
        if name is None:
            known = ", ".join(sorted(NAMES))
            raise DataError(
                f"{question.where}: column {column} (task.split) says {question.split!r}, not one of {known}"
            )
        found[name].append(question)
    return found


def by_shares(questions: Sequence[Question], draw: Draw) -> Questions:
    """Split by seed. Rows of a group, and repeated questions, stay together.

    Units (groups, or questions) are ranked by a hash of the seed and their text. So the order of the rows does not
    matter, and rows that are added move only units near a border. Within a split the order of the rows is kept.
    """
    units = Counter(_unit(question) for question in questions)
    ranked = sorted(units, key=lambda unit: hashlib.sha256(f"{draw.seed}/{unit}".encode()).digest())
    borders = _borders(len(questions), draw.shares)
    place, split_of = 0, dict[str, str]()
    for unit in ranked:
        middle = place + units[unit] / 2
        split_of[unit] = next(split for split, border in borders if middle <= border)
        place += units[unit]
    return {split: [one for one in questions if split_of[_unit(one)] == split] for split in SPLITS}


def _unit(question: Question) -> str:
    return f"group {question.group}" if question.group else question.digest


def _borders(count: int, shares: Shares) -> list[tuple[str, float]]:
    """Return the splits that have a share with the rank at which each ends; the last ends at ``count``."""
    total, reached, borders = shares.train + shares.val + shares.test, 0.0, []
    for split in SPLITS:
        share = getattr(shares, split)
        reached += share
        if share:
            borders.append((split, float(round(count * reached / total))))
    return [*borders[:-1], (borders[-1][0], float(count))]


def repeats(questions: Questions) -> list[str]:
    """Describe in a sentence each what is repeated: questions within a split and between splits."""
    digests = {split: Counter(question.digest for question in rows) for split, rows in questions.items()}
    found = []
    for place, split in enumerate(SPLITS):
        within = sum(digests[split].values()) - len(digests[split])
        if within:
            found.append(f"{within} of {len(questions[split])} questions of {split} repeat an earlier one of {split}")
        for other in SPLITS[:place]:
            shared = [one for one in questions[split] if one.digest in digests[other]]
            if shared:
                found.append(
                    f"{len(shared)} of {len(questions[split])} questions of {split} are also in {other}, "
                    f"such as {shared[0].where}"
                )
    return found
