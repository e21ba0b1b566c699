"""Items of a model's reply, such as workflows or memory items: each is checked by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from ace_bench.core.typed import converted
from ace_bench.core.types import Record

Item = TypeVar("Item", bound=msgspec.Struct)


def valid_items(
    values: Sequence[Any], kind: type[Item], *, clean: Callable[[Item], Item], most: int, role: str
) -> tuple[list[Item], list[Record]]:
    """Return the first ``most`` values as cleaned items, and an event for each value that is none or beyond these."""
    found: list[Item] = []
    refused: list[Record] = []
    for place, value in enumerate(values):
        try:
            if place >= most:
                raise ValueError(f"more than {most} in one reply")
            item = clean(converted(value, kind))
            found.append(converted(msgspec.to_builtins(item), kind))  # cleaning may leave nothing of a text
        except ValueError as error:
            refused.append({"event": "refused", "role": role, "item": place, "reason": str(error)})
    return found, refused
