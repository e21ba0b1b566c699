"""Generated tokens per second: of a call, and of all calls of a run together. This is the one definition of both.

- **Of a call**: the median over calls of the completion tokens divided by the seconds of the request.
- **Of all calls**: the completion tokens of all calls, divided by the seconds in which at least one of them was under
  way. A call is under way for the ``seconds`` before the moment at which its reply was recorded. Seconds in which
  nothing was asked do not count, so neither does the time between two processes of a continued run.

Left out are replies of the response cache, calls without an answer, calls that write no tokens (embeddings), and calls
that were asked again, whose tokens are of two requests. If a server did not report the tokens of a call, the sum over
all calls is unknown, and the median is over the others.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, Protocol

import msgspec

from ace_bench.core.types import ProbeReply, Usage, add_known

_SLOW = 3.0
"""How many times slower than the probe's calls are where advice is given."""


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """Generated tokens per second, and how many calls were under way at a time; ``None`` is unknown."""

    call: float | None = None
    all: float | None = None
    in_flight: float | None = None

    def __str__(self) -> str:
        if self.all is None and self.call is None:
            return "tokens/s n/a"
        total, single = ("n/a" if rate is None else f"{rate:,.1f}" for rate in (self.all, self.call))
        return f"{total} tokens/s ({single} a call)"

    def record(self) -> dict[str, float | None]:
        """Return it as files and programs get it."""
        rates = {"tokens_per_s": self.all, "call_tokens_per_s": self.call, "calls_in_flight": self.in_flight}
        return {name: None if rate is None else round(rate, 3) for name, rate in rates.items()}


class TimedReply(Protocol):
    """What is known of a call; see ``Completion``."""

    @property
    def usage(self) -> Usage: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102
    @property
    def replayed(self) -> bool: ...  # noqa: D102
    @property
    def asked_again(self) -> int: ...  # noqa: D102


class SpeedMeter:
    """Measures the speed of the calls that are added, in any order."""

    def __init__(self) -> None:
        self._rates: list[float] = []  # in order, for the median
        self._tokens: int | None = 0
        self._seconds = 0.0
        self._busy: list[tuple[float, float]] = []  # stretches of time with calls under way: in order, disjoint
        self._busy_s = 0.0

    def add(self, reply: TimedReply, at: float) -> None:
        """Add a call whose reply was recorded ``at`` a Unix time."""
        if not _counts(reply):
            return
        tokens = reply.usage.completion
        self._tokens = add_known(self._tokens, tokens)
        self._seconds += reply.seconds
        self._cover(at - reply.seconds, at)
        if tokens:
            insort(self._rates, tokens / reply.seconds)

    def speed(self) -> Speed:
        """Return the speed so far."""
        if not self._busy_s:
            return Speed()
        return Speed(
            call=median(self._rates) if self._rates else None,
            all=None if self._tokens is None else self._tokens / self._busy_s,
            in_flight=self._seconds / self._busy_s,
        )

    def _cover(self, start: float, end: float) -> None:
        """Join a stretch with those that it touches, which mostly are the last ones."""
        first = bisect_left(self._busy, start, key=lambda stretch: stretch[1])
        after = first
        while after < len(self._busy) and self._busy[after][0] <= end:
            after += 1
        touched = self._busy[first:after]
        joined = (min([start, *(begin for begin, _ in touched)]), max([end, *(until for _, until in touched)]))
        self._busy_s += joined[1] - joined[0] - sum(until - begin for begin, until in touched)
        self._busy[first:after] = [joined]


def _counts(reply: TimedReply) -> bool:
    return not (reply.replayed or reply.asked_again or reply.usage.completion == 0 or reply.seconds <= 0)


def times_slower(probe: ProbeReply, replies: Iterable[TimedReply]) -> float | None:
    """Return how many times fewer tokens per second the median call wrote than the probe's; ``None`` if unknown.

    The probe's reply is short, so much of its time went into its prompt and the network: its rate is too low rather
    than too high. For the same reason a reply that is shorter still counts as long as the probe's.
    """
    counted = (reply for reply in replies if _counts(reply))
    rates = [max(tokens, probe.tokens) / reply.seconds for reply in counted if (tokens := reply.usage.completion)]
    return probe.tokens_per_s / median(rates) if rates else None


def advice_on_speed(timing: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return what to try where calls are several times slower than the probe's, by the ``timing`` of metrics."""
    total = timing.get("total", {})  # older runs have none
    slower = total.get("times_slower_than_probe")
    if slower is None or slower < _SLOW:
        return None
    return (
        f"a call wrote its tokens {slower:.1f} times slower than the probe ({total['probe_tokens_per_s']:,.1f} a "
        "second): the server is the bottleneck; lower concurrency or the number of runs beside this one, leave "
        "backbone.bound_replies off, or change the server's flags (docs/backbones.md#speed)"
    )
