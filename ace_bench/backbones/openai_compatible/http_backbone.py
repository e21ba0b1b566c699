"""What all backbones behind one HTTP endpoint share: keys, retries, pauses, prices, and their end."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ace_bench.backbones.openai_compatible.attempts import CallResult, Clock, Pacer, attempt
from ace_bench.backbones.openai_compatible.endpoint import Address, Endpoint
from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.settings import PriceCard, Rate, Retry
from ace_bench.core.errors import Interrupted
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import Usage


class HttpBackbone:
    """Base class. Safe to use from many threads; nothing is sent and no key is read before the first call."""

    def __init__(self, address: Address, *, retry: Retry, rate: Rate, prices: PriceCard):
        self.prices = prices
        self._retry = retry
        self._interrupted = threading.Event()
        self._clock = Clock(sleep=self._pause)
        self._pacer = Pacer(rate, now=self._clock.now)
        self._endpoint = Endpoint(address)

    def check(self) -> None:
        """Raise ``SettingError`` where a key is missing."""
        self._endpoint.ready()

    def start(self, say: Callable[[str], None]) -> None:
        """Read the key; raises ``ConfigError`` where it is missing."""
        del say
        self.check()

    def interrupt(self, grace: float) -> None:
        """End calls early: pauses at once, requests in flight after ``grace`` seconds; later calls are refused."""
        self._interrupted.set()
        self._endpoint.abort(grace)

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._endpoint.close()

    def count(self, text: str) -> int:
        """Estimate tokens by length."""
        return estimate_tokens(text)

    def dollars(self, usage: Usage) -> float | None:
        """Price some tokens by the card in the configuration."""
        return self.prices.dollars(usage)

    def _send(self, send: Callable[[], Answer | Problem], *, tokens: int, retry: Retry) -> CallResult:
        """Send a request of about ``tokens``, with retries; raises ``Interrupted`` after ``interrupt``."""

        def send_unless_interrupted() -> Answer | Problem:
            self._pause(0.0)
            result = send()
            if isinstance(result, Problem):  # perhaps because it was cut off
                self._pause(0.0)
            return result

        return attempt(send_unless_interrupted, retry=retry, pacer=self._pacer, tokens=tokens, clock=self._clock)

    def _pause(self, seconds: float) -> None:
        if self._interrupted.wait(seconds):
            raise Interrupted("interrupted")
