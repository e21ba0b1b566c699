"""What a step costs as a playbook grows: CPU, memory and disk of runs over HTTP, without and with retrieval."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ace_bench.runners.progress import Progress
from ace_benchmarks.measuring import Grid, RunFailedError, Setting
from ace_benchmarks.scripted import instant_server, large_playbook

SIZES = (2_000, 20_000, 100_000)
RETRIEVAL = ("off", "bm25", "embeddings", "fused")
_STEPS, _WARM = 16, 4
"""Steps of a run, and how many of the first are not counted: caches fill in them."""
_CLOCK = "steps.csv"
_HEADINGS = ("retrieval", "bullets", "prompts MB/step", "CPU ms/step", "CPU ms/MB", "memory MiB", "folder kB/step")
_SETTINGS = (
    *("task=finer", "task.source=sample", "method=ace", "mode.epochs=1", "mode.before=false", "concurrency=1"),
    *("method.max_reflection_rounds=4", "method.refiner.max_tokens=null", "method.token_budget=80000"),
    *("backbone=openai_compatible", "backbone.model=instant", "backbone.api_key_env=null", "backbone.simulated=true"),
    *("embedder=hashing", "estimate=false", f"limit={{train: {_STEPS}, test: 1}}"),
    f"+tracker.clock._target_={__name__}.StepClock",
)


class StepClock:
    """A tracker that notes the processor time of the run's process after each step, in a file of the run folder."""

    def begin(self, folder: Path, about: Mapping[str, Any], config: str) -> None:
        """Open the file."""
        del about, config
        self._file = (folder / _CLOCK).open("w")

    def update(self, progress: Progress) -> None:
        """Note a step of adaptation."""
        if progress.phase == "adapt":
            self._file.write(f"{time.process_time()}\n")

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Nothing to add."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(frozen=True, kw_only=True)
class _Cost:
    """What a step took: seconds of CPU (the median), bytes of the folder and of the requests; and the run's peak
    memory in MiB.
    """

    cpu: float
    memory: float
    folder: float
    sent: float


def growth(setting: Setting) -> list[Grid]:
    """a step with 10 calls over HTTP at growing playbooks, median of 12 steps"""
    rows = []
    with instant_server() as url:
        for mode in RETRIEVAL:
            before: _Cost | None = None
            for size in setting.bullets or SIZES:
                setting.say(f"retrieval {mode}, {size:,} bullets")
                cost = _run(setting, url, size, mode)
                rows.append(_row(size, mode, cost, before))
                before = cost
    notes = (
        "CPU is that of the run's process alone; the server answers at once. CPU a MB is the slope from the row above.",
    )
    return [Grid(title=f"growth: {growth.__doc__}", headings=_HEADINGS, rows=tuple(rows), notes=notes)]


def _row(size: int, mode: str, cost: _Cost, before: _Cost | None) -> tuple[str, ...]:
    per_mb = (
        "" if before is None or mode != "off" else f"{1e9 * (cost.cpu - before.cpu) / (cost.sent - before.sent):.1f}"
    )
    parts = (
        f"{cost.sent / 1e6:.2f}",
        f"{1000 * cost.cpu:.0f}",
        per_mb,
        f"{cost.memory:.0f}",
        f"{cost.folder / 1000:.1f}",
    )
    return (mode, f"{size:,}", *parts)


def _run(setting: Setting, url: str, size: int, mode: str) -> _Cost:
    here = replace(setting, scratch=setting.scratch / f"{size}-{mode}")
    here.scratch.mkdir(parents=True)
    initial = here.scratch / "initial.json"
    initial.write_text(json.dumps(large_playbook(size)))
    overrides = (
        *_SETTINGS,
        f"backbone.base_url={url}",
        f"method.initial={initial}",
        f"method.retrieval.mode={mode}",
    )
    with (here.scratch / "output").open("w") as output:
        process = subprocess.Popen(here.command(*overrides), stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    lines = (here.scratch / "output").read_text().splitlines()
    if process.returncode:
        raise RunFailedError(f"{size} bullets, retrieval {mode}: " + "\n".join(lines[-6:]))
    folder = Path(lines[-1])
    times = [float(line) for line in (folder / _CLOCK).read_text().split()][_WARM:]
    written = sum((folder / name).stat().st_size for name in ("calls.jsonl", "journal.jsonl"))
    return _Cost(
        cpu=statistics.median(later - earlier for earlier, later in pairwise(times)),
        memory=usage.ru_maxrss / 1024,
        folder=written / _STEPS,
        sent=_count_sent(folder) / _STEPS,
    )


def _count_sent(folder: Path) -> int:
    """Return the bytes of the prompts of adaptation: the server reports them as prompt tokens."""
    return int(json.loads((folder / "metrics.json").read_text())["tokens"]["adapt"]["in"])
