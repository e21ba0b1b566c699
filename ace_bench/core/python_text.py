"""Reads Python text in threads side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_TRIES = 20


def read_python(read: Callable[[], _T]) -> _T:
    """Return what ``read`` returns, which parses Python with ``ast``, directly or by ``inspect.getsource``.

    CPython 3.11 counts the depth of the tree once for all threads. Where two of them parse at once, one may get a
    ``SystemError`` about a "recursion depth mismatch", by chance: it reads again.
    """
    for _ in range(_TRIES - 1):
        try:
            return read()
        except SystemError:
            pass
    return read()
