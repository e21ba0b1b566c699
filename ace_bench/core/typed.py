"""Decodes JSON into typed values, from many threads.

Decoders are built under a lock: concurrent first use of a type crashes msgspec 0.22.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import msgspec

_LOCK = threading.Lock()


def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the JSON decoder of a type; it is built once."""
    with _LOCK:
        return _decoder(kind)


def converted(value: Any, kind: Any) -> Any:
    """Convert plain values to a type; raises ``msgspec.ValidationError`` if they do not fit."""
    decoder_of(kind)  # makes the first use of the type happen under the lock
    return msgspec.convert(value, kind)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
