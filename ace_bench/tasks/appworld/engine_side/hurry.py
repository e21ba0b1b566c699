"""Loading the engine in half the time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hurried() -> Iterator[None]:
    """Leave out what costs most while the engine makes its thousands of classes, and changes nothing of them.

    The garbage collector finds next to nothing then. And whether a class is a pydantic model is asked of ``ABCMeta``,
    which asks every model there is; as no class is registered as a model without being one, ``type`` says the same.
    """
    from pydantic.main import ModelMetaclass

    gc.disable()
    ModelMetaclass.__subclasscheck__ = type.__subclasscheck__
    try:
        yield
    finally:
        del ModelMetaclass.__subclasscheck__
        gc.enable()
