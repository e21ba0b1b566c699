"""Generated tokens per second: which calls count, and in which time."""

import json
import random

import pytest

from ace_bench.core.types import Completion, Message, ProbeReply, Stage, Usage
from ace_bench.store.call_log import CallLog, PaidReply
from ace_bench.store.speed import Speed, SpeedMeter, times_slower


def reply(tokens=100, seconds=2.0, **more):
    return Completion(text="x", usage=Usage(prompt=9, completion=tokens), seconds=seconds, **more)


def measure(*calls):
    meter = SpeedMeter()
    for call, at in calls:
        meter.add(call, at)
    return meter.speed()


@pytest.mark.parametrize(
    ("calls", "call", "together", "in_flight"),
    [
        ([], None, None, None),
        ([(reply(), 10)], 50, 50, 1),
        ([(reply(), 10), (reply(), 10)], 50, 100, 2),  # side by side
        ([(reply(), 10), (reply(), 11)], 50, 200 / 3, 4 / 3),  # they overlap by a second
        ([(reply(), 10), (reply(), 90_000)], 50, 50, 1),  # what lies between two processes does not count
        ([(reply(), 10), (reply(seconds=1), 10), (reply(seconds=4), 10)], 50, 75, 7 / 4),  # one within another
        ([(reply(), 10), (reply(400, 4.0), 20), (reply(10), 30)], 50, 510 / 8, 1),
        ([(reply(), 10), (reply(None), 10)], 50, None, 2),  # a sum with an unknown term is unknown
        ([(reply(None), 10)], None, None, 1),
        ([(reply(), 10), (reply(replayed=True), 99)], 50, 50, 1),
        ([(reply(), 10), (reply(asked_again=1), 99)], 50, 50, 1),
        ([(reply(), 10), (reply(0), 99)], 50, 50, 1),  # embeddings
        ([(reply(), 10), (reply(0, 0.0, waited=60.0, retries=3), 99)], 50, 50, 1),  # not answered
    ],
)
def test_which_calls_count_and_in_which_time(calls, call, together, in_flight):
    known = {"call": call, "all": together, "in_flight": in_flight}
    for order in (calls, calls[::-1]):
        assert measure(*order) == Speed(**{name: value and pytest.approx(value) for name, value in known.items()})


def test_calls_in_any_order_give_the_seconds_in_which_one_was_under_way():
    rng = random.Random(0)
    calls = [(reply(7, rng.choice([1, 2, 5])), rng.randrange(5, 200)) for _ in range(60)]
    busy = {second for call, at in calls for second in range(at - call.seconds, at)}
    assert measure(*calls).all == pytest.approx(60 * 7 / len(busy))


def test_speeds_are_the_same_when_the_calls_are_read_again(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("ace_bench.store.call_log.time.time", lambda: now[0])
    log = CallLog(tmp_path / "calls.jsonl")
    for number, stage in enumerate((Stage.ADAPT, Stage.ADAPT, Stage.EVALUATE)):
        now[0] += 500 * number
        request = log.prepare("s", "generator", [Message(role="user", content=str(number))], schema=None, settings={})
        log.add(f"{request.name}/0", PaidReply(completion=reply(100 * (number + 1))), stage=stage, request=request)
    log.close()
    again = CallLog(tmp_path / "calls.jsonl")
    for stage in (None, *Stage):
        assert again.ledger.speed(stage) == log.ledger.speed(stage)
    assert again.ledger.speed().record() == {"tokens_per_s": 100, "call_tokens_per_s": 100, "calls_in_flight": 1}
    assert again.ledger.speed(Stage.EVALUATE).all == 150


@pytest.mark.parametrize(
    ("replies", "slower"),
    [
        ([], None),
        ([reply(None)], None),
        ([reply(200, 2.0)], 0.5),
        ([reply(200, 40.0)], 10),
        ([reply(1, 0.4)], 1.25),  # a short reply counts as long as the probe's: most of its time is not its tokens'
        ([reply(200, 40.0), reply(200, 2.0, replayed=True), reply(200, 2.0, asked_again=1)], 10),
    ],
)
def test_calls_are_compared_with_the_probes(replies, slower):
    assert times_slower(ProbeReply(tokens=16, seconds=0.32), replies) == (slower and pytest.approx(slower))


def test_records_are_json():
    assert json.loads(json.dumps(Speed(all=2 / 3).record()))["tokens_per_s"] == 0.667
