"""Pauses between attempts, and requests and tokens per minute, by a clock that only sleeping moves."""

import pytest

from ace_bench.backbones.openai_compatible.http_backbone import Clock, Pacer, attempt
from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.settings import Rate, Retry
from ace_bench.core.types import Usage

BUSY = Problem(kind="server_error", message="busy")
FINE = Answer(text="fine", refusal="", ended="stop", model="m", usage=Usage(), simulated=False, null=False)


class FakeTime:
    def __init__(self, chance=0.0):
        self.at = 100.0
        self.slept: list[float] = []
        self.clock = Clock(now=self, sleep=self.sleep, random=lambda: chance)

    def __call__(self):
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


def run(result, retry: Retry, *, takes: float = 0.0, chance: float = 0.0, now=None, pacer=None):
    now = now or FakeTime(chance)

    def send():
        now.at += takes
        return result

    return attempt(send, retry=retry, pacer=pacer or Pacer(Rate(), now=now), tokens=0, clock=now.clock), now


SLOW_DOWN = Problem(kind="rate_limited", message="slow down", retry_after=5.0)


@pytest.mark.parametrize(
    ("problem", "retry", "takes", "chance", "slept"),
    [
        (BUSY, Retry(times=6, seconds=1_000, first_pause=1, longest_pause=10), 0, 0, [1, 2, 4, 8, 10, 10]),
        (BUSY, Retry(times=2, first_pause=1), 0, 1.0, [0.5, 1.0]),
        (BUSY, Retry(times=100, seconds=10, first_pause=1, longest_pause=100), 0, 0, [1, 2, 4]),
        (BUSY, Retry(times=100, seconds=10, first_pause=1, longest_pause=100), 4, 0, [1]),
        (SLOW_DOWN, Retry(times=2, seconds=100, first_pause=1), 0, 0, [5.0, 5.0]),
        (SLOW_DOWN, Retry(times=2, seconds=100, first_pause=1), 0, 1.0, [5.25, 5.5]),
    ],
    ids=["doubled", "shortened by up to a half", "capped before a pause", "lost in attempts", "as asked", "spread"],
)
def test_pauses_between_attempts(problem, retry, takes, chance, slept):
    outcome, now = run(problem, retry, takes=takes, chance=chance)
    assert now.slept == slept
    waited = sum(slept) + takes * len(slept)
    assert (outcome.retries, outcome.seconds, outcome.waited) == (len(slept), takes, waited)


def test_very_many_retries_do_not_overflow():
    assert run(BUSY, Retry(times=3_000, seconds=1e9, first_pause=0.001, longest_pause=1))[0].retries == 3_000


@pytest.mark.parametrize(("seconds", "slept"), [(600.0, [600.0]), (600.1, []), (float("inf"), [])])
def test_a_server_that_asks_for_more_patience_than_there_is_gets_none(seconds, slept):
    slow_down = Problem(kind="rate_limited", message="come back later", retry_after=seconds)
    outcome, now = run(slow_down, Retry(times=5, seconds=600))
    assert (outcome.retries, now.slept) == (len(slept), slept)


@pytest.mark.parametrize(
    ("rate", "tokens", "waits"),
    [
        (Rate(), [10_000] * 3, [0, 0, 0]),
        (Rate(requests_per_minute=60), [0] * 4, [0, 1, 2, 3]),
        (Rate(tokens_per_minute=6_000), [1_000, 100, 100], [0, 10, 11]),
        (Rate(requests_per_minute=60, tokens_per_minute=60), [5] * 3, [0, 5, 10]),
    ],
    ids=["no limit", "requests", "tokens", "the tighter limit"],
)
def test_calls_are_spaced_evenly_so_that_a_minute_of_them_fits_the_limits(rate, tokens, waits):
    pacer = Pacer(rate, now=FakeTime())
    assert [pacer.reserve(number) for number in tokens] == waits
    assert pacer.counts_tokens == (rate.tokens_per_minute is not None)


def test_time_that_passes_is_no_credit_and_estimates_are_replaced_by_what_was_counted():
    now = FakeTime()
    pacer = Pacer(Rate(tokens_per_minute=60), now=now)
    pacer.reserve(10)
    pacer.correct(10, 4)
    assert [pacer.reserve(1) for _ in range(2)] == [4, 5]
    now.at += 4.5
    assert pacer.reserve(1) == 1.5
    now.at += 100
    assert [pacer.reserve(1) for _ in range(2)] == [0, 1]


def test_queueing_is_waiting_and_not_lost_patience():
    now = FakeTime()
    pacer = Pacer(Rate(requests_per_minute=0.5), now=now)
    outcomes = [run(FINE, Retry(times=0, seconds=0), now=now, pacer=pacer)[0] for _ in range(2)]
    assert now.slept == [120]
    assert [outcome.waited for outcome in outcomes] == [0, 120]
    assert [outcome.result for outcome in outcomes] == [FINE, FINE]
