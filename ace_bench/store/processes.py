"""``processes.jsonl``: each process that worked on a run, when it began and how it ended."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ace_bench.core.encoding import convert, decoder_of
from ace_bench.core.errors import FolderUnwritable
from ace_bench.core.redaction import redact_argument
from ace_bench.core.resources import CONFIG_DIRS
from ace_bench.core.types import Record
from ace_bench.store.code import changed_modules, modules_in_words
from ace_bench.store.lines import AppendLog, DiskGuard, read_lines

FILE = "processes.jsonl"
KILLED = "killed"
"""How a process ended that left no record of its end."""

How = Literal["finished", "stopped", "interrupted", "failed", "replayed", "accepted"]
CHECKS = ("replayed", "accepted")
"""How a process ended that let a run stand although its code changed: it has the same result, or the user said so."""
_DIGITS = 10
"""Of a commit, as people write it."""


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The commit of a checkout, and whether files under version control differ from it; ``None`` is unknown."""

    commit: str | None
    dirty: bool | None


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process. Times are UTC, ``seconds`` its wall time; ``how`` is ``None`` if it was killed or still runs.

    ``command`` repeats the run, without secrets, and ``sweep`` all runs that one command asked for. ``python``,
    ``platform``, ``packages``, ``git`` and ``host`` come from ``describe_environment``; ``code`` holds the digests of
    the modules that decide the result (``code_of``).
    """

    at: datetime
    command: str | None = None
    sweep: str | None = None
    python: str = ""
    platform: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    git: Mapping[str, Commit | None] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    ended: datetime | None = None
    how: How | None = None
    reason: str = ""
    seconds: float | None = None

    @property
    def commit(self) -> str | None:
        """The commit of the code in short, and whether it was changed; ``None`` if unknown."""
        code = self.git.get("code")
        if code is None or code.commit is None:
            return None
        return code.commit[:_DIGITS] + (" with uncommitted changes" if code.dirty else "")

    def changes_to(self, later: Process) -> list[str]:
        """What was other software in a later process, such as ``numpy 2.1 to 2.2``."""
        versions, later_versions = self._versions(), later._versions()
        modules = changed_modules(self.code, later.code)
        return [
            f"{name} {versions.get(name, 'none')} to {later_versions.get(name, 'none')}"
            for name in {**versions, **later_versions}
            if versions.get(name) != later_versions.get(name)
        ] + [f"the code of {modules_in_words(modules)}"] * bool(modules)

    def _versions(self) -> dict[str, str]:
        commit = {} if self.commit is None else {"commit": self.commit}
        return {**commit, "Python": self.python, **self.packages}


@dataclass(frozen=True, kw_only=True)
class _End:
    ended: datetime
    how: How
    reason: str
    seconds: float


class ProcessLog(AppendLog[Process | _End]):
    """The file of a run that this process works on."""

    def __init__(self, path: Path, guard: DiskGuard):
        super().__init__(read_lines(path, parse_process), guard=guard, meaning="the record of processes is incomplete")
        self._entries = [*self.found.entries]
        self._began = time.monotonic()

    @property
    def processes(self) -> list[Process]:
        """All processes so far; once it has begun, the last one is this."""
        return _join_ends(self._entries)

    def begin(self, command: str | None, environment: Mapping[str, Any], *, sweep: str | None = None) -> list[str]:
        """Record that this process begins; return what is other software than in the one before it.

        Raises ``FolderUnwritable``.
        """
        process = replace(_new_process(command, environment), sweep=sweep)
        earlier = without_checks(self.processes)[-1:]
        began = {name: value for name, value in asdict(process).items() if name not in _End.__dataclass_fields__}
        self._add(process, began)
        self.sync()
        return [change for earlier_process in earlier for change in earlier_process.changes_to(process)]

    def add_check(self, how: How, reason: str, command: str | None, environment: Mapping[str, Any]) -> None:
        """Record in one line that the run stands with the code of this process; raises ``FolderUnwritable``."""
        process = _new_process(command, environment)
        process = replace(process, ended=process.at, how=how, reason=reason, seconds=0.0)
        self._add(process, asdict(process))
        self.sync()

    def end(self, how: How, reason: str = "") -> None:
        """Record how this process ends; raises ``FolderUnwritable``."""
        end = _End(ended=_now(), how=how, reason=reason, seconds=round(time.monotonic() - self._began, 3))
        self._add(end, vars(end))

    def try_end(self, how: How, reason: str) -> None:
        """Record how this process ends, if it has begun and the disk allows it."""
        if self.processes and self.processes[-1].how is None:
            with contextlib.suppress(FolderUnwritable):
                self.end(how, reason)

    def _add(self, entry: Process | _End, record: Record) -> None:
        self.append(record)
        self._entries.append(entry)


def command_of(arguments: Sequence[str], *, name: str = "run") -> str:
    """Return the command that repeats a run, or a sweep, with these arguments, without secrets."""
    folders = [f"--config-dir={folder}" for folder in os.environ.get(CONFIG_DIRS, "").split(os.pathsep) if folder]
    return shlex.join(map(redact_argument, ["ace-bench", name, *folders, *arguments]))


def parse_command(command: str | None) -> Sequence[str]:
    """Return the words of a command that ``command_of`` wrote.

    A folder may hold any text in its place, which has no words here.
    """
    try:
        words = shlex.split(command or "")
    except ValueError:
        return ()
    return words if words[:1] == ["ace-bench"] and words[1:2] in (["run"], ["reproduce"]) else ()


def read_processes(folder: str | Path) -> list[Process]:
    """Return the processes of a run, without damaged lines; none for folders of older versions.

    Raises ``StoreError`` if the file cannot be read.
    """
    return _join_ends(read_lines(Path(folder) / FILE, parse_process).entries)


def last_code(processes: Sequence[Process]) -> Mapping[str, str]:
    """Return the code that made a run, or with which it stood last; empty where no process recorded any."""
    return next((process.code for process in reversed(processes) if process.code), {})


def without_checks(processes: Sequence[Process]) -> list[Process]:
    """Return the processes that worked on a run, without those that only checked its code."""
    return [process for process in processes if process.how not in CHECKS]


def accepted_code(processes: Sequence[Process]) -> str:
    """Return what a user accepted: a result that other code gave, or that several versions gave; "" for none.

    A finished run that the present code gives as well, as a replay showed later, needs no such words.
    """
    ends = [process.how for process in processes]
    accepted = [index for index, how in enumerate(ends) if how == CHECKS[1]]
    if not accepted:
        return ""
    followed = [index for index in accepted if any(how not in CHECKS for how in ends[index:])]
    if followed:
        return f"made by several versions of the code: {processes[followed[-1]].reason}"
    return f"made by other code: {processes[-1].reason}" if ends[-1] == CHECKS[1] else ""


def parse_process(line: bytes) -> Process | _End:
    """Read a line of ``processes.jsonl``; raises ``ValueError``."""
    record = decoder_of(dict[str, Any]).decode(line)
    parsed: Process | _End = convert(record, Process if "at" in record else _End)
    return parsed


def _join_ends(entries: Sequence[Process | _End]) -> list[Process]:
    """Return the processes with their ends; an end without a beginning, which damage took, is left out."""
    processes: list[Process] = []
    for entry in entries:
        if isinstance(entry, Process):
            processes.append(entry)
        elif processes and processes[-1].how is None:
            processes[-1] = replace(processes[-1], **vars(entry))
    return processes


def _new_process(command: str | None, environment: Mapping[str, Any]) -> Process:
    process: Process = convert({"at": _now(), "command": command, **environment}, Process)
    return process


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
