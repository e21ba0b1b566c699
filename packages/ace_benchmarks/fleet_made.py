"""Makes runs of ``ace-bench reproduce`` on the embedded reader behind a server, and measures the whole command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ace_benchmarks.measuring import RunFailedError

_LOOK_S = 1.0
_SHOWN_LINES = 6
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
_READER = ("backbone.model=embedded", "backbone.simulated=true", "backbone.api_key_env=null", "task.source=sample")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a command took: ``cpu`` seconds of all its processes, at most ``mib`` of memory and ``processes`` at once.

    ``mib`` is 0 where the system does not tell.
    """

    seconds: float
    cpu: float
    mib: float
    processes: int


def make_fleet(words: Sequence[str], results: Path, *, slots: int, call_seconds: float) -> Measured:
    """Make the runs that ``words`` ask ``reproduce`` for; raises ``RunFailedError``."""
    results.mkdir(parents=True, exist_ok=True)
    with _reader(call_seconds) as address, (results / "fleet.log").open("w+") as log:
        command = [sys.executable, "-m", "ace_bench", "reproduce", *words, "backbone=openai_compatible"]
        command += [f"backbone.base_url={address}", *_READER, "embedder=hashing", f"max_calls_in_flight={slots}"]
        began = time.monotonic()
        process = subprocess.Popen([*command, f"results={results}"], stdout=log, stderr=log)
        mib, processes = 0.0, 0
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            found = _family(process.pid)
            mib, processes = max(mib, sum(map(_memory, found))), max(processes, len(found))
            time.sleep(_LOOK_S)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        if process.returncode:
            log.seek(0)
            last = "\n".join(log.read().splitlines()[-_SHOWN_LINES:])
            raise RunFailedError(f"reproduce {' '.join(words)} ended with status {process.returncode}:\n{last}")
    used = ended[2]
    return Measured(seconds=seconds, cpu=used.ru_utime + used.ru_stime, mib=mib, processes=processes)


@contextmanager
def _reader(latency_s: float) -> Iterator[str]:
    """Serve the embedded reader from a process of its own; yields its address."""
    command = [sys.executable, "-m", "ace_bench", "serve", "--port", "0", "--latency-ms", f"{1000 * latency_s:g}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1]
        finally:
            server.terminate()


def _family(root: int) -> list[int]:
    """Return a process and those that it or they started."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # others come and go
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found = [root]
    for one in found:
        found += children.get(one, [])
    return found


def _memory(process: int) -> float:
    """Return a process's own memory and its part of what it shares, in MiB."""
    with suppress(OSError):
        if found := _PSS.search(Path(f"/proc/{process}/smaps_rollup").read_text()):
            return int(found[1]) / 1024
    return 0.0
