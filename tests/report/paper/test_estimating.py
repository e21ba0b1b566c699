"""What runs take: the length of their chains of calls, and memory."""

import re
from types import SimpleNamespace

import pytest

from ace_bench.cli.reproducing import estimating
from ace_bench.cli.reproducing.cost_table import time_of
from ace_bench.cli.reproducing.estimating import RunCost, chain_of, free_memory, memory_of
from ace_bench.cli.reproducing.request import Job
from ace_bench.report.planned import PlannedRun
from ace_bench.store.call_log import Account
from tests.report.paper.conftest import compose

RUNS = {
    "task=finer method=base mode=offline": (55.125, 20),
    "task=finer method=icl limit=40 concurrency=4 mode=offline": (10, 20),
    "task=finer method=ace_empty mode=offline": (55.125, 20),
    "task=finer method=gepa mode=offline": (1055.125, 20),
    "task=appworld method=mipro mode=offline": (1421.25, 1170),
    "task=finer method=dc mode=online": (937.125, 20),
    "task=finer method=ace mode=offline": (37555.125, 20),
    "task=finer method=ace mode.epochs=1 mode.batch_size=8 mode=offline": (992.625, 20),
    "task=finer method=ace mode=evaluate": (55.125, 20),
    "task=appworld method=ace limit={train: 10} mode=offline": (2221.25, 1170),
    "task=qa method=base mode=offline": (125, 20),
    "task=finer concurrency=8 method=base mode=offline": (55.125, 20),
    "task=finer backbone=openai_compatible method=base mode=offline": (55.125, 20),
    "task=appworld concurrency=2 method=base mode=offline": (2085, 570),
}
"""By the overrides of a run: its calls one after another, and its memory in MiB."""


@pytest.mark.parametrize("line", RUNS)
def test_a_chain_is_what_follows_one_after_another_and_memory_is_of_the_process_and_the_engines_episodes(line):
    planned = PlannedRun(overrides=tuple(re.split(r" (?=[\w.]+=)", line)))
    settings = compose(planned.overrides)
    assert (chain_of(planned, settings), memory_of(planned, settings)) == RUNS[line]


def test_runs_share_what_the_machine_or_the_control_group_leaves(tmp_path, monkeypatch):
    files = {"_MEMORY": "MemTotal: 9 kB\nMemAvailable:  2048000 kB\n", "_LIMIT": "max\n", "_USED": f"{2**30}\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(estimating, name, tmp_path / name)
    assert free_memory() == 1800
    (tmp_path / "_LIMIT").write_text(f"{2 * 2**30}\n")
    assert free_memory() == int(0.9 * 1024)
    (tmp_path / "_MEMORY").unlink()
    assert free_memory() is None, "this system does not tell"


@pytest.mark.parametrize(
    ("earlier", "said"),
    [
        ([("small", "ace", 20.0), ("small", "base", 5.0), ("small", "ace", None)], "About 5m00s one run after another"),
        ([("small", "base", 5.0)], "About 20m00s one run after another"),
        ([("large", "ace", 20.0)], ""),
    ],
)
def test_the_time_is_known_by_earlier_runs_of_the_model_best_of_the_same_method(earlier, said):
    runs = [
        SimpleNamespace(model=model, method=method, finished=True, simulated=False, value=lambda _, rate=rate: rate)
        for model, method, rate in earlier
    ]
    job = Job(planned=PlannedRun(overrides=("task=finer", "method=ace", "mode=offline")), extra=(), seed=0)
    cost = RunCost(typical=Account(), high=Account(), chain=6000.0)
    assert time_of({job: cost}, {job: "small"}, runs).partition(",")[0] == said
