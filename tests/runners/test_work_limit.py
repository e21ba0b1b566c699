"""The limit on rollouts that work at one time, which those that wait do not use."""

import threading
from concurrent.futures import ThreadPoolExecutor

from ace_bench.runners.gateway import WorkLimit


def test_rollouts_that_wait_let_others_work_and_no_more_than_may():
    limit, lock, seen = WorkLimit(2), threading.Lock(), {"working": 0, "most": 0}
    busy, together = [], threading.Barrier(9, action=lambda: busy.append(limit.is_busy()), timeout=60)

    def count(name, by):
        with lock:
            seen[name] += by
            seen["most"] = max(seen["most"], seen["working"])

    def rollout(_):
        count("working", 1)
        busy.append(limit.is_busy())
        count("working", -1)
        with limit.paused():
            together.wait()
        count("working", 1)
        count("working", -1)

    with limit.limited(rollout, items=18, width=9) as work, ThreadPoolExecutor(9) as pool:
        list(pool.map(work, range(18)))
    assert seen["most"] <= 2
    assert (busy, limit.is_busy()) == ([*[True] * 9, False] * 2, False)
