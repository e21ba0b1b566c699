"""Slots for calls: never more in flight than allowed, and the longest chain of calls goes first."""

import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Event, Semaphore

import pytest

from ace_bench.core.errors import Interrupted
from ace_bench.runners.call_slots import Slots


def hold(slots, priority=0.0, *, until=None, into=None):
    with slots.acquire(priority):
        if into is not None:
            into.append(priority)
        if until is not None:
            until.wait(10)


def wait_for(condition):
    until = time.monotonic() + 10
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    assert condition()


def test_no_more_calls_than_slots_are_in_flight():
    slots = Slots(3)
    inside, most = Semaphore(3), []

    def call(_):
        with slots.acquire(0.0):
            most.append(inside.acquire(blocking=False))
            time.sleep(0.001)
            inside.release()

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(call, range(200)))
    assert (len(most), all(most), slots.peak) == (200, True, 3)
    assert Slots(None).limit == inf


def test_the_longest_chain_gets_the_next_slot():
    order, release, slots = [], Event(), Slots(1)
    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(hold, slots, until=release)]
        wait_for(lambda: slots.peak == 1)
        done += [pool.submit(hold, slots, chain, into=order) for chain in (1.0, 30.0, 0.0, inf, 5.0)]
        wait_for(lambda: len(slots._waiting) == 5)
        release.set()
        for one in done:
            one.result()
    assert order == [inf, 30.0, 5.0, 1.0, 0.0]


def test_a_call_that_waits_can_be_stopped():
    release, slots = Event(), Slots(1)

    def stop():
        raise Interrupted("enough")

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(hold, slots, until=release)
        wait_for(lambda: slots.peak == 1)
        with pytest.raises(Interrupted), slots.acquire(0.0, stop):
            pass
        release.set()
        done.result()
        hold(slots)  # the one that gave up holds nothing
