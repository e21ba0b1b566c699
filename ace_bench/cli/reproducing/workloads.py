"""What a run will take, from its composed configuration: the length of its chain of calls, and memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ace_bench.cli.reproducing.estimating import APPWORLD, LEARNING_NOTHING, SIZES, limited, option_of, sample_counts
from ace_bench.core.backbones import GENERATOR
from ace_bench.runners.workers import mostly_waits

_RUN_MIB, _SHARING_MIB, _ENGINE_MIB, _EPISODE_MIB = 110, 20, 350, 100
"""Measured: 85 to 106 MiB for a run on questions in a process of its own, 5 in one that it shares. AppWorld takes 390
MiB with one episode at a time and 720 MiB with eight, on the mini-world; twice that is reserved for an episode, because
real worlds are larger."""
_STEPS = 10
"""Turns of an AppWorld episode, about (paper, table 14)."""
_IN_ONE_PIECE = ("gepa", "mipro")
_SHARE = 0.9
"""Share of the free memory that runs may take."""
_MEMORY, _LIMIT, _USED = (
    Path("/proc/meminfo"),
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory.current"),
)


def chain_of(settings: Mapping[str, Any]) -> float:
    """Return about how many calls of a run must follow one another, to compare runs with each other."""
    task, method, mode = (option_of(settings[group]["_target_"]) for group in ("task", "method", "mode"))
    sizes = limited(SIZES.get(task, {"train": 1000, "val": 500, "test": 1000}), settings["limit"])
    tested = max(size for split, size in sizes.items() if split.startswith("test"))
    turns = _STEPS if task == APPWORLD else 1
    waves = float(turns * tested / settings["concurrency"])
    if mode == "evaluate" or method in LEARNING_NOTHING:
        return waves
    if method in _IN_ONE_PIECE:
        return waves + turns * sizes["train"]
    at_once: int = settings["mode"]["batch_size"]
    learnt: int = tested if mode == "online" else sizes["train"] * settings["mode"]["epochs"]
    return waves + learnt / at_once * _calls_of_step(settings, turns)


def _calls_of_step(settings: Mapping[str, Any], turns: int) -> float:
    counts = sample_counts(settings)
    return sum((turns if role == GENERATOR else 1) * (span.low + span.high) / 2 for role, span in counts.items())


def memory_of(settings: Mapping[str, Any]) -> int:
    """Return about how many MiB a run takes with its processes; AppWorld's engine counts with its episodes."""
    run = _SHARING_MIB if mostly_waits(settings) else _RUN_MIB
    if option_of(settings["task"]["_target_"]) != APPWORLD:
        return run
    return run + _ENGINE_MIB + _EPISODE_MIB * int(settings["concurrency"])


def free_memory() -> int | None:
    """Return how many MiB the runs of this command may take together; ``None`` if this system does not tell."""
    try:
        lines = dict(line.split(":", 1) for line in _MEMORY.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) / 1024
    except (OSError, KeyError, ValueError):
        return None
    with suppress(OSError, ValueError):  # there may be no control group, or one without a limit
        free = min(free, (int(_LIMIT.read_text()) - int(_USED.read_text())) / 1024**2)
    return int(_SHARE * free)
