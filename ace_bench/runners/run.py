"""One experiment from configuration to metrics: what ``ace-bench run`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from ace_bench.core.backbones import Interruptible
from ace_bench.core.errors import AceBenchError, FolderDamaged, Interrupted, Stopped
from ace_bench.core.redaction import redacted
from ace_bench.core.types import Record
from ace_bench.runners.assemble import RunSpec, assemble
from ace_bench.runners.budget import Budget, check_reply_limits
from ace_bench.runners.build import ALONE, Shared, build_experiment
from ace_bench.runners.call_slots import slots_of_run
from ace_bench.runners.code_changes import changes_of_code, settle_code
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.config_tree import show_config
from ace_bench.runners.exporter import Exporter
from ace_bench.runners.loop import run_loop
from ace_bench.runners.metrics import run_metrics
from ace_bench.runners.observers import Watching
from ace_bench.runners.preflight import (
    check_beginning,
    check_beside,
    check_estimate,
    check_keys,
    distinct_backbones,
    parts_ready,
    show_dry_run,
    with_confinement,
    with_leakage,
)
from ace_bench.runners.progress import Observer
from ace_bench.runners.repair import CannotRepair, check_records, recorded_settings, repair
from ace_bench.runners.saved_files import files_of_contexts, save_questions
from ace_bench.runners.signals import EXIT_INTERRUPTED, Ending, stop_on_signals
from ace_bench.runners.stopping import Stop
from ace_bench.runners.summary import summary_table, summary_text, title
from ace_bench.store.damage import Damage, examine
from ace_bench.store.environment import describe_environment
from ace_bench.store.files import disk_problem
from ace_bench.store.folder import RunFolder, pretty
from ace_bench.store.processes import read_processes
from ace_bench.store.responses import Responses
from ace_bench.store.results import IDENTITY, METRICS, SUMMARY, read_metrics
from ace_bench.store.spending import SharedSpending

EXIT_ERROR, EXIT_STOPPED = 2, 3
_PLAIN: Any = {"markup": False, "highlight": False, "soft_wrap": True}


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What started a run: the ``command``, for its records, and the process whose end stops it, ``parent``."""

    command: str | None = None
    parent: int | None = None


