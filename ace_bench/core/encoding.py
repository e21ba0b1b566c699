"""JSON values: decoded into types from many threads, and named by SHA-256 digests.

Decoders are built under a lock: concurrent first use of a type crashes msgspec 0.22.
"""

from __future__ import annotations

import gc
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import msgspec

_LOCK = threading.Lock()
_ENCODER = msgspec.json.Encoder(order="deterministic")


def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the JSON decoder of a type; it is built once."""
    with _LOCK:
        return _decoder(kind)


def convert(value: Any, kind: Any) -> Any:
    """Convert plain values to a type; raises ``msgspec.ValidationError`` if they do not fit."""
    decoder_of(kind)  # makes the first use of the type happen under the lock
    return msgspec.convert(value, kind)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def digest_of(value: Any) -> str:
    """SHA-256 (hex) of a JSON-able value, independent of key order."""
    return hashlib.sha256(_ENCODER.encode(value)).hexdigest()


def digest_of_text(text: str) -> str:
    """SHA-256 (hex) of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the search for cycles: as records pile up, it would go through all of them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
