"""Adaptation really learns, labels really matter, and wrong lessons really hurt (embedded backbone, sample data)."""

import random
from contextlib import contextmanager

import pytest

from tests.launching import launch

RUN = ("task.source=sample", "mode.epochs=1")
NOISE = 4
"""Points that shuffled labels may gain by chance: two of a sample set's 60 answers."""


def gain(ran):
    return ran.metrics["headline"]["after"] - ran.metrics["headline"]["before"]


class Shuffled:
    """A task whose training feedback tells the gold of another training sample; evaluation stays true."""

    def __init__(self, task):
        self._task = task
        samples = list(task.samples("train"))
        others = random.Random(0).sample(samples, len(samples))
        self._other = {one.id: other for one, other in zip(samples, others, strict=True)}

    def __getattr__(self, name):
        return getattr(self._task, name)

    @contextmanager
    def open(self, sample):
        with self._task.open(self._other.get(sample.id, sample)) as session:
            yield session


@pytest.mark.slow
@pytest.mark.parametrize("task", ["ddxplus", "finer", "formula"])
def test_gold_labels_teach_and_shuffled_ones_do_not(task, tmp_path):
    assert gain(launch(tmp_path / "true", f"task={task}", *RUN)) >= 10
    assert gain(launch(tmp_path / "shuffled", f"task={task}", *RUN, task=Shuffled)) <= NOISE


@pytest.mark.slow
@pytest.mark.parametrize(
    "memory",
    [
        ("task=ddxplus", "method=awm", "labels=correctness"),
        ("task=formula", "method=awm_offline"),
        ("task=ddxplus", "method=reasoning_bank", "method.top_k=5", "labels=correctness"),
        ("task=finer", "method=reasoning_bank", "method.reference=true"),
    ],
    ids=" ".join,
)
def test_workflows_and_memory_items_help_with_later_samples(memory, tmp_path):
    assert gain(launch(tmp_path, *memory, *RUN, "embedder=hashing")) >= 10


@pytest.mark.slow
def test_without_labels_there_is_next_to_nothing_to_learn(tmp_path):
    with_gold = gain(launch(tmp_path / "gold", "task=finer", *RUN))
    assert gain(launch(tmp_path / "none", "task=finer", *RUN, "labels=none")) < with_gold - 10
