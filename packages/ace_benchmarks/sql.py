"""The speed of executing predictions: BIRD-SQL grades answers by running them."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

from ace_benchmarks.measuring import Figure, Setting

PREDICTIONS = 500
THREADS = 8


def sql(setting: Setting) -> list[Figure]:
    """seconds for 500 executed predictions (gold queries with a comment added), eight rollouts at a time"""
    from ace_bench.tasks.catalog import make_task

    data = {"data_dir": str(setting.data / "bird_sql")} if setting.data else {"source": "sample"}
    setting.scratch.mkdir(parents=True)
    with mock.patch.dict(os.environ, {"ACE_BENCH_CACHE": str(setting.scratch)}):
        task: Any = make_task("bird_sql", **data, sample_allowed=True)
        samples = [sample for split in task.splits for sample in task.samples(split)]
        samples = (samples * (1 + PREDICTIONS // len(samples)))[:PREDICTIONS]

        def grade(sample: Any) -> Any:
            with task.open(sample) as session:
                return session.grade(f"{session.grade(None).gold}\n-- prediction")

        figures = []
        with ThreadPoolExecutor(THREADS) as pool:
            for name in ("gold queries run, too", "gold results kept"):
                started = time.perf_counter()
                grades = list(pool.map(grade, samples))
                measured = f"{time.perf_counter() - started:.2f} s"
                figures.append(Figure(name=name, measured=measured, aim="< 20 s"))
        task.close()
    scores = task.score(grades)
    right = ", ".join(f"{name} {scores[name]:.1f}" for name in ("execution", "execution_corrected"))
    return [*figures, Figure(name="gold queries as predictions, percent right", measured=right, aim="corrected 100.0")]
