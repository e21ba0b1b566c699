"""What is damaged in a run folder, and what of it cannot be had again for free. Only reads."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ace_bench.core.errors import FolderDamaged
from ace_bench.core.types import Record, Stage, Usage
from ace_bench.store.call_log import FILE as CALLS
from ace_bench.store.call_log import Ledger
from ace_bench.store.calls import CallRecord, parse_call
from ace_bench.store.journal import JournalLine, RolloutRecord, StepRecord, parse_journal
from ace_bench.store.lines import Lines, read_lines
from ace_bench.store.processes import FILE as PROCESSES
from ace_bench.store.processes import parse_process
from ace_bench.store.results import (
    CHECKSUMS,
    METRICS,
    SETTINGS,
    CheckedFiles,
    parse_checksum,
    read_about,
    read_identity,
    read_metrics,
    read_settings,
    read_status,
)

JOURNAL = "journal.jsonl"
_UNKNOWN = Usage()
_NOT_LASTING = ("timing", "cache")
T = TypeVar("T")


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong in a run folder, one sentence each in ``problems``; none for a sound one.

    ``lost_calls`` counts recorded calls that are gone, and ``lost`` is what they cost, as far as it is known.
    ``finished`` says whether the run had a result, and ``metrics`` is the result if it is intact. ``foreign``: journal
    and calls belong to different runs.
    """

    problems: tuple[str, ...]
    finished: bool
    metrics: Record | None
    foreign: bool = False
    lost_calls: int = 0
    lost: Usage = _UNKNOWN

    @property
    def journal_intact(self) -> bool:
        """Whether nothing is wrong with the journal's file itself."""
        return not any(f"/{JOURNAL}" in problem for problem in self.problems)


def lasting_metrics(metrics: Mapping[str, Any]) -> Record:
    """Return the metrics that interruptions and repairs must not change: all but timings and cache figures."""
    return {name: value for name, value in metrics.items() if name not in _NOT_LASTING}


def examine(folder: Path) -> Damage:
    """Check all files of a run folder, also one that a process writes to; raises ``StoreError`` if unreadable."""
    problems: list[str] = []

    def read(read_file: Callable[[Path], T]) -> T | None:
        try:
            return read_file(folder)
        except FolderDamaged as error:
            problems.append(str(error).partition("; repeat the command")[0])
            return None

    metrics = read(read_metrics)
    files = CheckedFiles(folder)
    state = (read(read_status) or {}).get("state")
    read(read_about)
    read(read_identity)
    if SETTINGS not in files.versions:  # with a checksum they are what the run wrote, and YAML is slow to read
        read(read_settings)
    problems += [f"{folder / name} is missing or damaged" for name in files.damaged()]
    finished = METRICS in files.versions or metrics is not None or state == "finished"
    if finished and metrics is None and not (folder / METRICS).exists():
        problems.append(f"{folder / METRICS} is missing")
    ended = finished or state == "stopped"
    # The journal first: a running process adds calls before the lines that count them.
    journal = _read(folder / JOURNAL, parse_journal, problems, ended=ended)
    calls = _read(folder / CALLS, parse_call, problems, ended=ended)
    _read(folder / CHECKSUMS, parse_checksum, problems, ended=ended)
    _read(folder / PROCESSES, parse_process, problems, ended=ended, needed=False)
    records = [call.record for call in calls.entries]
    counted = max((line.calls_made for line in journal.entries), default=0)
    answered = sum(sum(roles.values()) for roles in metrics["calls"].values()) if metrics else 0
    lost = max(counted, calls.count, answered) - len(records)
    foreign = "" if calls.lost else _foreign(journal.entries, records)
    if foreign:
        problems.append(f"{folder}: {foreign}, so {JOURNAL} and {CALLS} are of different runs")
        lost = 0
    elif lost:
        problems.append(f"{folder / CALLS} lacks {lost} of {lost + len(records)} recorded calls")
    elif metrics and not journal.problems:
        problems += [
            f"{folder}: {contradiction}" for contradiction in _contradictions(metrics, journal.entries, records)
        ]
    return Damage(
        problems=_distinct(problems),
        finished=finished,
        metrics=metrics,
        foreign=bool(foreign),
        lost_calls=lost,
        lost=_lost_usage(metrics, records) if lost else _UNKNOWN,
    )


