"""Shared parts of the benchmark cases: their settings, how they start runs, their tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ace_bench.core.errors import AceBenchError
from ace_bench.report import escaping

ACE_BENCH = (sys.executable, "-m", "ace_bench")
_SHOWN_LINES = 6


class RunFailedError(AceBenchError):
    """A run of a benchmark failed; the message holds the end of its output."""


class Figure(NamedTuple):
    """One measured figure with the project's target."""

    figure: str
    measured: str
    aim: str = ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of texts; a line follows the rows in ``rules``, ``notes`` explain the table."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    rules: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


def markdown(grids: Sequence[Grid]) -> str:
    """Write tables in Markdown, one after the other."""
    parts: list[str] = []
    for grid in grids:
        parts.append(f"## {escaping.markdown(grid.title)}")
        parts.append(escaping.markdown_table(grid.headings, grid.rows))
        parts += map(escaping.markdown, grid.notes)
    return "\n\n".join(parts) + "\n"


class Ran(NamedTuple):
    """What a command printed, the CPU seconds of all its processes, and the most bytes that one of them held."""

    lines: list[str]
    cpu: float
    memory: int


def run_command(arguments: Sequence[str]) -> Ran:
    """Run ``ace-bench`` to its end and return what it took; raises ``RunFailedError``."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*ACE_BENCH, *arguments], stdout=output, stderr=subprocess.STDOUT, env=_environment()
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = output.read().splitlines()
    if process.returncode:
        last = "\n".join(lines[-_SHOWN_LINES:])
        raise RunFailedError(f"{' '.join(arguments)} ended with status {process.returncode}:\n{last}")
    return Ran(lines, used.ru_utime + used.ru_stime, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def _environment() -> dict[str, str]:
    """Let processes import this folder, which is not installed, whatever folder they start in."""
    paths = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextmanager
def serving(*command: str) -> Iterator[str]:
    """Run a server, whose first line ends with its address; yields that."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1]
        finally:
            server.kill()


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where a case runs: a folder for its runs and, optionally, real data.

    ``say`` reports the progress of a long case. ``slots`` are numbers of calls in flight, ``bullets`` are the sizes of
    playbooks.
    ``runs`` is the number of runs in the folder that tables and viewer read. ``recorded`` is the folder of a run whose
    requests are sent again, ``url`` the address of the server that they are sent to.
    """

    scratch: Path
    data: Path | None
    say: Callable[[str], object] = lambda _: None
    slots: tuple[int, ...] = ()
    bullets: tuple[int, ...] = ()
    runs: int = 1000
    recorded: Path | None = None
    url: str | None = None

    def source(self, task: str) -> str:
        """Return the override that names a task's data."""
        return f"task.data_dir={(self.data / task).resolve()}" if self.data else "task.source=sample"

    def words(self, *overrides: str) -> list[str]:
        """Return the words of a run into the folder for runs."""
        return ["run", *overrides, f"results={self.scratch}"]

    def run(self, *overrides: str) -> Path:
        """Run or continue to the end and return the run folder; raises ``RunFailedError``."""
        return Path(run_command(self.words(*overrides)).lines[-1])


def metrics_of(folder: Path) -> dict[str, Any]:
    """Return a finished run's metrics."""
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return metrics


def in_process(setting: Setting, overrides: Sequence[str], **parts: Any) -> Path:
    """Run in this process with ``parts`` that no configuration can name, such as a scripted model.

    One that is a class is called with the part that it replaces.
    """
    from unittest import mock

    from ace_bench.runners import run as experiment
    from ace_bench.runners.build import assemble
    from ace_bench.runners.composing import compose_run
    from ace_bench.runners.host import reporting
    from ace_bench.runners.identifying import IdentifiedRun

    plans: list[Any] = []

    def adjusted(identified: IdentifiedRun) -> Any:
        plan = assemble(identified)
        replaced = {name: part(getattr(plan, name)) if isinstance(part, type) else part for name, part in parts.items()}
        plans.append(replace(plan, **replaced))
        return plans[-1]

    with mock.patch.object(experiment, "build_run", adjusted), reporting() as report:
        experiment.run(compose_run([f"results={setting.scratch}", *overrides]), report.host)
    if report.status:
        raise RuntimeError(f"the run ended with status {report.status}")
    folder: Path = plans[0].folder
    return folder
