"""Pauses between attempts, and requests and tokens per minute, by a clock that only sleeping moves."""

from math import inf

from ace_bench.backbones.openai_compatible.http_backbone import Clock, send_with_retries
from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.settings import Retry
from tests.outcomes import as_texts

BUSY = Problem(kind="server_error", message="busy")


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


def run(result, retry: Retry, *, takes: float = 0.0, chance: float = 0.0):
    now = FakeTime(chance)

    def send():
        now.at += takes
        return result

    return send_with_retries(send, retry=retry, clock=now.clock), now


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


def test_pauses_between_attempts(snapshot):
    found = []
    for name, (problem, retry, about) in PAUSES.items():
        outcome, now = run(problem, retry, **about)
        found.append((name, f"slept {now.slept}, last {outcome.seconds} s, waited {outcome.waited} s"))
    assert as_texts(found) == snapshot
    assert run(BUSY, Retry(times=3_000, seconds=1e9, first_pause=0.001, longest_pause=1))[0].retries == 3_000
