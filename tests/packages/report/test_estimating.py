"""What runs take: the length of their chains of calls, and memory."""

import re

import pytest

from ace_bench.report.planned import PlannedRun
from ace_report.reproducing import estimating
from ace_report.reproducing.estimating import chain_of, free_memory, memory_of
from tests.packages.report.conftest import compose


@pytest.mark.parametrize(
    ("overrides", "chain"),
    [
        ("task=finer method=base", 441 / 8),
        ("task=finer method=icl limit=40 concurrency=4", 40 / 4),
        ("task=finer method=ace_empty", 441 / 8),
        ("task=finer method=gepa", 441 / 8 + 1000),
        ("task=appworld method=mipro", 10 * 417 / 8 + 10 * 90),
        ("task=finer method=dc mode=online", 441 / 8 + 441 * 2),
        ("task=finer method=ace", 441 / 8 + 5 * 1000 * (3 + 12) / 2),
        ("task=finer method=ace mode.epochs=1 mode.batch_size=8", 441 / 8 + 1000 / 8 * (3 + 12) / 2),
        ("task=finer method=ace mode=evaluate", 441 / 8),
        ("task=appworld method=ace limit={train: 10}", 10 * 417 / 8 + 5 * 10 * (10 * (1 + 5) + 1 + 5 + 2) / 2),
        ("task=qa method=base", 1000 / 8),
    ],
)
def test_a_chain_is_what_follows_one_after_another(overrides, chain):
    words = re.split(r" (?=[\w.]+=)", overrides)
    planned = PlannedRun(overrides=(*words, *["mode=offline"] * ("mode=" not in overrides)))
    assert chain_of(planned, compose(planned.overrides)) == chain


@pytest.mark.parametrize(
    ("overrides", "mib"),
    [
        (("task=finer", "concurrency=8"), 110),
        (("task=finer", "backbone=openai_compatible"), 20),
        (("task=appworld", "concurrency=2"), 110 + 350 + 2 * 100),
    ],
)
def test_memory_counts_the_process_and_the_engines_episodes(overrides, mib):
    assert memory_of(PlannedRun(overrides=overrides), compose(overrides)) == mib


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
