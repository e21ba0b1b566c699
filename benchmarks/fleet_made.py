"""Makes runs of ``ace-bench reproduce`` on the embedded reader behind a server, and measures the whole command."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import ACE_BENCH, run_command, serving

_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
_READER = ("backbone.model=embedded", "backbone.simulated=true", "backbone.api_key_env=null", "task.source=sample")


class Measured(NamedTuple):
    """What a command took: ``cpu`` seconds of all its processes, at most ``mib`` of memory and ``processes`` at once.

    ``mib`` is 0 if the system does not say.
    """

    seconds: float
    cpu: float
    mib: float
    processes: int


def make_fleet(overrides: Sequence[str], results: Path, *, slots: int, call_seconds: float) -> Measured:
    """Make the runs that ``overrides`` ask ``reproduce`` for; raises ``RunFailedError``."""
    results.mkdir(parents=True, exist_ok=True)
    usage = [(0.0, 0)]

    def look(process: int) -> None:
        family = _family(process)
        usage.append((sum(map(_memory, family)), len(family)))

    with serving(*ACE_BENCH, "serve", "--port=0", f"--latency-ms={1000 * call_seconds:g}") as address:
        served = ("backbone=openai_compatible", f"backbone.base_url={address}", *_READER, "embedder=hashing")
        command = ["reproduce", *overrides, *served, f"max_calls_in_flight={slots}", f"results={results}"]
        began = time.monotonic()
        ran = run_command(command, look=look, log=results / "fleet.log")
        seconds = time.monotonic() - began
    mib, processes = map(max, zip(*usage, strict=True))
    return Measured(seconds, ran.cpu, mib, int(processes))


def _family(root: int) -> list[int]:
    """Return a process and those that it or they started."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # others come and go
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    pids = [root]
    for pid in pids:
        pids += children.get(pid, [])
    return pids


def _memory(process: int) -> float:
    """Return a process's own memory and its part of what it shares, in MiB."""
    with suppress(OSError):  # it has ended meanwhile
        if match := _PSS.search(Path(f"/proc/{process}/smaps_rollup").read_text()):
            return int(match[1]) / 1024
    return 0.0
