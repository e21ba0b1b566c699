"""Repairs a damaged run folder from its recorded calls, at no cost and never to other numbers.

The run is replayed in a copy, where no call may be made. Only if the copy ends with the same result are its files put
in place of the damaged ones.
"""

from __future__ import annotations

import filecmp
import json
import logging
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from ace_bench.core.console import Console
from ace_bench.core.errors import AceBenchError, BudgetExhausted, FolderDamaged, Interrupted, StoreError
from ace_bench.core.scratch import scratch_folder
from ace_bench.core.types import Record
from ace_bench.runners.build import RunSpec, assemble
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.executing import replay
from ace_bench.runners.gateway import Caller
from ace_bench.runners.host import Host
from ace_bench.runners.identifying import identify
from ace_bench.runners.preflight import with_leakage
from ace_bench.runners.recorded import without_foreign_code
from ace_bench.runners.settings import decode
from ace_bench.store.code import changed_modules
from ace_bench.store.damage import JOURNAL, Damage, lasting_metrics
from ace_bench.store.files import DRAFT, replace_files
from ace_bench.store.folder import LOCK, RunFolder
from ace_bench.store.lines import DAMAGED, DiskGuard
from ace_bench.store.processes import last_code, read_processes
from ace_bench.store.results import METRICS, SETTINGS, SUMMARY, CheckedFiles, read_about, read_metrics, read_settings


class CannotRepair(StoreError):
    """The records of a run do not give its result again; the folder is unchanged."""


def repair_run(folder: Path, damage: Damage, command: str) -> None:
    """Repair a damaged run, finished or not, from its own records; raises ``AceBenchError`` if that cannot be done.

    Its classes come from the installed configuration, never from the folder.
    """
    spec = replace(assemble(identify(decode(without_foreign_code(recorded_settings(folder))))), folder=folder)
    if not folder.resolve().parent.name.startswith(spec.metadata["digest"][:12]):
        raise CannotRepair(
            "settings, data or the version of ace-bench have changed since it was made (digest "
            f"{spec.metadata['digest'][:12]}, not {folder.resolve().parent.name})"
        )
    if changed_modules(last_code(read_processes(folder)), spec.code.modules):
        raise CannotRepair("code that decides its result has changed; its command checks whether the result stands")
    repair(spec, damage, Host(console=Console(quiet=True), command=command, owns_process=False))


def repair(spec: RunSpec, damage: Damage, host: Host) -> None:
    """Replace the damaged files of a run folder.

    A journal with which the run cannot be replayed is made again as a whole. Raises ``CannotRepair``, and what the
    replay raises.
    """
    folder = spec.folder
    if damage.lost_calls:
        raise CannotRepair("recorded calls are lost, and making them again costs money")
    if damage.foreign and not damage.finished:
        raise CannotRepair("journal and calls are of different runs; put the right file back")
    with _locked(folder), scratch_folder("repair") as scratch, _no_warnings():
        attempts = [scratch / name for name in ("with", "without") if name == "without" or not damage.foreign]
        for copy in attempts:
            _copy(folder, copy, journal=copy.name == "with")
            try:
                _replay_in(copy, spec, damage, host)
            except Interrupted:
                raise
            except AceBenchError as error:
                failure = error
                if not damage.finished:
                    break
            else:
                _install(copy, folder)
                return
        kind = CannotRepair if isinstance(failure, CannotRepair) else StoreError
        raise kind(str(failure).replace(str(copy), str(folder))) from failure


def recorded_settings(folder: Path) -> RunConfig:
    """Return the configuration that a run recorded; raises ``StoreError``. Nothing of it is built or checked."""
    settings, text = read_settings(folder), (folder / SETTINGS).read_text(encoding="utf-8")
    with suppress(FolderDamaged):
        return RunConfig(settings=settings, choices=read_about(folder), text=text)
    return RunConfig(settings=settings, choices=read_metrics(folder) or read_about(folder), text=text)


def _copy(folder: Path, copy: Path, *, journal: bool) -> None:
    try:
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(LOCK, f"*{DRAFT}"))
    except OSError as error:
        raise StoreError(f"it cannot be copied to {copy.parent} ({error}); TMPDIR names another folder") from error
    copy.chmod(0o700)  # the run may be read-only
    with suppress(FileNotFoundError):
        if not journal:
            (copy / JOURNAL).rename(copy / f"{JOURNAL}{DAMAGED}")


def _replay_in(copy: Path, spec: RunSpec, damage: Damage, host: Host) -> None:
    """Replay the run in a copy and compare it with what is intact in its folder; raises ``CannotRepair``."""

    def missing(caller: Caller) -> Exception:
        return BudgetExhausted(f"a call of {caller.session} is not recorded")

    folder, damaged = spec.folder, CheckedFiles(spec.folder).damaged()
    for name in damaged:  # those that are intact are not written again
        with suppress(OSError):  # it may be missing, or a folder
            (copy / name).unlink()
    intact = [name for name in (METRICS, SUMMARY) if name not in damaged and (folder / name).is_file()]
    kept = {name: (folder / name).read_text() for name in intact}
    with suppress(FileNotFoundError):
        (copy / METRICS).unlink()
    try:
        with closing(RunFolder(copy)) as opened:
            metrics = replay(opened, with_leakage(replace(spec, folder=copy, unrecorded=missing)), host)
    except BudgetExhausted:
        if damage.finished:
            raise CannotRepair("a call that the run needs is not recorded") from None
        return
    before = lasting_metrics(damage.metrics or _read_object(folder / METRICS))
    differing = [name for name, value in before.items() if metrics.get(name) != value]
    if damage.metrics and differing:
        raise CannotRepair(f"its records give another result ({', '.join(differing)})")
    if damage.finished and (differing or not before) and not damage.journal_intact:
        raise CannotRepair(f"both {JOURNAL} and {METRICS} are damaged, so nothing shows whether a new result is right")
    for path in (folder / "contexts").glob("*"):
        name = f"contexts/{path.name}"
        if name not in damaged and not filecmp.cmp(path, copy / name, shallow=False):
            raise CannotRepair(f"its records give another {name}")
    if damage.metrics:
        with closing(RunFolder(copy)) as opened:
            opened.write(kept)  # with the times of the run, not of the repair


def _read_object(path: Path) -> Record:
    """Return the JSON object of a file; an empty one if it is missing or damaged."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _install(copy: Path, folder: Path) -> None:
    """Put the files that changed in place of the damaged ones; raises ``FolderUnwritable``."""
    changed = {}
    for path in (path for path in copy.rglob("*") if path.is_file() and path.name != LOCK):
        target = folder / path.relative_to(copy)
        if not target.is_file() or not filecmp.cmp(path, target, shallow=False):
            changed[target] = path.read_bytes()
    with DiskGuard().writing(folder):
        replace_files(changed)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = FileLock(folder / LOCK)
    with DiskGuard().writing(folder):
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise StoreError(f"{folder} is in use by another process; wait for it or stop it") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Leave out the warnings about the copy's files, which say what is known already."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
