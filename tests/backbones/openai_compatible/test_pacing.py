"""Requests and tokens per minute, by a clock of the test's own."""

import pytest

from ace_bench.backbones.openai_compatible.http_backbone import Clock, Pacer, attempt
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.settings import Rate, Retry
from ace_bench.core.types import Usage


class Now:
    def __init__(self):
        self.at = 0.0

    def __call__(self):
        return self.at


def test_without_limits_nobody_waits():
    pacer = Pacer(Rate(), now=Now())
    assert [pacer.reserve(10_000) for _ in range(5)] == [0.0] * 5
    assert not pacer.counts_tokens


def test_requests_are_spaced_evenly():
    now = Now()
    pacer = Pacer(Rate(requests_per_minute=60), now=now)
    assert [pacer.reserve(0) for _ in range(4)] == [0, 1, 2, 3]
    now.at = 2.5
    assert pacer.reserve(0) == 1.5
    now.at = 100.0
    assert [pacer.reserve(0) for _ in range(2)] == [0, 1]


def test_a_minute_of_requests_fits_the_limit():
    pacer = Pacer(Rate(requests_per_minute=500), now=Now())
    starts = [pacer.reserve(0) for _ in range(2_000)]
    assert max(sum(1 for s in starts if at <= s < at + 60) for at in (0.0, 7.3, 60.0, 100.0)) <= 501


def test_a_large_request_delays_the_next_ones():
    pacer = Pacer(Rate(tokens_per_minute=6_000), now=Now())
    assert pacer.counts_tokens
    assert pacer.reserve(1_000) == 0
    assert pacer.reserve(100) == 10
    assert pacer.reserve(100) == 11


def test_the_tighter_limit_decides():
    pacer = Pacer(Rate(requests_per_minute=60, tokens_per_minute=60), now=Now())
    assert [pacer.reserve(5) for _ in range(3)] == [0, 5, 10]


def test_estimates_are_replaced_by_what_was_counted():
    now = Now()
    pacer = Pacer(Rate(tokens_per_minute=60), now=now)
    pacer.reserve(10)
    pacer.correct(10, 4)
    assert pacer.reserve(1) == 4
    pacer.correct(1, None)
    assert pacer.reserve(1) == 5


def test_queueing_is_waiting_and_not_lost_patience():
    now = Now()
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        now.at += seconds

    pacer = Pacer(Rate(requests_per_minute=1), now=now)
    fine = Answer(text="fine", refusal="", ended="stop", model="m", usage=Usage(), simulated=False, null=False)
    clock = Clock(now=now, sleep=sleep)
    outcomes = [
        attempt(lambda: fine, retry=Retry(times=0, seconds=0), pacer=pacer, tokens=0, clock=clock) for _ in range(2)
    ]
    assert slept == [60]
    assert [outcome.waited for outcome in outcomes] == [0, 60]
    assert [outcome.result for outcome in outcomes] == [fine, fine]


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
def test_fractions_are_fine(name):
    assert Pacer(Rate(**{name: 0.5}), now=Now()).reserve(1) == 0
