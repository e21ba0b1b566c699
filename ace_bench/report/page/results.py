"""The runs under a folder: read again only where their files changed, as a page asks for them often."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ace_bench.core.encoding import collector_paused, digest_of_text
from ace_bench.core.errors import StoreError
from ace_bench.core.types import Record
from ace_bench.report.page.listing import listing, run_row
from ace_bench.report.progress import Progress
from ace_bench.report.records import Damaged, RunSummary, read_run, run_names

_LISTED = ("identity.json", "metrics.json", "environment.json", "status.json")
"""The files that a row of the list is made from."""
_GROWING = ("journal.jsonl", "calls.jsonl")
_KEY = 12
_FRESH_S = 0.8
_PAUSES = 10
"""A scan is not repeated for ``_FRESH_S`` seconds, nor for so many times as long as it took; all pages share it.

The first one, which reads all runs, takes much longer than the others."""

_Stamp = tuple[tuple[int, int], ...]
"""Time of the last change in nanoseconds, and size, by file."""


@dataclass(frozen=True, kw_only=True)
class _Known:
    stamp: _Stamp
    found: RunSummary | Damaged
    row: Record


class Results:
    """All runs under ``root``, by a key made from the run's folder. Safe to use from several threads."""

    def __init__(self, root: Path):
        self._root = root
        self._lock = threading.RLock()
        self._known: dict[str, _Known] = {}
        self._progress: dict[str, tuple[_Stamp, Progress, Record]] = {}
        self._version = 0
        self._next_scan = float("-inf")
        self._listed: tuple[int, Record] | None = None

    def version(self) -> int:
        """Look for runs that came, went or changed; return a number that grows with each such change."""
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
            return {key: known.found for key, known in self._known.items() if isinstance(known.found, RunSummary)}

    def progress(self) -> Mapping[str, Record]:
        """Return how far each unfinished run is, by key; a damaged one is left out."""
        with self._lock:
            unfinished = {key: run for key, run in self.runs().items() if not run.finished}
            self._progress = {key: found for key, found in self._progress.items() if key in unfinished}
            for key, run in unfinished.items():
                self._follow(key, run.folder)
            return {key: record for key, (_, _, record) in self._progress.items()}

    def listing(self) -> Record:
        """Return what the page lists. Progress is what was known at the last call of ``progress``."""
        with self._lock:
            version, runs = self.version(), self.runs()
            if self._listed is None or self._listed[0] != version:
                rows = {key: self._known[key].row for key in runs}
                found = (known.found for known in self._known.values())
                damaged = [one for one in found if isinstance(one, Damaged)]
                damaged = [Damaged(folder=Path(self._name(one.folder)), reason=one.reason) for one in damaged]
                with collector_paused():
                    self._listed = (version, listing(rows, [*runs.values()], damaged))
            record = self._listed[1]
            return {**record, "runs": [self._with_progress(row) for row in record["runs"]]}

    def _scan(self) -> None:
        known: dict[str, _Known] = {}
        for name in run_names(self._root):
            key = digest_of_text(name)[:_KEY]
            stamp = _stamp(os.path.join(self._root, name), _LISTED)
            before = self._known.get(key)
            known[key] = before if before is not None and before.stamp == stamp else _read(self._root, name, stamp)
        if [*known.items()] != [*self._known.items()] or not self._version:
            self._version += 1
        self._known = known

    def _follow(self, key: str, folder: Path) -> None:
        stamp = _stamp(folder, _GROWING)
        before = self._progress.get(key)
        if before is not None and before[0] == stamp:
            return
        progress = before[1] if before is not None else Progress(folder)
        try:
            record = {**progress.record(), "changed": _changed(stamp)}
        except StoreError:
            self._progress.pop(key, None)
        else:
            self._progress[key] = (stamp, progress, record)

    def _with_progress(self, row: Record) -> Record:
        found = self._progress.get(row["key"])
        return row if found is None else {**row, "live": found[2]}

    def _name(self, folder: Path) -> str:
        return folder.relative_to(self._root).as_posix()


def _read(root: Path, name: str, stamp: _Stamp) -> _Known:
    folder = root / name
    try:
        run = read_run(folder)
    except StoreError as error:
        return _Known(stamp=stamp, found=Damaged(folder=folder, reason=str(error)), row={})
    return _Known(stamp=stamp, found=run, row=run_row(run, name, _changed(stamp)))


def stamp_of_run(folder: Path) -> _Stamp:
    """Return what changes with every change of a run."""
    return _stamp(folder, (*_LISTED, *_GROWING))


def _stamp(folder: Path | str, names: tuple[str, ...]) -> _Stamp:
    return tuple(_stamp_of(f"{folder}/{name}") for name in names)


def _stamp_of(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size


def _changed(stamp: _Stamp) -> float:
    return max(changed for changed, _ in stamp) / 1e9
