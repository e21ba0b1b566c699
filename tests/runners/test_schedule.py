"""The order in which many runs start: the longest chains first, after what they need, within memory."""

import threading

from ace_bench.runners.schedule import Schedule


class Requested:
    """Jobs by name with their chains; ``overrides`` answers as `Reproduction` does."""

    def __init__(self, chains, *, needs=None, memory=None, room=None, refused=(), same=()):
        self.refused, self.same, self.asked, self.stopped = refused, same, [], threading.Event()
        self.schedule = Schedule(
            jobs=[*chains],
            overrides=self.overrides,
            needs=lambda job: (needs or {}).get(job, ()),
            chain=chains.__getitem__,
            memory=lambda job: (memory or {}).get(job, 1),
            room=room,
        )

    def overrides(self, jobs):
        self.asked += (found := [*jobs])
        return {job: None if job in self.refused else ("same",) if job in self.same else (job,) for job in found}

    def take(self):
        batch = self.schedule.take(self.stopped)
        return batch and [*batch.jobs], batch

    def waiting(self):
        """Take from another thread; what it gets is appended to the list that is returned beside it."""
        found = []
        thread = threading.Thread(target=lambda: found.append(self.take()[0]), daemon=True)
        thread.start()
        thread.join(0.2)
        return thread, found


def test_the_longest_chain_starts_first():
    asked = Requested({"short": 1, "long": 10, "last": 5})
    assert [asked.take()[0] for _ in range(3)] == [["long"], ["last"], ["short"]]
    assert asked.waiting()[1] == [None], "nothing can become ready: who asks need not wait for the others"
    asked.stopped.set()
    assert Requested({"short": 1}).schedule.take(asked.stopped) is None, "nothing starts after a stop"


def test_a_run_starts_as_soon_as_what_it_needs_has_ended_and_counts_for_its_urgency():
    asked = Requested({"short": 1, "long": 10, "after": 20}, needs={"after": ["short"]})
    names, first = asked.take()
    assert names == ["short"], "its chain with that of the run that needs it is the longest"
    assert asked.take()[0] == ["long"]
    thread, found = asked.waiting()
    assert thread.is_alive(), "nothing is ready, and what is running may make it so"
    asked.schedule.end(first)
    thread.join(10)
    assert found == [["after"]], "although the long one is still running"


def test_a_run_whose_need_was_not_made_is_asked_for_and_left_out():
    asked = Requested({"short": 1, "after": 20}, needs={"after": ["short"]}, refused=("short", "after"))
    assert asked.asked == ["short", "after"], "so that somebody says why"
    assert asked.take() == (None, None)


def test_runs_start_while_their_memory_fits_and_one_always_may():
    asked = Requested({"long": 10, "last": 5, "short": 1}, memory={"long": 100, "last": 60, "short": 10}, room=70)
    names, first = asked.take()
    assert names == ["long"]
    thread, found = asked.waiting()
    assert thread.is_alive(), "nothing fits beside it"
    asked.schedule.end(first)
    thread.join(10)
    assert found == [["last"]]
    assert asked.waiting()[1] == [["short"]], "both fill the room"


def test_jobs_that_are_the_same_run_are_made_once_and_never_side_by_side():
    asked = Requested({"short": 1, "long": 10, "last": 5}, same=("short", "long"))
    assert sorted(asked.take()[0]) == ["long", "short"]
    assert asked.take()[0] == ["last"]
    asked = Requested({"short": 30, "long": 10, "after": 1}, needs={"after": ["long"]}, same=("short", "after"))
    first, second = asked.take()[1], asked.take()[1]
    asked.schedule.end(second)
    thread, found = asked.waiting()
    assert thread.is_alive()
    asked.schedule.end(first)
    thread.join(10)
    assert found == [["after"]]
