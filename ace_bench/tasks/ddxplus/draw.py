"""Draws the splits from the DDXPlus files: the paper's sizes, and StreamBench's order of the test split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ace_bench.core.errors import DataError
from ace_bench.tasks.data import Row

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Rows to draw for training and validation, and the seeds; ``None`` leaves the splits as in their files."""

    train: int | None
    val: int
    draw_seed: int
    test_seed: int | None


def shuffled(items: Sequence[T], seed: int) -> list[T]:
    """Return the items in the order that ``datasets.Dataset.shuffle(seed=...)`` gives them, which StreamBench uses."""
    return [items[place] for place in np.random.default_rng(seed).permutation(len(items))]


def drawn(split: str, *, read: Callable[[str], Sequence[Row]], sizes: Sizes) -> Sequence[Row]:
    """Return the rows of a split; ``read`` reads those of a file. Raises ``DataError`` where there are too few."""
    if split == "test":
        return read(split) if sizes.test_seed is None else shuffled(read(split), sizes.test_seed)
    if sizes.train is None:
        return read(split)
    pool = shuffled(_pooled(read), sizes.draw_seed)
    if len(pool) <= sizes.train:
        raise DataError(
            f"train.jsonl and val.jsonl hold {len(pool)} different rows and task.train_size={sizes.train} leaves none "
            f"for validation; lower it, or use task.train_size=null for the files as they are"
        )
    return pool[: sizes.train] if split == "train" else pool[sizes.train : sizes.train + sizes.val]


def _pooled(read: Callable[[str], Sequence[Row]]) -> list[Row]:
    """Return the rows of both files, each key prefixed by its file; a row of val that is in train is left out."""
    train = read("train")
    seen = {tuple(row.fields.values()) for row in train}
    val = (row for row in read("val") if tuple(row.fields.values()) not in seen)
    return [replace(row, key=f"{name}{row.key}") for name, rows in (("train", train), ("val", val)) for row in rows]
