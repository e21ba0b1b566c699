"""What a step costs as a playbook grows: CPU, memory and disk of runs over HTTP, without and with retrieval."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ace_bench.cli.benchmarks.measuring import Grid, RunFailedError, Setting
from ace_bench.cli.benchmarks.scripted import SERVER, large_playbook

SIZES = (2_000, 20_000, 100_000)
RETRIEVAL = ("off", "bm25", "embeddings", "fused")
_STEPS = (4, 12)
"""The cost of a step is the difference between runs of so many steps: start and end of a run are in both."""
_HEADINGS = ("bullets", "retrieval", "prompts MB/step", "CPU ms/step", "CPU ms/MB", "memory MiB", "folder kB/step")
_SETTINGS = (
    *("task=finer", "task.source=sample", "method=ace", "mode.epochs=1", "mode.before=false", "concurrency=1"),
    *("method.max_reflection_rounds=4", "method.refiner.max_tokens=null", "method.token_budget=80000"),
    *("backbone=openai_compatible", "backbone.model=instant", "backbone.api_key_env=null", "backbone.simulated=true"),
    *("embedder=hashing", "estimate=false"),
)


@dataclass(frozen=True, kw_only=True)
class _Cost:
    """What a run took: seconds of CPU, peak memory in MiB, bytes of its folder, and bytes of its requests."""

    cpu: float
    memory: float
    folder: int
    sent: int


def growth(setting: Setting) -> list[Grid]:
    """a step with 10 calls over HTTP at growing playbooks, by differences of whole runs"""
    rows = []
    with _server() as url:
        for size in setting.bullets or SIZES:
            for mode in RETRIEVAL:
                setting.say(f"{size:,} bullets, retrieval {mode}")
                few, many = (_run(setting, url, size, mode, steps) for steps in _STEPS)
                rows.append(_row(size, mode, few, many, _STEPS[1] - _STEPS[0]))
    notes = ("CPU is that of the run's process alone; the server answers at once.",)
    return [Grid(title=f"growth: {growth.__doc__}", headings=_HEADINGS, rows=tuple(rows), notes=notes)]


def _row(size: int, mode: str, few: _Cost, many: _Cost, steps: int) -> tuple[str, ...]:
    cpu, sent = (many.cpu - few.cpu) / steps, (many.sent - few.sent) / steps / 1e6
    folder = (many.folder - few.folder) / steps / 1e3
    per_mb = f"{1000 * cpu / sent:.1f}" if mode == "off" else ""
    return (f"{size:,}", mode, f"{sent:.2f}", f"{1000 * cpu:.0f}", per_mb, f"{many.memory:.0f}", f"{folder:.1f}")


def _run(setting: Setting, url: str, size: int, mode: str, steps: int) -> _Cost:
    here = replace(setting, scratch=setting.scratch / f"{size}-{mode}-{steps}")
    here.scratch.mkdir(parents=True)
    initial = here.scratch / "initial.json"
    initial.write_text(json.dumps(large_playbook(size)))
    overrides = (
        *_SETTINGS,
        f"backbone.base_url={url}",
        f"limit={{train: {steps}, test: 1}}",
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
    written = sum((folder / name).stat().st_size for name in ("calls.jsonl", "journal.jsonl"))
    return _Cost(cpu=usage.ru_utime + usage.ru_stime, memory=usage.ru_maxrss / 1024, folder=written, sent=_sent(folder))


def _sent(folder: Path) -> int:
    """Return the bytes of all prompts: the server reports them as prompt tokens."""
    tokens = json.loads((folder / "metrics.json").read_text())["tokens"]["total"]
    return int(tokens["in"])


@contextmanager
def _server() -> Iterator[str]:
    command: Sequence[str] = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.kill()