def run(
    config: RunConfig,
    *,
    launch: Launch = Launch(),
    on_metrics: Callable[[Record], object] = lambda _: None,
    on_folder: Callable[[Path], object] = lambda _: None,
) -> int:
    """Run or continue one experiment and return the exit status.

    0: finished (now or before). 2: an error that the message explains. 3: stopped, by the budget, because a backbone
    cannot be reached or gives no answers, or because the run folder cannot be written. 130: interrupted. After 3 and
    130 the same command continues. ``on_metrics`` gets the metrics of a finished run, and ``on_folder`` the folder of
    any run that has one, at its end. A run that fails before its first call leaves no folder.
    """
    console = Console()
    folders: list[Path] = []
    try:
        caller = Caller(console=console, launch=launch, on_folder=folders.append)
        metrics = carry_out(config, caller)
        if metrics is not None:
            on_metrics(metrics)
        return 0
    except Stopped as error:
        _say_stopped(console, error)
        return EXIT_INTERRUPTED if isinstance(error, Interrupted) else EXIT_STOPPED
    except AceBenchError as error:
        Console(stderr=True).print(f"error: {error}", style="red", **_PLAIN)
        return EXIT_ERROR
    except OSError as error:
        problem = disk_problem(error, failed="read or written")
        if problem is None or error.filename is None:
            raise
        _say_stopped(console, Stopped(problem))
        return EXIT_STOPPED
    finally:
        for folder in filter(Path.exists, dict.fromkeys(folders)):
            on_folder(folder)
            with suppress(OSError):  # the caller reports an output that cannot be written
                console.print(str(folder), **_PLAIN)


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who runs an experiment: where its output goes, and what started it.

    ``owns_process`` is false where the process must outlive the run, as in a notebook. ``on_folder`` gets the run
    folder once the run has one.
    """

    console: Console
    launch: Launch = Launch()
    owns_process: bool = True
    on_folder: Callable[[Path], object] = lambda _: None


def carry_out(config: RunConfig, caller: Caller) -> Record | None:
    """Run or continue one experiment and return its metrics, ``None`` with ``dry_run`` or ``print_config``.

    Raises ``AceBenchError``: of its subclass ``Stopped`` where the same configuration continues the run.
    """
    plan = check_beginning(assemble(config))
    if plan.print_config:
        show_config(plan, caller.console)
        return None
    if plan.dry_run:
        show_dry_run(with_leakage(plan), caller.console)
        if not (plan.folder / METRICS).exists():
            check_beside(plan)
        return None
    if metrics := _finished(plan, caller):
        return metrics
    check_keys(distinct_backbones(plan))
    check_records(plan.folder)
    plan = with_leakage(plan)
    with _open_resources(plan) as resources:
        caller.on_folder(plan.folder)
        with closing(RunFolder(plan.folder, plan.folder_mode)) as opened:
            _settle_code(opened, plan, caller)
            return _run_in(opened, plan, resources, caller)


def _say_stopped(console: Console, error: Stopped) -> None:
    reason = error.reason.rstrip(".")  # it may end with a server's message
    console.print(f"Stopped: {reason}. Run the same command to continue.", **_PLAIN)


@dataclass(frozen=True, kw_only=True)
class _Resources:
    """The resources of a run outside its folder; they are opened before the folder is created."""

    shared: Shared
    exporter: Exporter | None


@contextmanager
def _open_resources(plan: RunSpec) -> Iterator[_Resources]:
    with ExitStack() as stack:
        responses = None if plan.response_cache is None else Responses(plan.response_cache, plan.folder_mode)
        if responses is not None:
            stack.callback(responses.close)
        exporter = None if plan.metrics_port is None else Exporter(plan.metrics_port)
        if exporter is not None:
            stack.callback(exporter.close)
        slots = stack.enter_context(slots_of_run(plan.max_calls_in_flight))
        spending = SharedSpending(plan.folder.parents[2], plan.folder) if plan.budget.shared else None
        if spending is not None:
            stack.callback(spending.close)
        yield _Resources(shared=Shared(responses=responses, slots=slots, spending=spending), exporter=exporter)


def _finished(plan: RunSpec, caller: Caller) -> Record | None:
    """Show and return the metrics of a finished run; ``None`` if they are missing or damaged.

    What else is damaged is repaired, unless that needs new calls: a valid result is not paid for again.
    Raises ``ConfigError`` if the code that decides the result changed.
    """
    folder, console = plan.folder, caller.console
    try:
        metrics = read_metrics(folder)
        if metrics is None:
            return None
        damage = examine(folder)
    except FolderDamaged as error:
        console.print(f"{error}. This is done now, from the journal.", **_PLAIN)
        return None
    for problem in damage.problems:
        console.print(f"{problem}.", style="yellow", **_PLAIN)
    caller.on_folder(folder)
    if changes_of_code(plan, read_processes(folder)):
        with closing(RunFolder(folder)) as opened:
            _settle_code(opened, plan, caller)
    if damage.problems:  # only now: the repair records the code that it was made with
        _repair_finished(plan, damage, caller)
    console.print("This run is finished; resume=false starts a new one.", highlight=False)
    console.print(summary_table(metrics, read_processes(folder)))
    return metrics


def _repair_finished(plan: RunSpec, damage: Damage, caller: Caller) -> None:
    try:
        repair(plan.folder, damage, partial(_replay, plan, caller))
    except CannotRepair as error:
        caller.console.print(
            f"This cannot be repaired for free: {error}. The result in {METRICS} is valid; without that file the same "
            "command makes the lost calls again.",
            style="yellow",
            **_PLAIN,
        )
    else:
        caller.console.print("This was repaired from the recorded calls; the result is the same.", **_PLAIN)


def repair_run(folder: Path, damage: Damage, launch: Launch) -> None:
    """Repair a damaged run, finished or not, from its own records; raises ``AceBenchError`` if that cannot be done."""
    plan = assemble(recorded_settings(folder))
    if not folder.resolve().parent.name.startswith(plan.about["digest"][:12]):
        raise CannotRepair(
            f"settings or data have changed since it was made (digest {plan.about['digest'][:12]}, not "
            f"{folder.resolve().parent.name})"
        )
    if changes_of_code(plan, read_processes(folder)):
        raise CannotRepair("code that decides its result has changed; its command checks whether the result stands")
    caller = Caller(console=Console(quiet=True), launch=launch, owns_process=False)
    repair(folder, damage, partial(_replay, plan, caller))


def _replay(plan: RunSpec, caller: Caller, folder: Path) -> Record:
    """Do a run again in a folder that holds its calls, without any other; raises ``BudgetExhausted`` for a new one."""
    spec = with_leakage(replace(plan, folder=folder, trackers=(), estimate=False, replays=True))
    spec = replace(spec, budget=Budget(calls=0))
    quiet = replace(caller, console=Console(quiet=True))
    with closing(RunFolder(folder)) as opened:
        return _run_in(opened, spec, _Resources(shared=ALONE, exporter=None), quiet)


def _settle_code(folder: RunFolder, plan: RunSpec, caller: Caller) -> None:
    ending = Ending(
        interrupt=lambda _: None,
        abandon=lambda error: _say_stopped(caller.console, error),
        parent=caller.launch.parent,
        owns_process=caller.owns_process,
    )
    with stop_on_signals(caller.console, ending) as stop:
        settle_code(folder, plan, caller.console, stop, caller.launch.command)


def _run_in(folder: RunFolder, plan: RunSpec, resources: _Resources, caller: Caller) -> Record:
    console = caller.console
    try:
        save_questions(folder, plan)
        for line in (title(plan.about), *plan.notes):
            console.print(line, **_PLAIN)
        environment = describe_environment()
        about = pretty({**environment, **plan.about})
        identity = pretty(plan.identity.dump())
        folder.write({"config.yaml": plan.config, IDENTITY: identity, "environment.json": about})
        folder.set_status("running")
        _begin(folder, {**environment, "code": plan.code.modules}, caller)
        ending = _ending(folder, plan, caller)
        with stop_on_signals(console, ending) as stop, parts_ready(plan, folder, console, stop):
            check_reply_limits(plan.budget, plan.backbones)  # a server has said by now how long its context is
            plan = with_confinement(plan)
            folder.write({"environment.json": pretty({**environment, **plan.about})})
            if plan.estimate:
                check_estimate(plan, folder.calls.ledger.total, console, stop)
            metrics = _work(folder, plan, resources, console, stop)
    except BaseException as error:
        if not folder.discard():
            _record_end(folder, error)
        raise
    console.print(summary_table(metrics, folder.processes.processes))
    return metrics


def _begin(folder: RunFolder, environment: Mapping[str, Any], caller: Caller) -> None:
    changes = folder.processes.begin(caller.launch.command, environment)
    if changes:
        caller.console.print(
            f"This run continues with other software than before: {', '.join(changes)}.", style="yellow", **_PLAIN
        )


def _record_end(folder: RunFolder, error: BaseException) -> None:
    if isinstance(error, Stopped):
        folder.try_set_status("stopped", error.reason)
        folder.processes.try_end("interrupted" if isinstance(error, Interrupted) else "stopped", error.reason)
        return
    reason = str(error) if isinstance(error, AceBenchError) else redacted(f"{type(error).__name__}: {error}")
    folder.try_set_status("failed", reason)
    folder.processes.try_end("failed", reason)


def _ending(folder: RunFolder, plan: RunSpec, caller: Caller) -> Ending:
    def interrupt(grace: float) -> None:
        for backbone in plan.backbones.values():
            if isinstance(backbone, Interruptible):
                backbone.interrupt(grace)

    def abandon(error: Interrupted) -> None:
        kept = not folder.discard()
        if kept:
            _record_end(folder, error)
        _say_stopped(caller.console, error)
        if kept:
            caller.console.print(str(folder.path), **_PLAIN)

    return Ending(interrupt=interrupt, abandon=abandon, parent=caller.launch.parent, owns_process=caller.owns_process)


def _work(folder: RunFolder, plan: RunSpec, resources: _Resources, console: Console, stop: Stop) -> Record:
    with _observers(plan, resources.exporter, console) as observers:
        experiment = build_experiment(folder, plan, stop, observers, resources.shared)
        outcome = run_loop(experiment, plan.mode)
        metrics = run_metrics(experiment, outcome, plan.about)
        folder.processes.end("finished")
        folder.write({**files_of_contexts(outcome), SUMMARY: summary_text(metrics, folder.processes.processes)})
        folder.set_status("finished")
        folder.write_json(METRICS, metrics)
        for tracker in plan.trackers:
            tracker.finish(metrics)
    return metrics


@contextmanager
def _observers(plan: RunSpec, exporter: Exporter | None, console: Console) -> Iterator[tuple[Observer, ...]]:
    with ExitStack() as stack:
        for tracker in plan.trackers:
            tracker.begin(plan.folder, plan.about, plan.config)
            stack.callback(tracker.close)
        watching = stack.enter_context(Watching(console))
        yield (*plan.trackers, *([exporter] if exporter is not None else []), watching)
