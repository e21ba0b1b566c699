"""Pauses between attempts, and requests and tokens per minute, by a clock that only sleeping moves."""

from math import inf

from ace_bench.backbones.openai_compatible.http_backbone import Clock, Pacer, send_with_retries
from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.settings import Rate, Retry
from ace_bench.core.types import Usage
from tests.outcomes import as_texts

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

    return send_with_retries(send, retry=retry, pacer=pacer or Pacer(Rate(), now=now), tokens=0, clock=now.clock), now


def asking(seconds):
    return Problem(kind="rate_limited", message="slow down", retry_after=seconds)


LONG = Retry(times=100, seconds=10, first_pause=1, longest_pause=100)
TWICE = Retry(times=2, seconds=100, first_pause=1)
PAUSES = {
    "doubled": (BUSY, Retry(times=6, seconds=1_000, first_pause=1, longest_pause=10), {}),
    "shortened by up to a half": (BUSY, Retry(times=2, first_pause=1), {"chance": 1.0}),
    "capped before a pause": (BUSY, LONG, {}),
    "lost in attempts": (BUSY, LONG, {"takes": 4}),
    "as asked": (asking(5.0), TWICE, {}),
    "spread": (asking(5.0), TWICE, {"chance": 1.0}),
    **{f"asked for {seconds} s": (asking(seconds), Retry(times=5, seconds=600), {}) for seconds in (600, 600.1, inf)},
}
RATES = {
    "no limit": (Rate(), [10_000] * 3),
    "requests": (Rate(requests_per_minute=60), [0] * 4),
    "tokens": (Rate(tokens_per_minute=6_000), [1_000, 100, 100]),
    "the tighter limit": (Rate(requests_per_minute=60, tokens_per_minute=60), [5] * 3),
}


def test_pauses_between_attempts_and_the_spacing_of_calls(snapshot):
    found = []
    for name, (problem, retry, about) in PAUSES.items():
        outcome, now = run(problem, retry, **about)
        found.append((name, f"slept {now.slept}, last {outcome.seconds} s, waited {outcome.waited} s"))
    for name, (rate, tokens) in RATES.items():
        pacer = Pacer(rate, now=FakeTime())
        found.append((name, f"waits {[*map(pacer.reserve, tokens)]}, counts tokens: {pacer.counts_tokens}"))
    assert as_texts(found) == snapshot
    assert run(BUSY, Retry(times=3_000, seconds=1e9, first_pause=0.001, longest_pause=1))[0].retries == 3_000


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
