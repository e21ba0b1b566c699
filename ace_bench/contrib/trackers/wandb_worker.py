"""The process that sends messages to Weights & Biases; it reads them as JSON lines (see ``wandb``).

The first message opens the tracker's run, ``log`` adds a point, ``finish`` holds the final figures. If the stream ends
without ``finish``, the tracker's run ends as failed and resumes when the run is continued.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import wandb

from ace_bench.contrib.trackers.points import flatten

_PRIVATE: dict[str, Any] = {
    "disable_git": True,
    "save_code": False,
    "host": "undisclosed",
    "x_disable_machine_info": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
}
"""Switches off wandb's own reports about the machine, the code and the environment."""

_TABLES = {
    "scores": ("headline.", "splits."),
    "costs": ("calls.", "tokens.", "usd.", "rollouts.", "timing.", "faults."),
}
"""The final tables, with the metrics that they show."""


def main() -> int:
    """Track one run until the stream ends."""
    messages = map(json.loads, sys.stdin)
    run = _open(next(messages))
    finished = False
    for message in messages:
        if "log" in message:
            run.log(message["log"])
        else:
            _finish(run, message["finish"], Path(message["context"]))
            finished = True
    run.finish(exit_code=0 if finished else 1)
    return 0


def _open(first: Mapping[str, Any]) -> wandb.Run:
    run = wandb.init(
        **first,
        resume="allow",
        settings=wandb.Settings(**_PRIVATE, console="off", silent=True),
    )
    run.define_metric("*", step_metric="spent/calls")
    return run


def _finish(run: wandb.Run, metrics: Mapping[str, Any], contexts: Path) -> None:
    numbers = dict(flatten(metrics))
    run.summary.update(numbers)
    for title, groups in _TABLES.items():
        table = wandb.Table(columns=["figure", "value"])
        for name, value in numbers.items():
            if name.startswith(groups):
                table.add_data(name, float(value))
        run.log({title: table, "spent/calls": sum(sum(roles.values()) for roles in metrics["calls"].values())})
    artifact = wandb.Artifact(f"context-{run.id}", type=metrics["context"]["kind"], metadata=dict(metrics["context"]))
    for file in sorted(contexts.glob("tested.*")):
        artifact.add_file(str(file))
    run.log_artifact(artifact)


if __name__ == "__main__":
    sys.exit(main())
