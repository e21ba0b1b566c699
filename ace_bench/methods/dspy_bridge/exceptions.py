"""Carries exceptions through DSPy, which catches every ``Exception`` and continues with a score of 0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class _Uncaught(BaseException):
    """Wraps an exception for code that catches ``Exception``."""

    def __init__(self, cause: Exception):
        super().__init__(cause)
        self.cause = cause


@contextmanager
def through_dspy() -> Iterator[None]:
    """Wrap exceptions, such as an exhausted budget or an interruption, so that DSPy does not catch them."""
    try:
        yield
    except Exception as error:
        raise _Uncaught(error) from error


@contextmanager
def out_of_dspy() -> Iterator[None]:
    """Unwrap and raise the exceptions that ``through_dspy`` wrapped."""
    try:
        yield
    except _Uncaught as carrier:
        raise carrier.cause from None
