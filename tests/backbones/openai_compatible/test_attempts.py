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


def test_pauses_double_up_to_the_longest_and_chance_shortens_them_by_up_to_a_half():
    outcome, now = run(BUSY, Retry(times=6, seconds=1_000, first_pause=1, longest_pause=10))
    assert now.slept == [1, 2, 4, 8, 10, 10]
    assert (outcome.retries, outcome.waited) == (6, 35)
    assert run(BUSY, Retry(times=2, first_pause=1), chance=1.0)[1].slept == [0.5, 1.0]
    outcome, _ = run(BUSY, Retry(times=3_000, seconds=1e9, first_pause=0.001, longest_pause=1))
    assert outcome.retries == 3_000, "very many retries do not overflow"


def test_time_lost_is_capped_before_a_pause_not_after():
    outcome, now = run(BUSY, Retry(times=100, seconds=10, first_pause=1, longest_pause=100))
    assert now.slept == [1, 2, 4]  # the next would be 8
    assert outcome.retries == 3
    outcome, now = run(BUSY, Retry(times=100, seconds=10, first_pause=1, longest_pause=100), takes=4)
    assert now.slept == [1]
    assert (outcome.seconds, outcome.waited) == (4, 5)


def test_retry_after_comes_before_the_backoff_which_spreads_it():
    slow_down = Problem(kind="rate_limited", message="slow down", retry_after=5.0)
    retry = Retry(times=2, seconds=100, first_pause=1)
    assert run(slow_down, retry)[1].slept == [5.0, 5.0]
    assert run(slow_down, retry, chance=1.0)[1].slept == [5.25, 5.5]


@pytest.mark.parametrize(("seconds", "slept"), [(600.0, [600.0]), (600.1, []), (float("inf"), [])])
def test_a_server_that_asks_for_more_patience_than_there_is_gets_none(seconds, slept):
    slow_down = Problem(kind="rate_limited", message="come back later", retry_after=seconds)
    outcome, now = run(slow_down, Retry(times=5, seconds=600))
    assert (outcome.retries, now.slept) == (len(slept), slept)


def test_without_limits_nobody_waits():
    pacer = Pacer(Rate(), now=FakeTime())
    assert [pacer.reserve(10_000) for _ in range(5)] == [0.0] * 5
    assert not pacer.counts_tokens


def test_requests_are_spaced_evenly_so_that_a_minute_of_them_fits_the_limit():
    now = FakeTime()
    pacer = Pacer(Rate(requests_per_minute=60), now=now)
    assert [pacer.reserve(0) for _ in range(4)] == [0, 1, 2, 3]
    now.at += 2.5
    assert pacer.reserve(0) == 1.5
    now.at += 100.0
    assert [pacer.reserve(0) for _ in range(2)] == [0, 1]


def test_a_large_request_delays_the_next_ones_and_the_tighter_limit_decides():
    pacer = Pacer(Rate(tokens_per_minute=6_000), now=FakeTime())
    assert pacer.counts_tokens
    assert [pacer.reserve(tokens) for tokens in (1_000, 100, 100)] == [0, 10, 11]
    both = Pacer(Rate(requests_per_minute=60, tokens_per_minute=60), now=FakeTime())
    assert [both.reserve(5) for _ in range(3)] == [0, 5, 10]


def test_estimates_are_replaced_by_what_was_counted():
    pacer = Pacer(Rate(tokens_per_minute=60), now=FakeTime())
    pacer.reserve(10)
    pacer.correct(10, 4)
    assert [pacer.reserve(1) for _ in range(2)] == [4, 5]


def test_queueing_is_waiting_and_not_lost_patience():
    now = FakeTime()
    pacer = Pacer(Rate(requests_per_minute=0.5), now=now)
    outcomes = [run(FINE, Retry(times=0, seconds=0), now=now, pacer=pacer)[0] for _ in range(2)]
    assert now.slept == [120]
    assert [outcome.waited for outcome in outcomes] == [0, 120]
    assert [outcome.result for outcome in outcomes] == [FINE, FINE]
