"""Slots for calls: never more in flight than allowed, over processes, threads and deaths."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Event, Semaphore

import pytest

from ace_bench.core.errors import Interrupted, Stopped
from ace_bench.runners.call_slots import ADDRESS, SharedSlots, SlotServer, slots_for_runs, slots_of_run


def hold(slots, priority=0.0, *, until=None, into=None):
    with slots.acquire(priority, lambda: None):
        if into is not None:
            into.append(priority)
        if until is not None:
            until.wait(10)


def wait_for(condition):
    until = time.monotonic() + 10
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    assert condition()


def test_no_more_calls_than_slots_are_in_flight_in_this_process_and_others():
    with SlotServer(3) as server, ThreadPoolExecutor(20) as pool:
        shared = SharedSlots(server.address)
        inside, most = Semaphore(3), []

        def call(number):
            with (server.slots if number % 2 else shared).acquire(0.0, lambda: None):
                most.append(inside.acquire(blocking=False))
                time.sleep(0.001)
                inside.release()

        list(pool.map(call, range(200)))
        assert (len(most), all(most), server.slots.peak) == (200, True, 3)


@pytest.mark.parametrize("here", [True, False])
def test_the_longest_chain_gets_the_next_slot(here):
    order, release = [], Event()
    with SlotServer(1) as server, ThreadPoolExecutor(6) as pool:
        slots = server.slots if here else SharedSlots(server.address)
        done = [pool.submit(hold, slots, until=release)]
        wait_for(lambda: server.slots.peak == 1)
        done += [pool.submit(hold, slots, chain, into=order) for chain in (1.0, 30.0, 0.0, float("inf"), 5.0)]
        wait_for(lambda: len(server.slots._waiting) == 5)
        release.set()
        for one in done:
            one.result()
    assert order == [float("inf"), 30.0, 5.0, 1.0, 0.0]
    with pytest.raises(Stopped, match="has ended"):
        hold(SharedSlots(server.address))


@pytest.mark.parametrize("here", [True, False])
def test_a_call_that_waits_can_be_stopped(here):
    release = Event()

    def stop():
        raise Interrupted("enough")

    with SlotServer(1) as server, ThreadPoolExecutor(1) as pool:
        slots = server.slots if here else SharedSlots(server.address)
        done = pool.submit(hold, slots, until=release)
        wait_for(lambda: server.slots.peak == 1)
        with pytest.raises(Interrupted), slots.acquire(0.0, stop):
            pass
        release.set()
        done.result()
        hold(slots)  # the one that gave up holds nothing


HOLDER = """
import sys, time
from ace_bench.runners.call_slots import SharedSlots
with SharedSlots(sys.argv[1]).acquire(0.0, lambda: None):
    print("holding", flush=True)
    time.sleep(60)
"""


def test_a_killed_process_gives_its_slots_back():
    with SlotServer(1) as server:
        command = [sys.executable, "-c", HOLDER, server.address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout.readline() == "holding\n"
            holder.kill()
        hold(SharedSlots(server.address))


def test_a_run_takes_the_slots_of_its_command_and_else_its_own(monkeypatch):
    monkeypatch.delenv(ADDRESS, raising=False)
    with slots_of_run(None) as slots:
        assert slots.limit == inf
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
