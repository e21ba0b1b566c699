"""The embedded backbone: the in-context reader behind the interface of a language model."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ace_bench.core.backbones import BYTES_PER_TOKEN, estimate_tokens, is_offer
from ace_bench.core.settings import Text, Whole
from ace_bench.core.types import Completion, Message, Record, Usage
from ace_rehearsal.reader.acting import act
from ace_rehearsal.reader.prefix_cache import PrefixCache, serialise
from ace_rehearsal.reader.prompt_parser import parse_prompt
from ace_rehearsal.reader.proposing import propose
from ace_rehearsal.reader.roles import reply
from ace_rehearsal.reader.tool_use import use_tools

READER_VERSION = 5
"""Increased with every change that may change an answer, so that recorded answers of older versions are not reused."""


class EmbeddedBackbone:
    """Answers from the messages alone, the same messages always the same way; not a language model.

    ``simulated`` is True: tokens are estimates, cached tokens come from a simulated prefix cache, dollars are
    zero because nothing is paid. Any list of messages gets an answer; nothing is raised.

    ``attention`` makes it a careful and forgetful agent, for episodes of many steps: it runs code piece by piece and
    looks APIs up, and recalls only the look-ups of its newest steps (their number). ``None``: as few steps as it can.
    """

    simulated = True
    takes_tools = True
    context_length = None

    def __init__(self, *, name: Text = "embedded", attention: Whole | None = None):
        self.name = name
        habits = {} if attention is None else {"attention": attention}
        self.identity: Record = {"name": name, "reader": READER_VERSION, **habits}
        self._attention = attention
        self._prefixes = PrefixCache()

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Return one completion. The reader sees only messages and offered tools; the rest is ignored."""
        del role, session
        started = time.perf_counter()
        if schema is not None and is_offer(schema):
            text = use_tools(messages, schema)
        else:
            text = propose(messages) or act(messages, self._attention) or reply(parse_prompt(messages))
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
