"""Importing the engine in half the time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def fast_import() -> Iterator[None]:
    """Switch off the two slowest parts of creating the engine's thousands of pydantic classes.

    Garbage collection runs often and finds almost nothing. ``ABCMeta.__subclasscheck__`` asks every pydantic model
    there is; no class is registered with ``register()``, so ``type.__subclasscheck__`` gives the same answers.
    """
    from pydantic.main import ModelMetaclass

    gc.disable()
    ModelMetaclass.__subclasscheck__ = type.__subclasscheck__
    try:
        yield
    finally:
        del ModelMetaclass.__subclasscheck__
        gc.enable()
