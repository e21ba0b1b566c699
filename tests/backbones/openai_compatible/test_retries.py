"""Which failures are tried again, for how long, and how a call ends that never succeeds."""

import email.utils
import socket
import time

import pytest

from ace_bench.backbones.openai_compatible.http_backbone import Clock, Pacer, attempt
from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.settings import Rate, Retry
from ace_bench.core.errors import BackboneUnavailable, RolloutFault
from tests.backbones.openai_compatible.scripted import CUT, DROP, Reply, answer, complete, error, serving

pytestmark = pytest.mark.usefixtures("each_client")


class FakeTime:
    """A clock that only sleeping moves; chance is always the middle."""

    def __init__(self):
        self.at = 100.0
        self.slept: list[float] = []

    def clock(self) -> Clock:
        return Clock(now=lambda: self.at, sleep=self.sleep, random=lambda: 0.0)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


def run(problem: Problem, retry: Retry, *, takes: float = 0.0):
    fake = FakeTime()

    def send() -> Problem:
        fake.at += takes
        return problem

    clock = fake.clock()
    outcome = attempt(send, retry=retry, pacer=Pacer(Rate(), now=clock.now), tokens=0, clock=clock)
    return outcome, fake


BUSY = Problem(kind="server_error", message="busy")


def test_pauses_double_up_to_the_longest():
    outcome, fake = run(BUSY, Retry(times=6, seconds=1_000, first_pause=1, longest_pause=10))
    assert fake.slept == [1, 2, 4, 8, 10, 10]
    assert (outcome.retries, outcome.waited) == (6, 35)


def test_chance_shortens_a_pause_by_up_to_a_half():
    fake = FakeTime()
    clock = Clock(now=lambda: fake.at, sleep=fake.sleep, random=lambda: 1.0)
    attempt(
        lambda: BUSY, retry=Retry(times=2, first_pause=1), pacer=Pacer(Rate(), now=clock.now), tokens=0, clock=clock
    )
    assert fake.slept == [0.5, 1.0]


def test_time_lost_is_capped_before_a_pause_not_after():
    outcome, fake = run(BUSY, Retry(times=100, seconds=10, first_pause=1, longest_pause=100))
    assert fake.slept == [1, 2, 4]  # the next would be 8
    assert outcome.retries == 3
    outcome, fake = run(BUSY, Retry(times=100, seconds=10, first_pause=1, longest_pause=100), takes=4)
    assert fake.slept == [1]
    assert (outcome.seconds, outcome.waited) == (4, 5)


def test_retry_after_comes_before_the_backoff():
    slow_down = Problem(kind="rate_limited", message="slow down", retry_after=5.0)
    _, fake = run(slow_down, Retry(times=2, seconds=100, first_pause=1))
    assert fake.slept == [5.0, 5.0]


@pytest.mark.parametrize("seconds", [3600.0, float("inf")])
def test_a_server_that_asks_for_more_patience_than_there_is_gets_none(seconds):
    slow_down = Problem(kind="rate_limited", message="come back later", retry_after=seconds)
    outcome, fake = run(slow_down, Retry(times=5, seconds=600))
    assert (outcome.retries, fake.slept) == (0, [])


def test_very_many_retries_do_not_overflow():
    outcome, _ = run(BUSY, Retry(times=3_000, seconds=1e9, first_pause=0.001, longest_pause=1))
    assert outcome.retries == 3_000


@pytest.mark.parametrize("status", [408, 409, 429, 503, 529])
def test_a_passing_failure_is_tried_again_and_waiting_is_kept_apart(status):
    with serving(error(status, "not now"), error(status, "not now"), answer("fine")) as server:
        completion = complete(server.url)
    assert (completion.text, completion.retries) == ("fine", 2)
    assert completion.waited > 0


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(408, "too slow"), "timeout"),
        (error(409, "busy"), "conflict"),
        (error(429, "too many"), "rate_limited"),
        (error(500, "oops"), "server_error"),
        (Reply(status=503, body=b"<html>overloaded</html>"), "server_error"),
        (DROP, "dropped"),
        (CUT, "dropped"),
    ],
)
def test_a_failure_that_stays_is_a_fault_of_the_backbone(reply, kind):
    with serving(reply) as server:
        with pytest.raises(RolloutFault) as caught:
            complete(server.url)
        assert len(server.asked()) == 4
    assert (caught.value.fault.owner, caught.value.fault.kind) == ("backbone", kind)
    assert "after 3 retries" in caught.value.fault.message


@pytest.mark.parametrize("reply", [DROP, CUT])
def test_a_lost_connection_is_tried_again(reply):
    with serving(reply, answer("fine")) as server:
        completion = complete(server.url)
    assert (completion.text, completion.retries) == ("fine", 1)


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "7"},
        {"retry-after-ms": "7000"},
        {"Retry-After": "1", "Retry-After-Ms": "7000"},
        {"Retry-After": email.utils.formatdate(time.time() + 3600, usegmt=True)},
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers):
    # The pause asked for is longer than the client's patience, so the run is to go on later.
    reply = Reply(status=429, body=error(429, "slow down").body, headers=headers)
    with serving(reply, answer()) as server:
        with pytest.raises(BackboneUnavailable, match=r"slow down.*longer than backbone\.retry\.seconds=6\.5"):
            complete(server.url, retry=Retry(times=3, seconds=6.5, first_pause=0.001))
        assert len(server.asked()) == 1


@pytest.mark.parametrize("value", ["soon", "-3", "nan", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_retry_after_that_says_nothing_does_no_harm(value):
    reply = Reply(status=429, body=error(429, "slow down").body, headers={"Retry-After": value})
    with serving(reply, answer("fine")) as server:
        assert complete(server.url).retries == 1


def test_no_answer_in_time_is_a_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(RolloutFault) as caught:
            complete(url, timeout=0.05, retry=Retry(times=1, first_pause=0.001))
    assert caught.value.fault.kind == "timeout"
    assert "0.05 s" in caught.value.fault.message


def test_where_nobody_listens_the_run_stops():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}/v1"
    with pytest.raises(BackboneUnavailable, match=r"cannot be reached.*backbone\.base_url") as caught:
        complete(url)
    assert url in caught.value.reason


def test_an_unknown_host_stops_the_run():
    with pytest.raises(BackboneUnavailable, match="cannot be reached"):
        complete("http://no-such-host.invalid/v1", retry=Retry(times=0))


def test_a_server_that_dies_in_mid_run_stops_it():
    with serving(DROP) as server:
        url = server.url
    # The first attempt may still be dropped; that it is gone at the end is what counts.
    with pytest.raises(BackboneUnavailable):
        complete(url)
