"""Runs one experiment from configuration to metrics, as ``ace-bench run`` does.

``composing`` makes a configuration of a command's words. ``run`` decodes it (``settings``), names the run
(``identifying``), builds and checks its parts (``build``, ``preflight``) and opens its folder. There ``executing``
starts the parts, runs the loop and records the result.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ace_bench.core.errors import ConfigError, FolderDamaged, StoreError
from ace_bench.core.types import Record
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.host import Host
from ace_bench.runners.identifying import IdentifiedRun, check_folder, identify
from ace_bench.runners.settings import decode
from ace_bench.runners.summary import summary_table
from ace_bench.store.code import changed_modules
from ace_bench.store.damage import JOURNAL, Damage, examine
from ace_bench.store.folder import FolderInUse, RunFolder, choose_folder
from ace_bench.store.notes import change_notes
from ace_bench.store.processes import last_code, read_processes
from ace_bench.store.results import IDENTITY, METRICS, read_metrics

if TYPE_CHECKING:
    from ace_bench.runners.build import RunSpec


def run(config: RunConfig, host: Host) -> Record | None:
    """Run or continue one experiment and return its metrics, ``None`` with ``dry_run``.

    A finished run is only answered; what that does not need is imported later. Raises ``AceBenchError``: of its
    subclass ``Stopped`` where the same configuration continues the run.
    """
    settings = decode(config)
    identified = identify(settings)
    check_folder(identified)
    if not settings.dry_run and (metrics := _answer_finished(identified, host)):
        return metrics
    from ace_bench.runners import preflight
    from ace_bench.runners.executing import execute, open_resources

    spec = preflight.check_beginning(build_run(identified))
    if settings.dry_run:
        from ace_bench.runners.showing import show

        show(spec, host)
        return None
    preflight.check_keys(preflight.distinct_backbones(spec))
    _check_records(spec.folder)
    spec = preflight.with_leakage(spec)
    with open_resources(spec, host) as resources, closing(_open_folder(spec)) as folder:
        host.on_folder(folder.path)
        spec = replace(spec, folder=folder.path)
        if changed := changed_modules(last_code(folder.processes.processes), spec.code.modules):
            from ace_bench.runners.code_changes import settle_code

            settle_code(folder, spec, changed, host)
        return execute(folder, spec, host, resources)


def build_run(identified: IdentifiedRun) -> RunSpec:
    """Build all parts of a run; what they need is imported now and not for a finished run."""
    from ace_bench.runners.build import assemble

    return assemble(identified)


def _check_records(folder: Path) -> None:
    """Raise ``StoreError`` if a run would be continued with the journal or the calls of another one."""
    if not (folder / JOURNAL).exists():
        return
    damage = examine(folder)
    if damage.foreign:
        raise StoreError(f"{damage.problems[-1]}; put the right file back, or pass resume=false for a new run")


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


def _answer_finished(identified: IdentifiedRun, host: Host) -> Record | None:
    """Show and return the metrics of a finished run; ``None`` if they are missing or damaged.

    What else is damaged is repaired, unless that needs new calls: a valid result is not paid for again.
    Raises ``ConfigError`` if the code that decides the result changed.
    """
    folder = identified.folder
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
    change_notes(folder, tags=identified.tags, note=identified.note)
    changed = changed_modules(last_code(read_processes(folder)), identified.code.modules)
    if changed or damage.problems:
        _settle(identified, changed, damage, host)
    host.console.print("This run is finished; resume=false starts a new one.", highlight=False)
    host.console.print(summary_table(metrics, read_processes(folder)))
    return metrics


def _settle(identified: IdentifiedRun, changed: list[str], damage: Damage, host: Host) -> None:
    """Check a finished run whose code changed, then repair what is damaged, which records that code."""
    from ace_bench.runners.code_changes import refusal, settle_code
    from ace_bench.runners.repair import CannotRepair, repair

    spec = build_run(identified)
    if changed and damage.lost_calls:  # opening the folder would drop the lines of the journal that refer to them
        if not spec.accept_code:
            raise ConfigError(refusal(spec.folder, changed, "without the lost calls a replay cannot check the result"))
    elif changed:
        with closing(RunFolder(spec.folder)) as opened:
            settle_code(opened, spec, changed, host)
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
