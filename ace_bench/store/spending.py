"""What the runs of a results folder have spent, by their records."""

from __future__ import annotations

from pathlib import Path

from ace_bench.store.call_log import FILE as CALLS
from ace_bench.store.call_log import CallLog, Cost
from ace_bench.store.reservations import FILE as RESERVATIONS
from ace_bench.store.reservations import ReservationLog


def read_costs(folder: Path) -> dict[Path, Cost]:
    """Return what each run in ``<results>/<name>`` has cost so far; raises ``StoreError`` for an unreadable file.

    Calls that were under way when a run was killed are included, because a provider may have billed them.
    """
    return {calls.parent: _read_cost(calls.parent) for calls in folder.glob(f"*/*/seed*/{CALLS}")}


def _read_cost(run: Path) -> Cost:
    answered = Cost.from_account(CallLog(run / CALLS).ledger.total)
    return answered + ReservationLog(run / RESERVATIONS).lost
