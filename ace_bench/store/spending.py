"""The file in which the runs of one results folder share a budget."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from ace_bench.store.call_log import FILE as CALLS
from ace_bench.store.call_log import CallLog, Cost
from ace_bench.store.files import DRAFT
from ace_bench.store.lines import DiskGuard

FILE = "budget.json"
_POLL_S = 0.002
_LOOK_S = 1.0
"""How often the other run folders are looked at."""


class _Entry(msgspec.Struct, kw_only=True):
    """What a run has spent by its ``calls.jsonl`` of ``size`` bytes, and has reserved for its calls in flight."""

    size: int
    spent: Cost
    reserved: Cost = Cost()


@dataclass(frozen=True, kw_only=True)
class OtherRuns:
    """What other runs have spent and reserved, and whether one of them has calls in flight."""

    cost: Cost = field(default_factory=Cost)
    in_flight: bool = False


class SharedSpending:
    """Lets the runs of a results folder share a budget.

    The file is only a summary of their ``calls.jsonl``, with reservations beside it. What a run has spent that is not
    running is read from its calls again whenever these have changed, so a killed run is neither lost nor counted twice.
    """

    def __init__(self, folder: Path, run: Path):
        self._folder = folder
        self._name = str(run.relative_to(folder))
        self._lock = FileLock(folder / f".{FILE}.lock", poll_interval=_POLL_S)
        self._running = FileLock(_mark(run), thread_local=False)
        self._gate = DiskGuard()
        self._entries: dict[str, _Entry] = {}
        self._look_again = 0.0

    def __str__(self) -> str:
        return f"the runs in {self._folder} together"

    @contextmanager
    def locked(self) -> Iterator[OtherRuns]:
        """Keep other runs from reserving, and yield what they cost so far; raises ``FolderUnwritable``."""
        with self._gate.writing(self._folder), self._lock:
            if not self._running.is_locked:
                self._running.acquire()
            self._entries = self._read()
            if time.monotonic() > self._look_again:
                self._entries = self._correct_entries(self._entries)
                self._look_again = time.monotonic() + _LOOK_S
            others = [entry for name, entry in self._entries.items() if name != self._name]
            cost = reduce(add, (entry.spent + entry.reserved for entry in others), Cost())
            yield OtherRuns(cost=cost, in_flight=any(entry.reserved.calls for entry in others))

    def book(self, spent: Cost, reserved: Cost) -> None:
        """Note what this run has spent and reserved; only inside of ``locked``."""
        size = _size(self._folder / self._name / CALLS)
        self._entries[self._name] = _Entry(size=size, spent=spent, reserved=reserved)
        draft = self._folder / f".{FILE}{DRAFT}"
        draft.write_bytes(msgspec.json.encode(self._entries))  # what a power failure takes is counted again
        draft.replace(self._folder / FILE)

    def close(self) -> None:
        """Note that this run is not running any more."""
        self._running.release()

    def _read(self) -> dict[str, _Entry]:
        try:
            return msgspec.json.decode((self._folder / FILE).read_bytes(), type=dict[str, _Entry])
        except (FileNotFoundError, msgspec.DecodeError):
            self._look_again = 0.0
            return {}

    def _correct_entries(self, noted: dict[str, _Entry]) -> dict[str, _Entry]:
        """Return the entries of all runs that there are, corrected where one is not running and its calls changed."""
        found = {}
        for calls in self._folder.glob(f"*/*/seed*/{CALLS}"):
            name = str(calls.parent.relative_to(self._folder))
            entry = noted.get(name)
            if name != self._name and (entry is None or not _is_settled(entry, calls)):
                entry = _Entry(size=_size(calls), spent=Cost.from_account(CallLog(calls).ledger.total))
            if entry is not None:
                found[name] = entry
        return found


def _is_settled(entry: _Entry, calls: Path) -> bool:
    """Whether an entry says what a run costs: its process still keeps it, or its calls are the same."""
    if not entry.reserved.calls and entry.size == _size(calls):
        return True
    try:
        with FileLock(_mark(calls.parent), timeout=0):
            return False
    except Timeout:
        return True


def _mark(run: Path) -> Path:
    """Return the file that is locked while a run shares its spending."""
    return run / ".sharing"


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
