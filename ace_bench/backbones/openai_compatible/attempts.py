"""The retry loop: attempts, pauses between them, and what it means when they are used up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ace_bench.backbones.openai_compatible.pacing import Pacer
from ace_bench.backbones.openai_compatible.problems import Disposition, Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.settings import Retry
from ace_bench.core.types import NO_USAGE, Usage


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Time as the retry loop knows it; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = field(default_factory=lambda: random.Random().random)


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """How a call ended: ``seconds`` of the last attempt, ``waited`` for all before it, ``retries`` made.

    ``discarded`` is the usage of an answer that was asked for again: paid for like any other.
    """

    result: Answer | Problem
    discarded: Usage
    seconds: float
    waited: float
    retries: int


def attempt(
    send: Callable[[], Answer | Problem], *, retry: Retry, pacer: Pacer, tokens: int, clock: Clock
) -> CallResult:
    """Send until there is an answer, a problem that no retry mends, or no retry left.

    An answer without text is asked for once more, where the model simply ended; ``tokens`` is the estimate that
    the pacer books for every attempt. Queueing for the pacer is waiting, but uses up none of ``retry.seconds``.
    """
    began = clock.now()
    lost, retries, discarded, asked_again = 0.0, 0, NO_USAGE, False
    while True:
        queue = pacer.reserve(tokens)
        if queue > 0:
            clock.sleep(queue)
        sent = clock.now()
        waited = sent - began if retries or queue > 0 else 0.0
        result = send()
        ended = clock.now()
        used = result.usage if isinstance(result, Answer) else None
        if used is not None and used.prompt is not None:
            pacer.correct(tokens, used.prompt + (used.completion or 0))
        done = CallResult(result=result, discarded=discarded, seconds=ended - sent, waited=waited, retries=retries)
        pause = 0.0
        if isinstance(result, Problem):
            pause = _pause(result, retries, retry, clock)
        lost += ended - sent + pause
        final = is_final(result) or (asked_again and isinstance(result, Answer))
        if isinstance(result, Problem) and (result.retry_after or 0.0) > retry.seconds:
            return replace(done, result=_told_to_wait(result, retry))
        if final or retries >= retry.times or lost > retry.seconds:
            return done
        if isinstance(result, Answer):
            asked_again, discarded = True, result.usage
        if pause > 0:
            clock.sleep(pause)
        retries += 1


def _told_to_wait(problem: Problem, retry: Retry) -> Problem:
    """Return the problem of a server that asks for more patience than there is: its word holds for every call."""
    advice = f"the server asks to wait {problem.retry_after:g} s, longer than backbone.retry.seconds={retry.seconds:g}"
    return replace(problem, follows=Disposition.STOP, message=f"{problem.message}; {advice}: continue the run later")


def is_final(result: Answer | Problem) -> bool:
    """Whether another attempt would bring nothing new."""
    return result.follows is not Disposition.RETRY if isinstance(result, Problem) else not is_empty(result)


def is_empty(answer: Answer) -> bool:
    """Whether the model ended by itself without a word; asking again may help."""
    return not answer.text.strip() and not answer.refusal and answer.ended not in ("length", "content_filter")


def _pause(problem: Problem, retries: int, retry: Retry, clock: Clock) -> float:
    backoff = min(retry.longest_pause, retry.first_pause * 2.0 ** min(retries, 64)) * (1 - clock.random() / 2)
    if problem.retry_after is None:
        return backoff
    # Threads that were refused together shall not come back together.
    return problem.retry_after + backoff * clock.random() / 2
