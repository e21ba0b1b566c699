"""Find damaged run folders and response caches, and repair what costs nothing.

    ace-bench doctor results
    ace-bench doctor results --repair

Without --repair nothing is written. With it, what the recorded calls give again is rebuilt without any call, and only
if the result stays the same; temporary files that nobody uses are removed. What needs calls to be made again is left,
with their number and what they cost. Exit status: 0 if nothing is damaged or all was repaired, 1 if damage is left.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rich.table import Column, Table

from ace_bench.cli.arguments import Parser
from ace_bench.core.console import Console
from ace_bench.core.errors import AceBenchError, ConfigError, FolderDamaged, Interrupted, StoreError
from ace_bench.core.program import INTERRUPTED
from ace_bench.core.scratch import abandoned_folders, clear
from ace_bench.core.types import NO_USAGE, Record, Usage
from ace_bench.report.folders import run_folders
from ace_bench.report.records import find_runs
from ace_bench.runners.host import EXIT_INTERRUPTED
from ace_bench.runners.recorded import CodeRefused
from ace_bench.runners.repair import repair_run
from ace_bench.store.damage import Damage, examine
from ace_bench.store.files import DRAFT
from ace_bench.store.folder import is_in_use
from ace_bench.store.processes import parse_command, read_processes
from ace_bench.store.responses import FILE as CACHE
from ace_bench.store.responses import damage_of, salvage

_UNKNOWN, _UNCOUNTED = "n/a", Usage()
_DRAFT = re.compile(rf"\.[0-9a-f]{{8}}{re.escape(DRAFT)}$")
_OLD_S = 3600.0
"""Nobody writes to a draft for that long."""
_SOUND = "--repair keeps the sound replies; the others are made again when a run asks for them"
_BY_HAND = "only you know which folder is right: move it where it belongs, and others away"
_TRY = "--repair rebuilds it without any call if the recorded calls allow it"


@dataclass(frozen=True, kw_only=True)
class _Finding:
    """A damaged run or cache. ``calls`` would have to be made again, and cost ``usage`` when they were made first.

    ``note`` says what was done, or why it could not be done.
    """

    path: Path
    problems: tuple[str, ...]
    note: str
    repaired: bool = False
    calls: int | None = None
    usage: Usage = _UNCOUNTED


@dataclass(kw_only=True)
class _Checkup:
    """What was looked at and found."""

    runs: int = 0
    caches: int = 0
    in_use: list[Path] = field(default_factory=list)
    damaged: list[_Finding] = field(default_factory=list)
    temporary: list[Path] = field(default_factory=list)

    @property
    def left(self) -> list[_Finding]:
        return [finding for finding in self.damaged if not finding.repaired]


def main(arguments: Sequence[str]) -> int:
    """Check all runs below a folder. Return the exit status."""
    parser = Parser("doctor", __doc__)
    parser.add_argument("results", nargs="?", type=Path, default=Path("results"), help="folder of runs and caches")
    parser.add_argument("--repair", action="store_true", help="rebuild what costs nothing, remove temporary files")
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    options = parser.parse_args(arguments)
    if not options.results.is_dir():
        raise ConfigError(f"{options.results} is not a folder; name one that holds runs")
    command = shlex.join(["ace-bench", "doctor", *arguments])
    try:
        checkup = _check(options.results, command if options.repair else None)
    except Interrupted:
        sys.stderr.write(INTERRUPTED)
        return EXIT_INTERRUPTED
    if options.json:
        sys.stdout.write(json.dumps(_record(checkup), indent=2) + "\n")
    else:
        _show(checkup)
    return 1 if checkup.left else 0


def _check(results: Path, command: str | None) -> _Checkup:
    checkup = _Checkup()
    for folder in run_folders(results):
        checkup.runs += 1
        if is_in_use(folder):
            checkup.in_use.append(folder)
        elif finding := _check_run(folder, command if folder.resolve().is_relative_to(results.resolve()) else None):
            checkup.damaged.append(finding)
    for wrong in find_runs(results).problems:
        checkup.damaged.append(_Finding(path=wrong.folder, problems=(wrong.reason,), note=_BY_HAND, calls=0))
    for path in sorted(results.rglob(CACHE)):
        checkup.caches += 1
        if problem := damage_of(path):
            note, repaired = _repair_cache(path) if command else (_SOUND, False)
            checkup.damaged.append(_Finding(path=path, problems=(problem,), note=note, repaired=repaired))
    checkup.temporary = [*abandoned_folders(), *_drafts(results)]
    for path in checkup.temporary if command is not None else ():
        if path.is_dir():
            clear(path)
        else:
            with suppress(OSError):  # it is then printed as still there
                path.unlink()
    return checkup


def _check_run(folder: Path, command: str | None) -> _Finding | None:
    try:
        damage = examine(folder)
    except AceBenchError as error:
        return _Finding(path=folder, problems=(str(error),), note="it cannot be read")
    if not damage.problems:
        return None
    note, repaired = _TRY, False
    if damage.lost_calls and damage.metrics:
        note = "the result is valid; to make the lost calls again, remove metrics.json and repeat the command"
    elif damage.lost_calls:
        note = "the command of the run makes the lost calls again"
    elif command is not None:
        note, repaired = _repair_run(folder, damage, command)
    calls, usage = damage.lost_calls, damage.lost if damage.lost_calls else NO_USAGE
    return _Finding(path=folder, problems=damage.problems, note=note, repaired=repaired, calls=calls, usage=usage)


def _repair_run(folder: Path, damage: Damage, command: str) -> tuple[str, bool]:
    """Return what to say of a repair, and whether it succeeded."""
    try:
        repair_run(folder, damage, command)
        problems = examine(folder).problems
    except Interrupted:
        raise
    except (CodeRefused, FolderDamaged) as error:
        return f"not repaired: {error}{_show_command(folder)}", False
    except AceBenchError as error:
        return f"not repaired: {error}", False
    return ("; ".join(problems), False) if problems else ("repaired from the recorded calls", True)


def _show_command(folder: Path) -> str:
    """Return the recorded command of a run as the end of a note. It is shown, never run: the folder may lie."""
    with suppress(StoreError):
        commands = [parse_command(process.command) for process in read_processes(folder)]
        if runs := [command for command in commands if command[1:2] == ["run"]]:
            return f". The command of the run repairs it, too. Read it before you repeat it: {shlex.join(runs[-1])}"
    return ""


def _repair_cache(path: Path) -> tuple[str, bool]:
    try:
        return f"repaired: {salvage(path)} sound replies were kept", True
    except AceBenchError as error:
        return f"not repaired: {error}", False


def _drafts(results: Path) -> Iterator[Path]:
    """Yield the drafts of files that killed processes left behind."""
    for path in results.rglob(f"*{DRAFT}"):
        with suppress(OSError):  # its owner has just finished it
            if _DRAFT.search(path.name) and time.time() - path.stat().st_mtime > _OLD_S:
                yield path


def _record(checkup: _Checkup) -> Record:
    return {
        "runs": checkup.runs,
        "caches": checkup.caches,
        "in_use": [str(path) for path in checkup.in_use],
        "damaged": [
            {
                "path": str(finding.path),
                "problems": [*finding.problems],
                "repaired": finding.repaired,
                "note": finding.note,
                "lost": {
                    "calls": finding.calls,
                    "in": finding.usage.prompt,
                    "out": finding.usage.completion,
                    "usd": finding.usage.usd,
                },
            }
            for finding in checkup.damaged
        ],
        "temporary": [{"path": str(path), "removed": not path.exists()} for path in checkup.temporary],
    }


def _show(checkup: _Checkup) -> None:
    console = Console(highlight=False)
    plain = partial(console.print, markup=False, soft_wrap=True)
    for finding in checkup.damaged:
        plain(str(finding.path), style="bold")
        for problem in finding.problems:
            plain(f"  {problem.replace(f'{finding.path}/', '').removeprefix(f'{finding.path}: ')}")
        plain(f"  {finding.note}", style="green" if finding.repaired else "yellow")
    unrepaired = [finding for finding in checkup.left if finding.calls != 0]
    if unrepaired:
        table = Table(Column("to make again", overflow="fold"), "calls", "tokens", "dollars")
        for finding in unrepaired:
            sums = ((finding.calls, ","), (finding.usage.tokens, ","), (finding.usage.usd, ",.4f"))
            calls, tokens, usd = (_UNKNOWN if value is None else format(value, form) for value, form in sums)
            table.add_row(str(finding.path), calls, tokens, usd if usd == _UNKNOWN else f"${usd}")
        console.print(table)
    for path in checkup.in_use:
        plain(f"{path} is in use and was not checked")
    for path in checkup.temporary:
        plain(f"{path} was left by a killed process{'' if path.exists() else ' and is removed'}")
    repaired = len(checkup.damaged) - len(checkup.left)
    plain(
        f"runs: {checkup.runs}, response caches: {checkup.caches}; {len(checkup.damaged)} damaged, {repaired} repaired"
    )
