"""The process of a run: where its output goes, what started it, what stops it, and how it ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from ace_bench.core.console import Console
from ace_bench.core.errors import AceBenchError, BudgetExhausted, Interrupted, Stopped
from ace_bench.core.resources import missing_extra
from ace_bench.core.types import Probe, Record
from ace_bench.store.files import disk_problem

if TYPE_CHECKING:
    from ace_bench.backbones.vllm.server import ServerPool
    from ace_bench.runners.progress import Observer
    from ace_bench.runners.shared_limits import SharedLimits  # slow to import, and a finished run needs none

EXIT_ERROR, EXIT_STOPPED, EXIT_INTERRUPTED = 2, 3, 130

LIMIT_S = 4.0
"""Seconds for an interrupted run to end."""


class Signals:
    """Passes SIGINT and SIGTERM on to all runs of a process, also to those that start later.

    What gets them is called with the number of signals so far, for one of them perhaps twice.
    """

    def __init__(self) -> None:
        self._count = 0
        self._runs: dict[int, Callable[[int], None]] = {}

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals during the block; only the main thread of a process gets them."""
        numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        before = {number: signal.signal(number, self._pass_on) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def passed_to(self, stop: Callable[[int], None]) -> Iterator[None]:
        """Call ``stop`` at each signal during the block, and at its beginning if there was one before."""
        self._runs[id(stop)] = stop
        try:
            if self._count:
                stop(self._count)
            yield
        finally:
            del self._runs[id(stop)]

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.send()

    def send(self) -> None:
        """Stop all runs, as a signal does."""
        self._count += 1
        for stop in [*self._runs.values()]:
            stop(self._count)


@dataclass(frozen=True, kw_only=True)
class Host:
    """Where a run's output goes, the ``command`` that started it, for its records, and what it shares with other runs.

    ``sweep`` is the command that started it together with other runs.

    ``signals`` stop all runs of a process that has several. ``owns_process`` is false where the process must outlive
    the run, as in a notebook. ``on_folder`` gets the run folder once the run has one. ``probes`` holds what the first
    run found out about each server, by ``Served.probe_key``. ``limits`` are the limits that several runs of the process
    have together, and ``servers`` those that they start. ``display`` shows the progress in place of the console's own
    lines.
    """

    console: Console
    command: str | None = None
    sweep: str | None = None
    signals: Signals | None = None
    owns_process: bool = True
    on_folder: Callable[[Path], object] = lambda _: None
    probes: dict[str, Probe] = field(default_factory=dict)
    limits: SharedLimits | None = None
    servers: ServerPool | None = None
    display: Callable[[], Observer] | None = None

    def say(self, line: str, style: str | None = None) -> None:
        """Print a line as it is."""
        self.console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def say_stopped(self, error: Stopped) -> None:
        """Print why a run stopped, and how it is continued."""
        reason = error.reason.rstrip(".")  # it may end with a server's message
        how = "Raise it in" if isinstance(error, BudgetExhausted) else "Run"
        self.say(f"Stopped: {reason}. {how} the same command to continue.")


@dataclass(kw_only=True)
class RunEnd:
    """How a run of the command line ended: its metrics if it finished, its folder if it has one, its exit ``status``.

    0: finished (now or before). 2: an error that the message explains. 3: stopped, by the budget, because a backbone
    cannot be reached or gives no answers, or because the run folder cannot be written. 130: interrupted. After 3 and
    130 the same command continues. A run that fails before its first call leaves no folder.
    """

    status: int = 0
    metrics: Record | None = None
    folders: Sequence[Path] = ()


@dataclass(kw_only=True)
class RunReport(RunEnd):
    """The end of a run that is under way in the block of ``reporting``."""

    host: Host


@contextmanager
def reporting(
    command: str | None = None,
    *,
    signals: Signals | None = None,
    live: bool = True,
    begun: Callable[[], object] = lambda: None,
    output: TextIO | None = None,
) -> Iterator[RunReport]:
    """Print what stops the run made inside the block, and then its folder; ``output`` is in place of the console.

    ``begun`` is called once the run has a folder. Only a ``live`` run may show its progress in place, because one
    terminal cannot show the progress of several runs. The others are fields of ``Host``.
    """
    folders: list[Path] = []

    def note(folder: Path) -> None:
        folders.append(folder)
        begun()

    console = Console(file=output, force_terminal=None if live else False, emoji=False)
    host = Host(console=console, command=command, signals=signals, on_folder=note)
    errors = replace(host, console=Console(file=output, stderr=output is None, emoji=False))
    report = RunReport(host=host)
    try:
        yield report
    except Stopped as error:
        host.say_stopped(error)
        report.status = EXIT_INTERRUPTED if isinstance(error, Interrupted) else EXIT_STOPPED
    except AceBenchError as error:
        errors.say(f"error: {error}", style="red")
        report.status = EXIT_ERROR
    except OSError as error:
        if error.filename is None:
            raise
        host.say_stopped(Stopped(disk_problem(error, failed="read or written")))
        report.status = EXIT_STOPPED
    except ImportError as error:
        if (needed := missing_extra(error)) is None:
            raise
        errors.say(f"error: {needed}", style="red")
        report.status = EXIT_ERROR
    finally:
        report.folders = [*filter(Path.exists, dict.fromkeys(folders))]
        for folder in report.folders:
            with suppress(OSError):  # the caller reports an output that cannot be written
                host.say(str(folder))
