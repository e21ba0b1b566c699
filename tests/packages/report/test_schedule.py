"""The order in which `reproduce` starts runs: the longest chains first, after what they need, within memory."""

import threading

import pytest

from ace_bench.core.resources import config_folders
from ace_bench.report.planned import Need, PlannedRun
from ace_bench.runners.planning import Composer
from ace_bench.runners.schedule import Schedule
from ace_report.reproducing.estimating import chain_of, memory_of
from ace_report.reproducing.request import Job


def planned(name, *needs):
    return PlannedRun(overrides=(name,), needs=tuple(Need(setting="mode.context", run=run) for run in needs))


def job(run):
    return Job(planned=run, extra=(), seed=0)


class Requested:
    """Jobs with their chains and memory; ``words`` answers as `Reproduction` does."""

    def __init__(self, chains, *, memory=None, room=None, refused=(), same=()):
        self.jobs = [job(run) for run in chains]
        self.chains = {job(run): chain for run, chain in chains.items()}
        self.refused, self.same = refused, same
        self.asked = []
        self.schedule = Schedule(
            jobs=self.jobs,
            words=self.words,
            needs=lambda one: [job(need.run) for need in one.planned.needs],
            chain=self.chains.__getitem__,
            memory=lambda one: (memory or {}).get(one.planned, 1),
            room=room,
        )
        self.stopped = threading.Event()

    def waiting(self):
        """Take from another thread; what it gets is appended to the list that is returned beside it."""
        found = []
        thread = threading.Thread(target=lambda: found.append(self.take()[0]), daemon=True)
        thread.start()
        thread.join(0.2)
        return thread, found

    def words(self, jobs):
        found = {}
        self.asked += (one.planned.overrides[0] for one in jobs)
        for one in jobs:
            name = one.planned.overrides[0]
            found[one] = None if name in self.refused else ("same",) if name in self.same else (name,)
        return found

    def take(self):
        batch = self.schedule.take(self.stopped)
        return batch and [one.planned.overrides[0] for one in batch.jobs], batch


SHORT, LONG, LAST = planned("short"), planned("long"), planned("last")


def test_the_longest_chain_starts_first():
    asked = Requested({SHORT: 1, LONG: 10, LAST: 5})
    assert [asked.take()[0] for _ in range(3)] == [["long"], ["last"], ["short"]]
    assert asked.waiting()[1] == [None], "nothing can become ready: who asks need not wait for the others"


def test_a_run_starts_as_soon_as_what_it_needs_has_ended_and_counts_for_its_urgency():
    after = planned("after", SHORT)
    asked = Requested({SHORT: 1, LONG: 10, after: 20})
    names, first = asked.take()
    assert names == ["short"], "its chain with that of the run that needs it is the longest"
    assert asked.take()[0] == ["long"]
    thread, found = asked.waiting()
    assert thread.is_alive(), "nothing is ready, and what is running may make it so"
    asked.schedule.end(first)
    thread.join(10)
    assert found == [["after"]], "although the long one is still running"


def test_a_run_whose_need_was_not_made_is_asked_for_and_left_out():
    after = planned("after", SHORT)
    asked = Requested({SHORT: 1, after: 20}, refused=("short", "after"))
    assert asked.asked == ["short", "after"], "so that somebody says why"
    assert asked.take() == (None, None)


def test_runs_start_while_their_memory_fits_and_one_always_may():
    asked = Requested({LONG: 10, LAST: 5, SHORT: 1}, memory={LONG: 100, LAST: 60, SHORT: 10}, room=70)
    names, first = asked.take()
    assert names == ["long"]
    thread, found = asked.waiting()
    assert thread.is_alive(), "nothing fits beside it"
    asked.schedule.end(first)
    thread.join(10)
    assert found == [["last"]]
    assert asked.waiting()[1] == [["short"]], "both fill the room"


def test_jobs_that_are_the_same_run_are_made_once():
    asked = Requested({SHORT: 1, LONG: 10, LAST: 5}, same=("short", "long"))
    assert sorted(asked.take()[0]) == ["long", "short"]
    assert asked.take()[0] == ["last"]


def test_a_run_is_not_made_again_while_it_is_being_made():
    after = planned("after", LONG)
    asked = Requested({SHORT: 30, LONG: 10, after: 1}, same=("short", "after"))
    first, second = asked.take()[1], asked.take()[1]
    asked.schedule.end(second)
    thread, found = asked.waiting()
    assert thread.is_alive()
    asked.schedule.end(first)
    thread.join(10)
    assert found == [["after"]]


def test_nothing_starts_after_a_stop():
    asked = Requested({SHORT: 1})
    asked.stopped.set()
    assert asked.take() == (None, None)


@pytest.fixture(scope="module")
def compose():
    return Composer(config_folders())


def test_chains_are_ordered_by_what_follows_one_after_another(compose):
    def chain(*overrides):
        return chain_of(compose(overrides))

    base, icl = chain("task=finer", "method=base"), chain("task=finer", "method=icl")
    ace, short = chain("task=finer", "method=ace"), chain("task=finer", "method=ace", "mode.epochs=1")
    assert base == icl < chain("task=finer", "method=dc", "mode=online") < short < ace
    assert chain("task=finer", "method=ace", "mode.batch_size=8") < ace
    assert chain("task=finer", "method=ace", "limit=10") < ace
    assert chain("task=appworld", "method=ace", "limit=10") > chain("task=finer", "method=ace", "limit=10")


def test_memory_counts_the_engines_episodes(compose):
    question = memory_of(compose(["task=finer", "method=ace"]))
    two, eight = (memory_of(compose(["task=appworld", "method=ace", f"concurrency={n}"])) for n in (2, 8))
    assert question < two < eight
    assert memory_of(compose(["task=finer", "backbone=openai_compatible"])) < question, "it shares a process"
