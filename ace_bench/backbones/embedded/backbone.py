"""The embedded backbone: the in-context reader behind the interface of a language model, and its prefix cache."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from itertools import takewhile

from msgspec.structs import replace

from ace_bench.core.prompts import BYTES_PER_TOKEN, estimate_tokens
from ace_bench.core.replies import is_offer
from ace_bench.core.settings import Text, Whole
from ace_bench.core.types import Completion, Message, Record, Usage

READER_VERSION = 5
"""Increased with every change that may change an answer, so that recorded answers of older versions are not reused."""


class EmbeddedBackbone:
    """Answers from the messages alone, the same messages always the same way; not a language model.

    ``simulated`` is True: tokens are estimates, cached tokens come from a simulated prefix cache, dollars are zero
    because nothing is paid. Any list of messages gets an answer, and no error is raised.

    ``attention`` makes it a careful and forgetful agent, for episodes of many steps: it runs code piece by piece and
    looks APIs up, and recalls only the look-ups of its newest steps (their number). ``None``: as few steps as it can.

    ``collapse`` simulates the paper's figure 2: it takes its own answers for right where nothing says otherwise, and
    of a context of more than that many tokens that it writes anew it keeps the newest entry alone.
    """

    simulated = True
    takes_tools = True
    context_length: int | None = None

    def __init__(self, *, name: Text = "embedded", attention: Whole | None = None, collapse: Whole | None = None):
        self.name = name
        habits = {"attention": attention, "collapse": collapse}
        chosen = {name: value for name, value in habits.items() if value is not None}
        self.identity: Record = {"name": name, "reader": READER_VERSION, **chosen}
        self._attention = attention
        self._collapse = collapse
        self._prefixes = PrefixCache()

    def is_greedy(self, role: str) -> bool:
        """The same messages always get the same answer."""
        del role
        return True

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Return one completion. The reader sees only messages and offered tools; the rest is ignored."""
        from ace_bench.backbones.embedded.acting import act  # late: the backbone of a finished run answers nothing
        from ace_bench.backbones.embedded.prompt_parser import parse_prompt
        from ace_bench.backbones.embedded.proposing import propose
        from ace_bench.backbones.embedded.roles import reply
        from ace_bench.backbones.embedded.tool_use import use_tools

        del role, session
        started = time.perf_counter()
        if schema is not None and is_offer(schema):
            text = use_tools(messages, schema)
        else:
            text = (
                propose(messages)
                or act(messages, self._attention)
                or reply(replace(parse_prompt(messages), collapse=self._collapse))
            )
        usage = Usage(
            prompt=-(-len(serialise(messages)) // BYTES_PER_TOKEN),
            completion=estimate_tokens(text),
            cached=self._prefixes.look_up(messages),
            usd=0.0,
        )
        return Completion(text=text, usage=usage, seconds=time.perf_counter() - started, model=self.name)

    def count(self, text: str) -> int:
        """Estimate tokens by length."""
        return estimate_tokens(text)


BLOCK_TOKENS = 32
BLOCK_BYTES = BLOCK_TOKENS * BYTES_PER_TOKEN
_MOST_BLOCKS = 6_400_000 // BLOCK_TOKENS
"""As many tokens as a typical server caches; the least recently used blocks are evicted first."""


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
            cached = sum(1 for _ in takewhile(self._blocks.__contains__, keys))
            # Ends first, so that eviction never leaves a block whose predecessor is gone.
            for key in reversed(keys):
                self._blocks[key] = None
                self._blocks.move_to_end(key)
            while len(self._blocks) > self._most:
                self._blocks.popitem(last=False)
        return cached * BLOCK_TOKENS


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
