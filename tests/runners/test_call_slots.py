"""Slots for calls: never more in flight than allowed, over processes, threads and deaths."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.core.errors import Interrupted, Stopped
from ace_bench.runners.call_slots import ADDRESS, SharedSlots, SlotServer, slots_for_runs, slots_of_run


def hold(slots, priority=0.0, *, until=None, into=None, name=None):
    with slots.acquire(priority, lambda: None):
        if into is not None:
            into.append(name)
        if until is not None:
            until.wait(10)


def wait_for(condition):
    until = time.monotonic() + 10
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    assert condition()


def test_no_more_calls_than_slots_are_in_flight_in_this_process_and_others():
    inside, most, lock = [0], [0], threading.Lock()

    def call(number):
        with (server.slots if number % 2 else shared).acquire(0.0, lambda: None):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.001)
            with lock:
                inside[0] -= 1

    with SlotServer(3) as server, ThreadPoolExecutor(20) as pool:
        shared = SharedSlots(server.address)
        list(pool.map(call, range(200)))
        assert most[0] == server.slots.peak == 3


@pytest.mark.parametrize("here", [True, False])
def test_the_longest_chain_gets_the_next_slot(here):
    order = []
    release = threading.Event()
    with SlotServer(1) as server:
        slots = server.slots if here else SharedSlots(server.address)
        first = threading.Thread(target=hold, args=[slots], kwargs={"until": release, "into": order, "name": "first"})
        first.start()
        wait_for(lambda: order == ["first"])
        others = []
        for chain in (1.0, 30.0, 0.0, float("inf"), 5.0):
            others.append(threading.Thread(target=hold, args=[slots, chain], kwargs={"into": order, "name": chain}))
            others[-1].start()
        wait_for(lambda: len(server.slots._waiting) == 5)
        release.set()
        for thread in (first, *others):
            thread.join()
    assert order == ["first", float("inf"), 30.0, 5.0, 1.0, 0.0]


def _hold_and_sleep(address, holding):
    with SharedSlots(address).acquire(0.0, lambda: None):
        holding.set()
        time.sleep(60)


def test_a_killed_process_gives_its_slots_back():
    context = multiprocessing.get_context("spawn")
    with SlotServer(1) as server:
        holding = context.Event()
        process = context.Process(target=_hold_and_sleep, args=[server.address, holding])
        process.start()
        assert holding.wait(30)
        os.kill(process.pid, signal.SIGKILL)
        hold(SharedSlots(server.address))
        process.join()


@pytest.mark.parametrize("here", [True, False])
def test_a_call_that_waits_can_be_stopped(here):
    def stop():
        raise Interrupted("enough")

    release = threading.Event()
    with SlotServer(1) as server:
        slots = server.slots if here else SharedSlots(server.address)
        holder = threading.Thread(target=hold, args=[slots], kwargs={"until": release})
        holder.start()
        wait_for(lambda: server.slots.peak == 1)
        with pytest.raises(Interrupted), slots.acquire(0.0, stop):
            pass
        release.set()
        holder.join()
        hold(slots)  # the one that gave up holds nothing


def test_runs_stop_when_the_command_that_shares_the_slots_has_ended():
    with SlotServer(1) as server:
        address = server.address
    with pytest.raises(Stopped, match="has ended"):
        hold(SharedSlots(address))


def test_a_run_takes_the_slots_of_its_command_and_else_its_own(monkeypatch):
    monkeypatch.delenv(ADDRESS, raising=False)
    with slots_of_run(None) as slots:
        assert slots is None
    with slots_of_run(2) as slots:
        hold(slots)
    with slots_for_runs(2):
        address = os.environ[ADDRESS]
        with slots_of_run(2) as slots:
            assert slots is SlotServer.here[address]
        monkeypatch.delitem(SlotServer.here, address)  # as in another process
        with slots_of_run(2) as slots:
            assert slots._address == address
        SlotServer.here[address] = slots
    assert ADDRESS not in os.environ
