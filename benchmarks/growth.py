"""What a step costs as a playbook grows: CPU by part, memory and disk of runs over HTTP, by kind of retrieval."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import wraps
from itertools import pairwise, product
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest import mock

from ace_bench.runners.progress import Progress
from benchmarks.measuring import Grid, Setting, metrics_of, run_command
from benchmarks.scripted import instant_server, large_playbook

SIZES = (1_000, 20_000, 100_000)
RETRIEVAL = ("off", "bm25", "embeddings", "fused")
SEES = {"all": "all", "nearest": "40"}
"""What the Curator sees, with the value of ``method.curator_sees``."""
PARTS = {
    "select": (
        "ace_bench.contrib.retrieval.retriever:Retriever.select",
        "ace_bench.ace.nearest:NearestBullets.show",
    ),
    "prompts": ("ace_bench.store.prompts:PromptSet.render",),
    "calls": ("ace_bench.backbones.openai_compatible.backbone:OpenAICompatible.complete",),
    "delta": ("ace_bench.ace.editing:apply",),
    "refine": ("ace_bench.playbook.refine:Refiner.refine",),
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
    *("method.max_reflection_rounds=4", "method.refiner.max_tokens=null"),
    *("backbone=openai_compatible", "backbone.model=instant", "backbone.api_key_env=null", "backbone.simulated=true"),
    *("embedder=hashing", "estimate=false", f"limit={{train: {_STEPS}, test: 1}}"),
    f"+tracker.clock._target_={__name__}.StepClock",
)


class StepClock:
    """A tracker that notes the processor time of the run's process, by part, after each step of adaptation.

    The run works in one thread. A part's time excludes the parts that it calls.
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
            outer, self._inner, started = self._inner, 0.0, time.process_time()
            try:
                return function(*given, **named)
            finally:
                elapsed = time.process_time() - started
                self._spent[part] += elapsed - self._inner
                self._inner = outer + elapsed

        return watched

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


def growth(setting: Setting) -> Grid:
    """a step with 10 calls over HTTP at growing playbooks, median of 12 steps"""
    rows, sizes = [], setting.bullets or SIZES
    with instant_server() as url:
        for mode, visible, size in product(RETRIEVAL, SEES, sizes):
            setting.say(f"retrieval {mode}, the Curator sees {visible}, {size:,} bullets")
            rows.append((mode, visible, f"{size:,}", *_measure(setting, url, size, mode, visible)))
    notes = (
        "CPU is the run's process alone; the server answers at once. Parts are medians and need not add up: "
        "select is retrieval and the Curator's nearest bullets, calls encode and send.",
    )
    of_one_retrieval = len(SEES) * len(sizes)
    rules = frozenset(range(of_one_retrieval - 1, len(rows), of_one_retrieval))
    return Grid(title=f"growth: {growth.__doc__}", headings=_HEADINGS, rows=tuple(rows), rules=rules, notes=notes)


def _measure(setting: Setting, url: str, size: int, mode: str, visible: str) -> tuple[str, ...]:
    """Run 16 steps; return the cells of what one takes. The server reports the bytes of prompts as their tokens."""
    sized = replace(setting, scratch=setting.scratch / f"{size}-{mode}-{visible}")
    sized.scratch.mkdir(parents=True)
    initial = sized.scratch / "initial.json"
    initial.write_text(json.dumps(large_playbook(size)))
    chosen = (f"method.initial={initial}", f"method.retrieval.mode={mode}", f"method.curator_sees={SEES[visible]}")
    ran = run_command(sized.words(*_SETTINGS, f"backbone.base_url={url}", *chosen))
    folder = Path(ran.lines[-1])
    milliseconds = [f"{1000 * seconds:.1f}" for seconds in _read_clock(folder / _CLOCK).values()]
    written = sum((folder / name).stat().st_size for name in ("calls.jsonl", "journal.jsonl"))
    sent = metrics_of(folder)["tokens"]["adapt"]["in"]
    per_step = (f"{sent / _STEPS / 1e6:.2f}", f"{written / _STEPS / 1000:.1f}")
    return (*milliseconds, f"{ran.memory / 1e6:.0f}", *per_step)


def _read_clock(path: Path) -> dict[str, float]:
    """Return the median of a step for ``all``, for each part and for the ``rest``."""
    times = [json.loads(line) for line in path.read_text().splitlines()][_WARM:]
    steps = [{part: now[part] - before[part] for part in now} for before, now in pairwise(times)]
    for step in steps:
        step["rest"] = 2 * step["all"] - sum(step.values())
    return {part: statistics.median(step[part] for step in steps) for part in ("all", *PARTS, "rest")}
