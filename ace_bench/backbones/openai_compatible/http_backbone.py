"""What all backbones behind one HTTP endpoint share: keys, retries, pauses, prices, and their end.

The retry loop is ours: tenacity and urllib3 know no cap of a Retry-After, no second try for an empty answer that was
paid for, and no tokens booked with each attempt.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ace_bench.backbones.openai_compatible.endpoint import Endpoint
from ace_bench.backbones.openai_compatible.problems import UNREADABLE_BODY, Disposition, Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.settings import Address, PriceCard, Retry
from ace_bench.backbones.openai_compatible.wordings import ended_by_filter
from ace_bench.core.errors import Interrupted
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import NO_USAGE, Usage


class HttpBackbone:
    """Base class. Safe to use from many threads; nothing is sent and no key is read before the first call."""

    address_setting = "base_url"
    """The name of the setting that holds the address."""

    def __init__(self, address: Address, *, retry: Retry, prices: PriceCard):
        self.prices = prices
        self._retry = retry
        self._interrupted = threading.Event()
        self._clock = Clock(sleep=self._pause)
        self._endpoint = Endpoint(address, self.address_setting)
        self._fruitless = 0

    def check(self) -> None:
        """Raise ``SettingError`` if a key is missing."""
        self._endpoint.ready()

    def start(self, say: Callable[[str], None]) -> None:
        """Read the key; raises ``ConfigError`` if it is missing."""
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
        """Return the price of these tokens."""
        return self.prices.dollars(usage)

    @property
    def price_list(self) -> str | None:
        """The list that the prices come from; ``None`` if they are set, or unknown."""
        return self.prices.source

    def _send(
        self,
        send: Callable[[], Answer | Problem],
        *,
        retry: Retry,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> CallResult:
        """Send a request, with retries; raises ``Interrupted`` after ``interrupt``.

        Where a server keeps sending empty replies, each is paid for once: asking again did not help before.
        """

        def send_unless_interrupted() -> Answer | Problem:
            self._check_interruption()
            result = send()
            if isinstance(result, Problem):  # perhaps because it was cut off
                self._check_interruption()
            return result

        if self._fruitless >= _FRUITLESS:
            retry = replace(retry, empty=False)
        done = send_with_retries(
            send_unless_interrupted,
            retry=retry,
            clock=self._clock,
            may_repeat=may_repeat,
        )
        if isinstance(done.result, Answer):
            self._fruitless = self._fruitless + done.asked_again if is_empty(done.result) else 0
        return done

    def _pause(self, seconds: float) -> None:
        self._interrupted.wait(seconds)
        self._check_interruption()

    def _check_interruption(self) -> None:
        if self._interrupted.is_set():
            raise Interrupted("interrupted")


_FRUITLESS = 3
"""After so many empty replies in a row, no empty reply is requested again."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The clock of the retry loop; tests replace it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = field(default_factory=lambda: random.Random().random)


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """How a call ended: ``seconds`` of the last attempt, ``waited`` for all before it, ``retries`` made.

    ``asked_again`` counts the replies before the answer that were paid for and useless: one empty answer at most, whose
    usage is ``discarded``, and bodies that cannot be read, the last of which may be the result.
    """

    result: Answer | Problem
    discarded: Usage
    seconds: float
    waited: float
    retries: int
    asked_again: int = 0


def send_with_retries(
    send: Callable[[], Answer | Problem],
    *,
    retry: Retry,
    clock: Clock,
    may_repeat: Callable[[], bool] = lambda: True,
) -> CallResult:
    """Send until there is an answer or a problem that a retry cannot solve, or until the retries are used up.

    With ``retry.empty`` an empty answer is retried once if the model ended normally. Before a request follows one that
    was paid for ``may_repeat`` is asked, which may refuse it.
    """
    began, lost_seconds, unreadable = clock.now(), 0.0, 0
    discarded: Usage | None = None
    for retries in itertools.count():
        sent = clock.now()
        result = send()
        seconds = clock.now() - sent
        unread = isinstance(result, Problem) and result.kind == UNREADABLE_BODY
        unreadable += unread
        done = CallResult(
            result=result,
            discarded=discarded or NO_USAGE,
            seconds=seconds,
            waited=sent - began if retries else 0.0,
            retries=retries,
            asked_again=unreadable + (discarded is not None),
        )
        if isinstance(result, Problem):
            if (result.retry_after or 0.0) > retry.seconds:
                return replace(done, result=_wait_too_long(result, retry))
            pause = _pause(result, retries, retry, clock)
            final = result.disposition is not Disposition.RETRY
        else:
            pause = 0.0
            final = not is_empty(result) or discarded is not None or not retry.empty
        lost_seconds += seconds + pause
        if final or retries >= retry.times or lost_seconds > retry.seconds:
            return done
        if (unread or isinstance(result, Answer)) and not may_repeat():
            return done
        if isinstance(result, Answer):
            discarded = result.usage
        clock.sleep(pause)
    raise AssertionError("unreachable")


def _wait_too_long(problem: Problem, retry: Retry) -> Problem:
    """Return a problem that stops the run: the server asks for a longer pause than the settings allow."""
    advice = f"the server asks to wait {problem.retry_after:g} s, longer than backbone.retry.seconds={retry.seconds:g}"
    return replace(
        problem, disposition=Disposition.STOP, message=f"{problem.message}; {advice}: continue the run later"
    )


def is_empty(answer: Answer) -> bool:
    """Whether the model ended normally without text or tool calls; asking again may help."""
    has_content = answer.text.strip() or answer.tool_calls or answer.refusal
    return not has_content and answer.ended != "length" and not ended_by_filter(answer.ended)


def _pause(problem: Problem, retries: int, retry: Retry, clock: Clock) -> float:
    backoff = min(retry.longest_pause, retry.first_pause * 2.0 ** min(retries, 64)) * (1 - clock.random() / 2)
    if problem.retry_after is None:
        return backoff
    # Jitter, so that threads that were refused together do not retry together.
    return problem.retry_after + backoff * clock.random() / 2
