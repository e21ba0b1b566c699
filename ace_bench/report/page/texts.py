"""Texts that mostly repeat the previous one, such as prompts with a growing playbook, stored as line edits."""

from __future__ import annotations

from collections.abc import Iterable

_BLOCK = 64
"""Number of lines that are compared at once."""


class Texts:
    """Distinct lines, and chains of texts, each stored as an edit of the previous one.

    An edit is a flat list of integers: ``start, count`` copies lines of the previous text, ``-1 - n`` is line number
    ``n`` of all lines.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._last: dict[str, list[int]] = {}
        self._chains: dict[str, list[list[int]]] = {}

    def add(self, chain: str, parts: Iterable[str]) -> int:
        """Append a text, given as one or several parts, to a chain; return its place in the chain."""
        numbers = self._numbers
        lines = [numbers.setdefault(line, len(numbers)) for part in parts for line in part.split("\n")]
        before = self._last.get(chain, [])
        edits = self._chains.setdefault(chain, [])
        edits.append(_edit(before, lines))
        self._last[chain] = lines
        return len(edits) - 1

    def record(self) -> dict[str, object]:
        """Return all of it as a JSON object."""
        return {"lines": list(self._numbers), "chains": self._chains}


def _edit(before: list[int], after: list[int]) -> list[int]:
    edit: list[int] = []
    where: dict[int, int] | None = None
    at, expected, size, end = 0, 0, len(before), len(after)
    while at < end:
        # A line may occur often: prefer the occurrence that continues the previous match.
        runs_on = expected < size and before[expected] == after[at]
        if where is None and not runs_on:
            where = {line: place for place, line in enumerate(before)}
        start = expected if runs_on or where is None else where.get(after[at])
        if start is None:
            edit.append(-1 - after[at])
            at, expected = at + 1, expected + 1
            continue
        count = 1
        # Most texts repeat thousands of lines: compare them in blocks while possible.
        while (
            len(block := after[at + count : at + count + _BLOCK]) == _BLOCK
            and block == (before[start + count : start + count + _BLOCK])
        ):
            count += _BLOCK
        while at + count < end and start + count < size and before[start + count] == after[at + count]:
            count += 1
        edit += [start, count]
        at, expected = at + count, start + count
    return edit
