"""What a step costs as a playbook grows: CPU by part, memory and disk of runs over HTTP, by kind of retrieval."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from itertools import pairwise, product
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest import mock

from ace_bench.runners.progress import Progress
from ace_benchmarks.measuring import Grid, RunFailedError, Setting
from ace_benchmarks.scripted import instant_server, large_playbook

SIZES = (1_000, 20_000, 100_000)
RETRIEVAL = ("off", "bm25", "embeddings", "fused")
SEES = ("all", "nearest")
PARTS = {
    "select": (
        "ace_retrieval.retriever:Retriever.select",
        "ace_bench.methods.ace_variants.nearest:NearestBullets.show",
    ),
    "prompts": ("ace_bench.store.prompts:PromptSet.render",),
    "calls": ("ace_bench.backbones.openai_compatible.backbone:OpenAICompatible.complete",),
    "delta": ("ace_bench.methods.ace_parts:apply",),
    "refine": ("ace_bench.contexts.playbook.refine:Refiner.refine",),
    "records": (
        *("ace_bench.store.call_log:CallLog.prepare", "ace_bench.store.call_log:CallLog.add"),
        *("ace_bench.store.journal:Journal.add_rollout", "ace_bench.runners.experiment:Experiment.record_step"),
    ),
}
"""The functions of each part of a step; ``select`` is retrieval and the Curator's view, ``calls`` sends requests."""
_STEPS, _WARM = 16, 4
"""Steps of a run, and how many of the first are not counted: caches fill in them."""
_CLOCK = "steps.jsonl"
_HEADINGS = (
    *("retrieval", "Curator sees", "bullets", "CPU ms/step", *PARTS, "rest"),
    *("memory MB", "prompts MB/step", "folder kB/step"),
)
_SETTINGS = (
    *("task=finer", "task.source=sample", "method=ace", "mode.epochs=1", "mode.before=false", "concurrency=1"),
    *("method.max_reflection_rounds=4", "method.refiner.max_tokens=null", "method.token_budget=80000"),
    *("backbone=openai_compatible", "backbone.model=instant", "backbone.api_key_env=null", "backbone.simulated=true"),
    *("embedder=hashing", "estimate=false", f"limit={{train: {_STEPS}, test: 1}}"),
    f"+tracker.clock._target_={__name__}.StepClock",
)


class StepClock:
    """A tracker that notes the processor time of the run's process, by part, after each step of adaptation.

    The run works in one thread. A part's time is without that of the parts that it calls.
    """

    def begin(self, folder: Path, about: Mapping[str, Any], config: str) -> None:
        """Open the file, and watch the parts."""
        del about, config
        self._file = (folder / _CLOCK).open("w")
        self._spent = dict.fromkeys(PARTS, 0.0)
        self._inner = 0.0
        self._watched = ExitStack()
        for part, functions in PARTS.items():
            for name in functions:
                where, _, function = name.replace(":", ".").rpartition(".")
                owner = resolve_name(where)
                watched = self._watch(part, getattr(owner, function))
                self._watched.enter_context(mock.patch.object(owner, function, watched))

    def _watch(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def watched(*given: Any, **named: Any) -> Any:
            with self._spending(part):
                return function(*given, **named)

        return watched

    @contextmanager
    def _spending(self, part: str) -> Iterator[None]:
        outer, self._inner, started = self._inner, 0.0, time.process_time()
        try:
            yield
        finally:
            whole = time.process_time() - started
            self._spent[part] += whole - self._inner
            self._inner = outer + whole

    def update(self, progress: Progress) -> None:
        """Note a step of adaptation."""
        if progress.phase == "adapt":
            self._file.write(json.dumps({**self._spent, "all": time.process_time()}) + "\n")

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Nothing to add."""

    def close(self) -> None:
        """Close the file, and watch no longer."""
        self._watched.close()
        self._file.close()


@dataclass(frozen=True, kw_only=True)
class _Cost:
    """What a step took: seconds of CPU by part (medians), bytes of the folder and of the requests.

    ``memory`` is the run's peak in bytes.
    """

    cpu: Mapping[str, float]
    memory: float
    folder: float
    sent: float


def growth(setting: Setting) -> list[Grid]:
    """a step with 10 calls over HTTP at growing playbooks, median of 12 steps"""
    rows = []
    with instant_server() as url:
        for mode, sees, size in product(RETRIEVAL, SEES, setting.bullets or SIZES):
            setting.say(f"retrieval {mode}, the Curator sees {sees}, {size:,} bullets")
            rows.append((mode, sees, f"{size:,}", *_cells(_run(setting, url, size, mode, sees))))
    notes = (
        "CPU is that of the run's process alone; the server answers at once. Parts are medians and need not add up: "
        "select is retrieval and the Curator's nearest bullets, calls encode and send.",
    )
    rules = frozenset(range(len(setting.bullets or SIZES) * len(SEES) - 1, len(rows), len(setting.bullets or SIZES)))
    return [Grid(title=f"growth: {growth.__doc__}", headings=_HEADINGS, rows=tuple(rows), rules=rules, notes=notes)]


def _cells(cost: _Cost) -> tuple[str, ...]:
    milliseconds = [f"{1000 * cost.cpu[part]:.1f}" for part in ("all", *PARTS, "rest")]
    return (*milliseconds, f"{cost.memory / 1e6:.0f}", f"{cost.sent / 1e6:.2f}", f"{cost.folder / 1000:.1f}")


def _run(setting: Setting, url: str, size: int, mode: str, sees: str) -> _Cost:
    here = replace(setting, scratch=setting.scratch / f"{size}-{mode}-{sees}")
    here.scratch.mkdir(parents=True)
    initial = here.scratch / "initial.json"
    initial.write_text(json.dumps(large_playbook(size)))
    overrides = (
        *_SETTINGS,
        f"backbone.base_url={url}",
        f"method.initial={initial}",
        f"method.retrieval.mode={mode}",
        f"method.curator_sees={sees}",
    )
    with (here.scratch / "output").open("w") as output:
        process = subprocess.Popen(here.command(*overrides), stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    lines = (here.scratch / "output").read_text().splitlines()
    if process.returncode:
        raise RunFailedError(f"{size} bullets, retrieval {mode}: " + "\n".join(lines[-6:]))
    folder = Path(lines[-1])
    written = sum((folder / name).stat().st_size for name in ("calls.jsonl", "journal.jsonl"))
    return _Cost(
        cpu=_read_clock(folder / _CLOCK),
        memory=usage.ru_maxrss * 1024,
        folder=written / _STEPS,
        sent=_count_sent(folder) / _STEPS,
    )


def _read_clock(path: Path) -> dict[str, float]:
    """Return the median of a step for ``all``, for each part and for the ``rest``."""
    times = [json.loads(line) for line in path.read_text().splitlines()][_WARM:]
    steps = [{part: now[part] - before[part] for part in now} for before, now in pairwise(times)]
    for step in steps:
        step["rest"] = 2 * step["all"] - sum(step.values())
    return {part: statistics.median(step[part] for step in steps) for part in ("all", *PARTS, "rest")}


def _count_sent(folder: Path) -> int:
    """Return the bytes of the prompts of adaptation: the server reports them as prompt tokens."""
    return int(json.loads((folder / "metrics.json").read_text())["tokens"]["adapt"]["in"])
