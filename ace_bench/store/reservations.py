"""What the calls of a run may cost that are under way, kept on disk until they are recorded.

A process that is killed leaves reservations that nothing settles: a provider may have billed these calls, so they count
against the budget for good. A line is one of these::

    {"id": "evaluate/q1/...", "calls": 1, "tokens": 5120, "usd": 0.02}
    {"settles": [17, 18]}

The second one names the numbers of the lines that count no longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path

import msgspec

from ace_bench.core.encoding import decoder_of
from ace_bench.store.call_log import FILE as CALLS
from ace_bench.store.call_log import CallLog, Cost
from ace_bench.store.lines import AppendLog, DiskGuard, read_lines

FILE = "reservations.jsonl"


class _Line(msgspec.Struct, kw_only=True):
    id: str = ""
    calls: int = 0
    tokens: int | None = 0
    usd: float | None = 0.0
    settles: tuple[int, ...] = ()

    @property
    def cost(self) -> Cost:
        return Cost(calls=self.calls, tokens=self.tokens, usd=self.usd)


def _parse(line: bytes) -> _Line:
    record: _Line = decoder_of(_Line).decode(line)
    return record


class ReservationLog(AppendLog[_Line]):
    """``reservations.jsonl``. The file appears with the first reservation; one thread at a time may use the log."""

    def __init__(self, path: Path, guard: DiskGuard | None = None):
        """Read the file; raises ``StoreError`` if it cannot be read."""
        super().__init__(read_lines(path, _parse), guard=guard, meaning="what calls under way may have cost is lost")
        lines = self.found.entries
        settled = {number for line in lines for number in line.settles}
        open_ = [line.cost for number, line in enumerate(lines, start=1) if line.calls and number not in settled]
        self.lost = reduce(add, open_, Cost())
        """What calls may have cost that were under way when earlier processes ended."""

    def reserve(self, call_id: str, cost: Cost) -> int:
        """Keep what a call may cost; return the number of the line. Raises ``FolderUnwritable``."""
        self.append({"id": call_id, "calls": cost.calls, "tokens": cost.tokens, "usd": cost.usd})
        return self.count

    def settle(self, numbers: Sequence[int]) -> None:
        """Note that a call is recorded, or cost nothing. Raises ``FolderUnwritable``."""
        self.append({"settles": numbers})


def read_costs(folder: Path) -> dict[Path, Cost]:
    """Return what each run in ``<results>/<name>`` has cost so far; raises ``StoreError`` for an unreadable file.

    Calls that were under way when a run was killed are included, because a provider may have billed them.
    """
    return {calls.parent: _read_cost(calls.parent) for calls in folder.glob(f"*/*/seed*/{CALLS}")}


def _read_cost(run: Path) -> Cost:
    answered = Cost.from_account(CallLog(run / CALLS).ledger.total)
    return answered + ReservationLog(run / FILE).lost
