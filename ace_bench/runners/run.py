"""One experiment from configuration to metrics: what ``ace-bench run`` does."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from ace_bench.core.errors import ConfigError, FolderDamaged
from ace_bench.core.types import Record
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.folder_checks import check_folder
from ace_bench.runners.host import Host
from ace_bench.runners.identifying import IdentifiedRun, identify
from ace_bench.runners.summary import summary_table
from ace_bench.store.code import changed_modules
from ace_bench.store.damage import Damage, examine
from ace_bench.store.folder import FolderInUse, RunFolder, choose_folder
from ace_bench.store.processes import last_code, read_processes
from ace_bench.store.results import IDENTITY, METRICS, read_metrics

if TYPE_CHECKING:
    from ace_bench.runners.build import RunSpec


def run(config: RunConfig, host: Host) -> Record | None:
    """Run or continue one experiment and return its metrics, ``None`` with ``dry_run`` or ``print_config``.

    Raises ``AceBenchError``: of its subclass ``Stopped`` where the same configuration continues the run.
    """
    found = identify(config)
    check_folder(found)
    shows = found.print_config or found.dry_run
    if not shows and (metrics := _answer_finished(found, host)):
        return metrics
    from ace_bench.runners import preflight
    from ace_bench.runners.code_changes import settle_code
    from ace_bench.runners.executing import execute, open_resources
    from ace_bench.runners.repair import check_records

    spec = preflight.check_beginning(build_run(found))
    if shows:
        from ace_bench.runners.showing import show

        show(spec, host)
        return None
    preflight.check_keys(preflight.distinct_backbones(spec))
    check_records(spec.folder)
    spec = preflight.with_leakage(spec)
    with open_resources(spec, host) as resources, closing(_open_folder(spec)) as folder:
        host.on_folder(folder.path)
        spec = replace(spec, folder=folder.path)
        settle_code(folder, spec, host)
        return execute(folder, spec, host, resources)


def _open_folder(spec: IdentifiedRun) -> RunFolder:
    """Open the run's folder; with ``resume=false`` the next one where another process has taken this one meanwhile."""
    path = spec.folder
    while True:
        try:
            folder = RunFolder(path, spec.folder_mode)
        except FolderInUse:
            if spec.resume:
                raise
        else:
            if spec.resume or not (path / IDENTITY).exists():
                return folder
            folder.close()
        path = choose_folder(path.parent, spec.seed, resume=False)


def build_run(found: IdentifiedRun) -> RunSpec:
    """Build all parts of a run; what they need is imported now and not for a finished run."""
    from ace_bench.runners.build import assemble

    return assemble(found)


def _answer_finished(found: IdentifiedRun, host: Host) -> Record | None:
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
    from ace_bench.runners.code_changes import refusal, settle_code
    from ace_bench.runners.repair import CannotRepair, repair

    spec = build_run(found)
    changed = changed_modules(last_code(read_processes(spec.folder)), spec.code.modules)
    if changed and damage.lost_calls:  # opening the folder would drop the lines of the journal that refer to them
        if not spec.accept_code:
            raise ConfigError(refusal(spec.folder, changed, "without the lost calls a replay cannot check the result"))
    elif changed:
        with closing(RunFolder(spec.folder)) as opened:
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
