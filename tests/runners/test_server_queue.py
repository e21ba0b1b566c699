"""The queue of a server is kept here: calls wait for slots, in our order, once the server says that requests wait."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from math import inf
from statistics import median

import pytest

from ace_bench.backbones.openai_compatible.settings import Sampling
from ace_bench.backbones.vllm.backbone import Vllm
from ace_bench.backbones.vllm.load import read_load
from ace_bench.core.types import Message, ServerLoad, Stage
from ace_bench.runners.call_slots import LimitRule, Slots, queue_kept_here
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.store.call_log import CallLog
from benchmarks.writing_server import digest_of_prompt, writing_server
from tests.backbones.openai_compatible.scripted import SETTINGS

VLLM = """# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_running{engine="0",model_name="a/b"} 126.0
vllm:num_requests_running{engine="1",model_name="a/b"} 1e+01
vllm:num_requests_waiting{engine="0",model_name="a/b"} 31.0
vllm:num_requests_waiting{engine="1",model_name="a/b"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 7.0
"""
PAGES = {
    VLLM: (136, 31),
    "vllm:num_requests_running 3\nvllm:num_requests_waiting 0\n": (3, 0),
    'sglang:num_running_reqs{model_name="m"} 4.0\nsglang:num_queue_reqs{model_name="m"} 2.0\n': (4, 2),
    "llamacpp:requests_processing 4\nllamacpp:requests_deferred 12\n": (4, 12),
    "vllm:num_requests_running 3\n": None,
    '{"error": "not found"}': None,
    "vllm:num_requests_running nan\nvllm:num_requests_waiting nan\n": None,
    "": None,
}


@pytest.mark.parametrize("page", PAGES)
def test_the_load_is_read_from_the_page_of_each_server(page):
    assert read_load(page) == (PAGES[page] and ServerLoad(running=PAGES[page][0], waiting=PAGES[page][1]))


@pytest.mark.parametrize(
    ("looks", "limits"),
    [
        ([(160, 0, 128, 32)] * 2, [inf, 132]),  # as many as the server runs, and a few
        ([(160, 0, 5, 155), (160, 0, 128, 32)], [inf, 132]),  # a burst of prompts had just arrived
        ([(160, 0, 128, 32), (160, 0, 160, 0), (160, 0, 128, 32)], [inf, inf, inf]),  # it was a moment
        ([(132, 28, 128, 4)] * 3, [inf] * 3),  # what waits in the server is what it goes on with
        ([(80, 0, 128, 32)] * 2, [inf, 68]),  # another program has the other half
        ([(8, 0, 4, 4)] * 2, [inf, 5]),
        ([(2, 0, 1, 1)] * 2, [inf, inf]),
        ([(160, 0, 128, 32), (160, 0, 128, 32), None], [inf, 132, inf]),  # it no longer reports its load
    ],
)
def test_the_limit_follows_what_the_server_runs(looks, limits):
    rule, now, found = LimitRule(), inf, []
    for look in looks:
        held, waiting, running, waiting_there = look or (0, 0, 0, 0)
        load = look and ServerLoad(running=running, waiting=waiting_there)
        now = rule.limit(load, held=held, waiting=waiting, now=now)
        found.append(now)
    assert found == limits


def test_the_limit_follows_a_server_whose_room_changes_and_never_leaves_it_idle():
    rule, limit, chains = LimitRule(), inf, 200
    for room in (128, 24, 128, 300):
        idle, queued = [], []
        for _ in range(40):
            held = min(chains, limit)
            load = ServerLoad(running=min(held, room), waiting=max(0, held - room))
            limit = rule.limit(load, held=held, waiting=chains - held, now=limit)
            idle.append(1 - load.running / min(room, chains))
            queued.append(load.waiting)
        assert max(idle[15:]) == 0, "after seconds it has all the work that it can do"
        assert max(queued[15:]) <= max(2, room // 8)


def gateway_to(url, folder, slots):
    backbone = Vllm(url=url.removesuffix("/v1"), launch=False, server=None, **{**SETTINGS, "sampling": Sampling()})
    calls = CallLog(folder / "calls.jsonl")
    return backbone, CallGateway(calls=calls, budget=Budget(), stop=Stop(), wall=lambda: 0.0, slots=slots)


def ask(gateway, backbone, number):
    caller = Caller(stage=Stage.ADAPT, role="generator", session=f"chain {number}")
    return BoundLm(gateway=gateway, backbone=backbone, caller=caller)([Message(role="user", content=f"p {number}")])


def test_calls_wait_here_when_the_server_is_full_and_it_writes_as_fast(tmp_path, monkeypatch):
    monkeypatch.setattr(Slots, "LOOK_S", 0.05)
    (tmp_path / "replies").write_text(json.dumps({digest_of_prompt([f"p {n}"]): ("x", 20) for n in range(600)}))
    loads, seconds = {}, {}
    for kept in (True, False):
        folder = tmp_path / str(kept)
        folder.mkdir()
        with writing_server(0.002, tmp_path / "replies", runs=16) as url:
            backbone, gateway = gateway_to(url, folder, slots := Slots(None))
            began = time.monotonic()
            with ThreadPoolExecutor(40) as pool, queue_kept_here(slots, [backbone] if kept else []):
                done = pool.map(lambda number: ask(gateway, backbone, number), range(600))  # noqa: B023
                time.sleep(0.8)  # until the limit has settled
                loads[kept] = [backbone.load().waiting for _ in range(20) if not time.sleep(0.01)]
                replies = list(done)
            seconds[kept] = time.monotonic() - began
            gateway.calls.close()
            backbone.close()
        assert (sum(reply.waited for reply in replies) > 1) is kept, "what waits here says so"
    assert median(loads[True]) <= 6
    assert median(loads[False]) >= 20
    assert seconds[True] < 1.5 * seconds[False]


def test_what_a_call_waits_in_our_own_queue_is_recorded(tmp_path):
    with writing_server(0.025) as url:  # 8 tokens: 0.2 s
        backbone, gateway = gateway_to(url, tmp_path, Slots(1))
        with ThreadPoolExecutor(2) as pool, closing(gateway.calls), closing(backbone):
            waited = sorted(reply.waited for reply in pool.map(lambda n: ask(gateway, backbone, n), range(2)))
        assert gateway.calls.ledger.total.waited == sum(waited)
    assert waited[0] == 0
    assert waited[1] == pytest.approx(0.2, abs=0.1)
    recorded = [json.loads(line)["waited"] for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert sorted(recorded) == waited


FULL = ServerLoad(running=10, waiting=30)


class Reporting:
    def __init__(self, server, load=FULL):
        self.server, self.asked, self._load = server, 0, load

    def load(self):
        self.asked += 1
        return self._load


@pytest.mark.parametrize(
    ("backbones", "limited"),
    [
        ([Reporting("a")], True),
        ([Reporting("a"), Reporting("a")], True),
        ([Reporting("a"), Reporting("b")], False),  # one cannot speak for the other
        ([Reporting("a"), object()], False),
        ([Reporting("a", load=None)], False),
    ],
)
def test_only_the_load_of_the_one_server_of_a_run_counts(backbones, limited, monkeypatch):
    monkeypatch.setattr(Slots, "LOOK_S", 0.01)
    slots, release, inside = Slots(None), threading.Event(), threading.Semaphore(0)

    def hold(_):
        with slots.acquire(0.0):
            inside.release()
            release.wait(10)

    with ThreadPoolExecutor(40) as pool:
        held = pool.map(hold, range(40))
        for _ in range(40):
            inside.acquire()
        with queue_kept_here(slots, backbones):
            time.sleep(0.2)
        release.set()
        list(held)
    assert (slots.limit == 11) is limited
    asked = sum(getattr(one, "asked", 0) for one in backbones)
    silent = getattr(backbones[0], "_load", None) is None
    assert asked == 1 if silent else (asked > 1) is limited, "a server that reports nothing is asked again much later"
