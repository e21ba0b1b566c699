"""Texts as pieces: new text, and references to passages of earlier texts."""

from __future__ import annotations

_STRIDE = 16**4
"""Characters that are compared at once; where they differ, a sixteenth of them, and so on."""
_SHORTEST = 20
"""Characters of a line that is looked up in earlier texts: a reference to a shorter one saves nothing."""

Pieces = list[str | tuple[int, int]]
"""New text, or the ``(start, length)`` of a passage, in characters."""


def join_pieces(pieces: Pieces, base: str) -> str:
    """Return the text of pieces whose references lead into ``base``."""
    return "".join(part if isinstance(part, str) else base[part[0] : part[0] + part[1]] for part in pieces)


def split_pieces(base: str, first: str, start: int, text: str, shared: int) -> Pieces:
    """Return ``text``, which begins with the same ``shared`` characters as ``base``, in pieces.

    References lead into ``base`` followed by ``first``; of ``first`` only what comes after ``start`` is looked up.
    After the shared beginning whole lines are looked up: counters and turns move, but mostly stay as they are.
    """
    if shared == len(text):
        return [(0, shared)] if shared else []
    places = _places(first, start, len(base)) | _places(base, shared, 0)
    line_start = text.rfind("\n", 0, shared) + 1
    if text[line_start:].partition("\n")[0] in places:  # better than the part of the line that the base shares
        shared = line_start
    pieces: Pieces = [(0, shared)] if shared else []
    at = new = shared
    while at < len(text):
        end = text.find("\n", at)
        line = text[at:] if end < 0 else text[at:end]
        place = places.get(line)
        if place is None:
            at += len(line) + 1
            continue
        if new < at:
            pieces.append(text[new:at])
        in_first = place - len(base)
        count = common_length(base, place, text, at) if in_first < 0 else common_length(first, in_first, text, at)
        pieces.append((place, count))
        at = new = at + count
    if new < len(text):
        pieces.append(text[new:])
    return pieces


def _places(text: str, start: int, offset: int) -> dict[str, int]:
    """Return where each line of ``text`` from ``start`` on begins, plus ``offset``; short lines are left out."""
    places: dict[str, int] = {}
    at = start + offset
    for line in text[start:].split("\n"):
        if len(line) >= _SHORTEST:
            places[line] = at
        at += len(line) + 1
    return places


def common_length(a: str, a_at: int, b: str, b_at: int) -> int:
    """Return how many characters are the same in two texts from a place in each."""
    limit = min(len(a) - a_at, len(b) - b_at)
    count, step = 0, _STRIDE
    while step > limit:
        step //= 16
    while step:
        while count < limit and b.startswith(a[a_at + count : a_at + count + step], b_at + count):
            count += step
        step //= 16
    return min(count, limit)
