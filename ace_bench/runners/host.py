"""Where a run's output goes, what started it, what stops it, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from rich.console import Console

from ace_bench.core.errors import AceBenchError, Interrupted, Stopped
from ace_bench.core.resources import missing_extra
from ace_bench.core.types import Record
from ace_bench.runners.stopping import EXIT_INTERRUPTED, Signals
from ace_bench.store.files import disk_problem

EXIT_ERROR, EXIT_STOPPED = 2, 3


@dataclass(frozen=True, kw_only=True)
class Host:
    """Where a run's output goes, the ``command`` that started it, for its records, and what stops it.

    That is the end of the process ``parent``, and ``signals`` where other runs share the process. ``owns_process`` is
    false where the process must outlive the run, as in a notebook. ``on_folder`` gets the run folder once the run has
    one.
    """

    console: Console
    command: str | None = None
    parent: int | None = None
    signals: Signals | None = None
    owns_process: bool = True
    on_folder: Callable[[Path], object] = lambda _: None

    def say(self, line: str, style: str | None = None) -> None:
        """Print a line as it is."""
        self.console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def say_stopped(self, error: Stopped) -> None:
        """Print why a run stopped, and how it is continued."""
        reason = error.reason.rstrip(".")  # it may end with a server's message
        self.say(f"Stopped: {reason}. Run the same command to continue.")


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
    parent: int | None = None,
    signals: Signals | None = None,
    begun: Callable[[], object] = lambda: None,
    output: TextIO | None = None,
) -> Iterator[RunReport]:
    """Print what stops the run made inside the block, and then its folder; ``output`` is in place of the console.

    ``begun`` is called once the run has a folder, the others are those of ``Host``.
    """
    folders: list[Path] = []

    def note(folder: Path) -> None:
        folders.append(folder)
        begun()

    # Runs side by side print lines: one terminal cannot show the live progress of several.
    console = Console(file=output, force_terminal=False if signals else None)
    host = Host(console=console, command=command, parent=parent, signals=signals, on_folder=note)
    errors = replace(host, console=Console(file=output, stderr=output is None))
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
        problem = disk_problem(error, failed="read or written")
        if problem is None or error.filename is None:
            raise
        host.say_stopped(Stopped(problem))
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
