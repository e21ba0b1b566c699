"""What a page says of the runs under some folders; read again only where their files changed, as it asks often."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ace_bench.core.encoding import collector_paused, digest_of_text
from ace_bench.core.errors import StoreError
from ace_bench.core.types import Record
from ace_bench.report.differences import CHOICES, Differences, differences, value_text
from ace_bench.report.folders import Problem, closed_folder, run_names
from ace_bench.report.listing import began, gains, model_name, tested_on
from ace_bench.report.progress import Progress
from ace_bench.report.records import RUNNING, RunSummary, read_run
from ace_bench.report.same_runs import CONTRADICTORY, settle_same_runs
from ace_bench.store.notes import FILE as NOTES

ABOUT = (*CHOICES, "labels", "seed", "source", "simulated", "state", "reason", "attempt")
"""What a page says of a run, by its attributes."""
_TOTAL = "total"
_FOLDER = "folder"
"""Tells copies of a run apart. Every row has its own anyway."""
_LISTED = ("identity.json", "metrics.json", "environment.json", "status.json", NOTES)
"""The files that a row of the list is made from."""
_GROWING = ("journal.jsonl", "calls.jsonl")
KEY = 12
"""Characters of a digest that name a run, or all seeds of a run."""
_FRESH_S = 0.8
_PAUSES = 10
"""A scan is not repeated within ``_FRESH_S`` seconds, or within this many times its own duration. All pages share it.

