"""Makes the task from its configuration file, with settings changed."""

from __future__ import annotations

from typing import Any

from ace_bench.tasks.catalog import make_task
from ace_bench.tasks.qa import Qa


def made(data: Any, **settings: Any) -> Qa:
    """The task on ``data``, with the columns ``question`` and ``answer`` unless the settings say otherwise."""
    given = {"question": "question", "answer": "answer", **settings}
    task = make_task("qa", data=data if isinstance(data, dict) else str(data), sample_allowed=False, **given)
    assert isinstance(task, Qa)
    return task


def ids(task: Qa) -> dict[str, list[str]]:
    """The ids of all samples by split, without the split's name."""
    return {split: [one.id.rpartition(f"-{split}-")[2] for one in task.samples(split)] for split in task.splits}
