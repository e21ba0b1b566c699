"""A simulated prefix cache: how much of a prompt a server with such a cache would reuse."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from ace_bench.core.backbones import BYTES_PER_TOKEN
from ace_bench.core.types import Message

BLOCK_TOKENS = 32
BLOCK_BYTES = BLOCK_TOKENS * BYTES_PER_TOKEN
_MOST_BLOCKS = 200_000
"""The maximum number of blocks: 6.4 million tokens, as on a typical server; the least recently used are evicted
first."""


class PrefixCache:
    """Caches chains of full blocks of 32 tokens, as servers with automatic prefix caching do. Thread-safe."""

    def __init__(self, *, most_blocks: int = _MOST_BLOCKS):
        self._blocks: OrderedDict[bytes, None] = OrderedDict()
        self._most = most_blocks
        self._lock = threading.Lock()

    def look_up(self, messages: Sequence[Message]) -> int:
        """Return the tokens of the longest cached prefix of a prompt, and cache the prompt."""
        keys = _chain(serialise(messages))
        with self._lock:
            known = 0
            for key in keys:
                if key not in self._blocks:
                    break
                known += 1
            # Ends first, so that eviction never leaves a block whose predecessor is gone.
            for key in reversed(keys):
                self._blocks[key] = None
                self._blocks.move_to_end(key)
            while len(self._blocks) > self._most:
                self._blocks.popitem(last=False)
        return known * BLOCK_TOKENS


def serialise(messages: Sequence[Message]) -> bytes:
    """Roles and contents in order, as a chat template would join them."""
    return "".join(f"<|{message.role}|>\n{message.content}\n" for message in messages).encode(errors="replace")


def _chain(data: bytes) -> list[bytes]:
    keys: list[bytes] = []
    digest = hashlib.blake2b(digest_size=16)
    for start in range(0, len(data) - BLOCK_BYTES + 1, BLOCK_BYTES):
        digest.update(data[start : start + BLOCK_BYTES])
        keys.append(digest.digest())
    return keys
