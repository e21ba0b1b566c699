"""Makes the task from its configuration file, with settings changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ace_bench.core.settings import make_part
from ace_bench.tasks.qa import Qa
from tests.launching import ROOT


@cache
def usual() -> dict[str, Any]:
    """The settings of the file."""
    settings: dict[str, Any] = yaml.safe_load((ROOT / "configs" / "task" / "qa.yaml").read_text(encoding="utf-8"))
    return {name: value for name, value in settings.items() if name not in ("defaults", "_target_")}


def made(data: Any, **settings: Any) -> Qa:
    """The task on ``data``, with the columns ``question`` and ``answer`` unless the settings say otherwise.

    Of a group of settings only those change that are named.
    """
    given = {"question": "question", "answer": "answer", **settings}
    given["data"] = data if isinstance(data, dict) else str(data)
    groups = {name: {**usual()[name], **value} for name, value in given.items() if isinstance(usual()[name], dict)}
    task = make_part(Qa, {**usual(), **given, **groups}, "task", sample_allowed=False)
    assert isinstance(task, Qa)
    return task


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def ids(task: Qa) -> dict[str, list[str]]:
    """The ids of all samples by split, without the split's name."""
    return {split: [one.id.rpartition(f"-{split}-")[2] for one in task.samples(split)] for split in task.splits}