The first one, which reads all runs, takes much longer than the others.
"""

_Stamp = tuple[tuple[int, int], ...]
"""Time of the last change in nanoseconds, and size, by file."""


@dataclass(frozen=True, kw_only=True)
class _Known:
    stamp: _Stamp
    name: str
    result: RunSummary | Problem
    row: Record


class Results:
    """All runs under ``roots``, by a key made from the run's folder. Safe to use from several threads.

    Folders are shown relative to the root if there is one only.
    """

    def __init__(self, *roots: Path):
        self._roots = roots
        self._base = str(roots[0]) if len(roots) == 1 else ""
        self._lock = threading.RLock()
        self._read: dict[str, _Known] = {}
        self._known: dict[str, _Known] = {}
        """What was read, and what of it is shown: of folders that contradict each other no result."""
        self._closed: list[str] = []
        self._followed: dict[str, Progress] = {}
        self._progress: dict[str, Record] = {}
        self._version = 0
        self._next_scan = float("-inf")
        self._listed: tuple[int, Record] | None = None

    def version(self) -> int:
        """Look for runs that came, went or changed. Return a number that grows with each such change."""
        with self._lock:
            started = time.monotonic()
            if started > self._next_scan:
                first = not self._version
                with collector_paused():
                    self._scan()
                ended = time.monotonic()
                self._next_scan = ended + max(_FRESH_S, 0 if first else _PAUSES * (ended - started))
            return self._version

    def runs(self) -> Mapping[str, RunSummary]:
        """Return the readable runs by key."""
        with self._lock:
            self.version()
            return {key: entry.result for key, entry in self._known.items() if isinstance(entry.result, RunSummary)}

    @property
    def damaged(self) -> list[Problem]:
        """The folders that cannot be read, and why."""
        with self._lock:
            self.version()
            problems = [entry.result for entry in self._known.values() if isinstance(entry.result, Problem)]
            return [*problems, *map(closed_folder, self._closed)]

    def leave_out(self, key: str, reason: str) -> None:
        """Treat a run as damaged until its files change."""
        with self._lock:
            entry = self._known[key]
            problem = Problem(folder=entry.result.folder, reason=reason)
            self._known[key] = self._read[key] = replace(entry, result=problem, row={})
            self._version += 1

    def progress(self) -> Mapping[str, Record]:
        """Return how far each unfinished run is, by key. A damaged one is left out."""
        with self._lock:
            unfinished = {key: run.folder for key, run in self.runs().items() if not run.finished}
            self._followed = {key: self._followed.get(key) or Progress(folder) for key, folder in unfinished.items()}
            self._progress = {}
            for key, followed in self._followed.items():
                with suppress(StoreError):
                    changed = _changed_at(_stamp(unfinished[key], _GROWING))
                    self._progress[key] = {**followed.record(), "changed": changed}
            return dict(self._progress)

    def listing(self) -> Record:
        """Return what the page lists. Progress is what was known at the last call of ``progress``."""
        with self._lock:
            version, runs = self.version(), self.runs()
            if self._listed is None or self._listed[0] != version:
                rows = {key: self._known[key].row for key in runs}
                with collector_paused():
                    self._listed = (version, _listing(rows, [*runs.values()], [*self._damaged_rows()]))
            record = self._listed[1]
            live = [{**row, "live": self._progress.get(row["key"])} for row in record["runs"]]
            return {**record, "runs": live}

    def _scan(self) -> None:
        read: dict[str, _Known] = {}
        closed: list[str] = []
        for name in self._names(closed):
            key = digest_of_text(name)[:KEY]
            folder = os.path.join(self._base, name)
            stamp = _stamp(folder, _LISTED)
            before = self._read.get(key)
            same = before is not None and before.stamp == stamp and not _may_have_died(before.result)
            read[key] = before if before is not None and same else _read(Path(folder), name, stamp)
        if [*read.items()] != [*self._read.items()] or closed != self._closed or not self._version:
            self._version += 1
            self._known = _without_contradictions(read)
        self._read, self._closed = read, closed

    def _names(self, closed: list[str]) -> Iterator[str]:
        """Yield the folders of runs as they are shown. ``closed`` gets those that may not be entered."""
        searched: dict[str, float] = {}
        for root in self._roots:
            for name in run_names(root, closed.append, searched):
                yield name if self._base else str(root / name)

    def _damaged_rows(self) -> Iterator[Problem]:
        names = {entry.result.folder: entry.name for entry in self._known.values()}
        for problem in self.damaged:
            folder = names.get(problem.folder) or (
                os.path.relpath(problem.folder, self._base) if self._base else problem.folder
            )
            yield Problem(folder=Path(folder), reason=problem.reason)


def _may_have_died(result: RunSummary | Problem) -> bool:
    """Whether a run was under way. A process that is killed changes no file."""
    return isinstance(result, RunSummary) and result.state == RUNNING


def stamp_of_run(folder: Path) -> _Stamp:
    """Return what changes with every change of a run."""
    return _stamp(folder, (*_LISTED, *_GROWING))


def _listing(runs: Mapping[str, Record], summaries: Sequence[RunSummary], damaged: Sequence[Problem]) -> Record:
    """Return what a page says of all runs: ``runs`` are the rows of the summaries by key, in the same order.

    ``settings`` are those in which the runs differ, as pairs of path and short name. ``values`` of a run are in their
    order, ``None`` if it has no such setting.
    """
    differ = differences(summaries)
    columns = [path for path in differ.names if path != _FOLDER]
    gained = gains(summaries)
    rows = [
        {
            "key": key,
            **row,
            "gain": msgspec.to_builtins(gained.get(run.folder)),
            "label": _label(differ, index, run, row["folder"]),
            "values": [differ.text(index, path) if path in differ.values[index] else None for path in columns],
        }
        for index, (run, (key, row)) in enumerate(zip(summaries, runs.items(), strict=True))
    ]
    return {
        "common": differ.common,
        "settings": [(path, differ.names[path]) for path in columns],
        "runs": rows,
        "unreadable": [{"folder": str(problem.folder), "reason": problem.reason} for problem in damaged],
    }


def _label(differ: Differences, index: int, run: RunSummary, folder: str) -> str:
    """Return the label of a run. Copies of a run are named by the folder as the page shows it."""
    label = differ.labels[index]
    return label.replace(value_text(str(run.folder)), folder) if _FOLDER in differ.names else label


def _row(run: RunSummary, folder: str, changed: float) -> Record:
    """Return what is listed of one run, without reading journal or calls. ``changed`` is a Unix time.

    Runs with the same ``sampled`` were tested on the same samples, judging by their settings. Only their scores belong
    into one column. ``seeds`` is the same for all seeds of a run.
    """
    metadata = {name: getattr(run, name) for name in ABOUT}
    return {
        "about": metadata,
        "model": model_name(run),
        "seeds": run.digest[:KEY],
        "folder": folder,
        "date": began(run.folder),
        "changed": changed,
        "tags": run.notes.tags,
        "note": run.notes.note,
        "result": _result(run) if run.finished else None,
    }


def _result(run: RunSummary) -> Record:
    metrics = run.metrics
    headline = metrics["headline"]
    tokens, cache = metrics["tokens"][_TOTAL], metrics["cache"][_TOTAL]
    return {
        **headline,
        "sampled": tested_on(run),
        "faults": sum(sum(kinds.values()) for kinds in metrics["faults"].values()),
        "context": metrics["context"],
        "steps": metrics["steps"],
        "calls": sum(sum(roles.values()) for roles in metrics["calls"].values()),
        "in": tokens["in"],
        "out": tokens["out"],
        "cached": cache["cached_tokens"],
        "usd": metrics["usd"][_TOTAL],
        "wall": sum(part.get("wall_s", 0.0) for part in metrics["timing"].values()),
    }


def _without_contradictions(read: Mapping[str, _Known]) -> dict[str, _Known]:
    """Drop the results of runs whose folders contradict each other."""
    runs = [entry.result for entry in read.values() if isinstance(entry.result, RunSummary)]
    changed = {run.folder: run for run in settle_same_runs(runs).runs if run.state == CONTRADICTORY}
    return {
        key: replace(entry, result=run, row=_row(run, entry.name, _changed_at(entry.stamp)))
        if (run := changed.get(entry.result.folder))
        else entry
        for key, entry in read.items()
    }


def _read(folder: Path, name: str, stamp: _Stamp) -> _Known:
    try:
        run = read_run(folder)
    except StoreError as error:
        return _Known(stamp=stamp, name=name, result=Problem(folder=folder, reason=str(error)), row={})
    return _Known(stamp=stamp, name=name, result=run, row=_row(run, name, _changed_at(stamp)))


def _stamp(folder: Path | str, names: tuple[str, ...]) -> _Stamp:
    return tuple(_stamp_of(f"{folder}/{name}") for name in names)


def _stamp_of(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:  # there is none yet
        return (0, 0)
    return status.st_mtime_ns, status.st_size


def _changed_at(stamp: _Stamp) -> float:
    return max(changed for changed, _ in stamp) / 1e9
