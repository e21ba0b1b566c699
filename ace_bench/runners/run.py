"""One experiment from configuration to metrics: what ``ace-bench run`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from ace_bench.core.errors import AceBenchError, FolderDamaged, Interrupted, Stopped
from ace_bench.core.resources import missing_extra
from ace_bench.core.types import Record
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.identifying import IdentifiedRun, identify
from ace_bench.runners.stopping import EXIT_INTERRUPTED, Signals
from ace_bench.runners.summary import summary_table
from ace_bench.store.code import changed_modules
from ace_bench.store.damage import Damage, examine
from ace_bench.store.files import disk_problem
from ace_bench.store.folder import RunFolder
from ace_bench.store.processes import last_code, read_processes
from ace_bench.store.results import METRICS, read_metrics

if TYPE_CHECKING:
    from ace_bench.runners.build import RunSpec

EXIT_ERROR, EXIT_STOPPED = 2, 3


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What started a run: the ``command``, for its records, and what stops it.

    That is the end of the process ``parent``, and ``signals`` where other runs share the process. ``begun`` is called
    once the run has a folder.
    """

    command: str | None = None
    parent: int | None = None
    signals: Signals | None = None
    begun: Callable[[], object] = lambda: None


@dataclass(frozen=True, kw_only=True)
class Host:
    """Where a run's output goes, and what started it.

    ``owns_process`` is false where the process must outlive the run, as in a notebook. ``on_folder`` gets the run
    folder once the run has one.
    """

    console: Console
    launch: Launch = Launch()
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
def reporting(launch: Launch | None = None, output: TextIO | None = None) -> Iterator[RunReport]:
    """Print what stops the run made inside the block, and then its folder; ``output`` is in place of the console."""
    folders: list[Path] = []
    launch = launch or Launch()
    # Runs side by side print lines: one terminal cannot show the live progress of several.
    console = Console(file=output, force_terminal=False if launch.signals else None)

    def note(folder: Path) -> None:
        folders.append(folder)
        launch.begun()

    host = Host(console=console, launch=launch, on_folder=note)
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


def run(config: RunConfig, host: Host) -> Record | None:
    """Run or continue one experiment and return its metrics, ``None`` with ``dry_run`` or ``print_config``.

    Raises ``AceBenchError``: of its subclass ``Stopped`` where the same configuration continues the run.
    """
    found = identify(config)
    shows = found.settings.print_config or found.settings.dry_run
    if not shows and (metrics := _finished(found, host)):
        return metrics
    from ace_bench.runners import preflight
    from ace_bench.runners.code_changes import settle_code
    from ace_bench.runners.executing import execute, open_resources
    from ace_bench.runners.repair import check_records

    spec = preflight.check_beginning(build_run(found))
    if shows:
        preflight.show(spec, host.console)
        return None
    preflight.check_keys(preflight.distinct_backbones(spec))
    check_records(spec.folder)
    spec = preflight.with_leakage(spec)
    with open_resources(spec) as resources:
        host.on_folder(spec.folder)
        with closing(RunFolder(spec.folder, spec.folder_mode)) as folder:
            settle_code(folder, spec, host)
            return execute(folder, spec, host, resources)


def build_run(found: IdentifiedRun) -> RunSpec:
    """Build all parts of a run; what they need is imported now and not for a finished run."""
    from ace_bench.runners.build import assemble

    return assemble(found)


def _finished(found: IdentifiedRun, host: Host) -> Record | None:
    """Show and return the metrics of a finished run; ``None`` if they are missing or damaged.

    What else is damaged is repaired, unless that needs new calls: a valid result is not paid for again.
    Raises ``ConfigError`` if the code that decides the result changed.
    """
    folder = found.folder
    try:
        metrics = read_metrics(folder)
        if metrics is None:
            return None
        damage = examine(folder)
    except FolderDamaged as error:
        host.say(f"{error}. This is done now, from the journal.")
        return None
    for problem in damage.problems:
        host.say(f"{problem}.", style="yellow")
    host.on_folder(folder)
    changed = changed_modules(last_code(read_processes(folder)), found.code.modules)
    if changed or damage.problems:
        _settle(found, damage, host)
    host.console.print("This run is finished; resume=false starts a new one.", highlight=False)
    host.console.print(summary_table(metrics, read_processes(folder)))
    return metrics


def _settle(found: IdentifiedRun, damage: Damage, host: Host) -> None:
    """Check a finished run whose code changed, then repair what is damaged, which records that code."""
    from ace_bench.runners.code_changes import settle_code
    from ace_bench.runners.repair import CannotRepair, repair

    spec = build_run(found)
    if changed_modules(last_code(read_processes(spec.folder)), spec.code.modules):
        with closing(RunFolder(spec.folder)) as opened:  # which drops lines that refer to lost calls
            settle_code(opened, spec, host)
    if not damage.problems:
        return
    try:
        repair(spec, damage, host)
    except CannotRepair as error:
        host.say(
            f"This cannot be repaired for free: {error}. The result in {METRICS} is valid; without that file the same "
            "command makes the lost calls again.",
            style="yellow",
        )
    else:
        host.say("This was repaired from the recorded calls; the result is the same.")