def _read(
    path: Path, parse: Callable[[bytes], T], problems: list[str], *, ended: bool, needed: bool = True
) -> Lines[T]:
    """Read a file of lines; what is wrong with it is added to ``problems``.

    A killed process may leave an unfinished line, one that ended (``ended``) leaves none.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        if needed:
            problems.append(f"{path} is missing")
        return Lines(path=path)
    lines = read_lines(path, parse)
    if lines.problems:
        problems.append(lines.summary)
    if ended and lines.whole < size:
        problems.append(f"{path} ends in {size - lines.whole} bytes that are no complete line")
    return lines


def _distinct(problems: Iterable[str]) -> tuple[str, ...]:
    """Return the problems, each file that is named in two ways once."""
    by_problem: dict[str, str] = {}
    for problem in problems:
        by_problem.setdefault(problem.partition(" is ")[0], problem)
    return tuple(by_problem.values())


def _lost_usage(metrics: Record | None, calls: Iterable[CallRecord]) -> Usage:
    """Return what the lost calls cost: the sums of the result less the calls that are left."""
    if metrics is None:
        return _UNKNOWN
    remaining, total = _ledger(calls).total.usage, metrics["tokens"]["total"]

    def less(sum_: Any, part: Any) -> Any:
        return None if sum_ is None or part is None else max(0, sum_ - part)

    return Usage(
        prompt=less(total["in"], remaining.prompt),
        completion=less(total["out"], remaining.completion),
        usd=less(metrics["usd"]["total"], remaining.usd),
    )


def _ledger(calls: Iterable[CallRecord]) -> Ledger:
    ledger = Ledger()
    for call in calls:
        answered = call.fault is None or not call.fault.unanswered
        ledger.add(call.stage, call.role, call.completion, answered=answered)
    return ledger


def _foreign(journal: Sequence[JournalLine], calls: Sequence[CallRecord]) -> str:
    """Return how the journal contradicts the calls: a rollout whose calls were not recorded before it."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, call in enumerate(calls, start=1):
        numbers[call.session].append(number)
    for line in journal:
        rollout = line.record
        if line.calls_made > len(calls):
            break  # calls that it counts are lost
        if isinstance(rollout, RolloutRecord) and rollout.fault is None and not rollout.restarts:
            position = bisect_right(numbers[rollout.key], line.calls_made)
            if position < rollout.calls:
                return f"{position} of {rollout.calls} calls of the rollout {rollout.key} are recorded"
    return ""


def _contradictions(metrics: Record, journal: Sequence[JournalLine], calls: Sequence[CallRecord]) -> list[str]:
    """Return the sums in which a result differs from the journal and the calls."""
    rollouts = {line.record.key: line.record.stage for line in journal if isinstance(line.record, RolloutRecord)}
    stages = Counter(rollouts.values())
    ledger = _ledger(calls)
    recomputed: Record = {
        "rollouts": {stage.value: stages[stage] for stage in Stage},
        "steps": len({line.record.index for line in journal if isinstance(line.record, StepRecord)}),
        "calls": {
            stage.value: {role: account.calls for role, account in ledger.roles(stage).items()} for stage in Stage
        },
        "tokens": {
            name: {"in": account.usage.prompt, "out": account.usage.completion}
            for name, account in [*((stage.value, ledger.stage(stage)) for stage in Stage), ("total", ledger.total)]
        },
    }
    return [
        f"journal and calls have {name} {value}, the result {metrics[name]}"
        for name, value in recomputed.items()
        if value != metrics[name]
    ]
