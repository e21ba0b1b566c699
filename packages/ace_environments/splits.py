"""Draws the splits of an environment's samples."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ace_bench.core.errors import SettingError
from ace_bench.core.settings import NotNegative


@dataclass(frozen=True, kw_only=True)
class SplitRatio:
    """Sizes of the splits in proportion to each other; 0 leaves a split empty."""

    train: NotNegative
    val: NotNegative
    test: NotNegative

    def __post_init__(self) -> None:
        if not self.train or not self.test:
            raise SettingError("split_ratio: train and test need a share above 0")


def draw(total: int, ratio: SplitRatio, *, seed: int, with_test: bool) -> Mapping[str, Sequence[int]]:
    """Return the places of the samples of each split in their order; a split with a share gets at least one.

    Without a test split, training and validation divide all samples between them. Raises ``SettingError`` where there
    are too few samples.
    """
    shares = {"train": ratio.train, "val": ratio.val, **({"test": ratio.test} if with_test else {})}
    wanted = {split: share / sum(shares.values()) for split, share in shares.items() if share}
    if total < len(wanted):
        raise SettingError(
            f"split_ratio: {total} samples are too few for {', '.join(wanted)}: change the shares, or load more samples"
        )
    sizes = {split: max(1, round(total * share)) for split, share in wanted.items() if split != "train"}
    sizes = {"train": max(1, total - sum(sizes.values())), **sizes}
    places = list(range(total))
    random.Random(seed).shuffle(places)
    drawn: dict[str, Sequence[int]] = {"val": ()}
    for split, size in sizes.items():
        drawn[split], places = sorted(places[:size]), places[size:]
    return drawn
