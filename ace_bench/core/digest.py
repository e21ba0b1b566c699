"""SHA-256 digests of values and texts."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest_of(value: Any) -> str:
    """SHA-256 (hex) of a JSON-able value, independent of key order."""
    return hashlib.sha256(_ENCODER.encode(value)).hexdigest()


def digest_of_text(text: str) -> str:
    """SHA-256 (hex) of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
