"""Makes the task from its configuration file, with settings changed."""

from __future__ import annotations

from typing import Any

from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.qa import Qa

GROUPS = {
    "split_ratio": {"train": 0.6, "val": 0.15, "test": 0.25},
    "ignore": {"case": True, "whitespace": True, "punctuation": False, "articles": False, "accents": False},
    "tolerance": {"absolute": 0.0, "relative": 1e-6},
}


def made(data: Any, **settings: Any) -> Qa:
    """The task on ``data``, with the columns ``question`` and ``answer`` unless the settings say otherwise."""
    given = {"question": "question", "answer": "answer", **settings}
    groups = {name: {**GROUPS[name], **given.pop(name)} for name in GROUPS if name in given}
    task = make_task("qa", data=data if isinstance(data, dict) else str(data), sample_allowed=False, **given, **groups)
    assert isinstance(task, Qa)
    return task


def ids(task: Qa) -> dict[str, list[str]]:
    """The ids of all samples by split, without the split's name."""
    return {split: [one.id.rpartition(f"-{split}-")[2] for one in task.samples(split)] for split in task.splits}
