"""Rate limits: delays calls to keep requests and tokens per minute within the account's limits."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ace_bench.backbones.openai_compatible.settings import Rate

_MINUTE_S = 60.0


class Pace:
    """Spaces amounts evenly at ``per_minute``: a token bucket without a burst, in order of arrival."""

    def __init__(self, per_minute: float):
        self._seconds_each = _MINUTE_S / per_minute
        self._free_at = float("-inf")

    def reserve(self, amount: float, now: float) -> float:
        """Book ``amount`` and return the seconds to wait for it."""
        start = max(self._free_at, now)
        self._free_at = start + amount * self._seconds_each
        return start - now

    def correct(self, amount: float) -> None:
        """Book what a call used beyond its estimate; a negative amount is returned."""
        self._free_at += amount * self._seconds_each


class Pacer:
    """Keeps both limits of an account for all threads."""

    def __init__(self, rate: Rate, *, now: Callable[[], float]):
        self._requests = Pace(rate.requests_per_minute) if rate.requests_per_minute else None
        self._tokens = Pace(rate.tokens_per_minute) if rate.tokens_per_minute else None
        self._now = now
        self._lock = threading.Lock()

    @property
    def counts_tokens(self) -> bool:
        """Whether ``reserve`` needs an estimate of the tokens."""
        return self._tokens is not None

    def reserve(self, tokens: int) -> float:
        """Book one request of about ``tokens``; return the seconds to wait before it is sent."""
        if self._requests is None and self._tokens is None:
            return 0.0
        with self._lock:
            now = self._now()
            waits = [self._requests.reserve(1, now)] if self._requests else []
            waits += [self._tokens.reserve(tokens, now)] if self._tokens else []
        return max(waits)

    def correct(self, estimated: int, used: int | None) -> None:
        """Replace the estimate of a call with the server's count."""
        if self._tokens is not None and used is not None:
            with self._lock:
                self._tokens.correct(used - estimated)
