"""The limits that many runs have together: calls in flight, and a budget.

The runs of a process share one ``SharedLimits``. A sweep on other machines gives each share of its runs a part of the
limits before it starts, because the machines cannot ask each other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path

from ace_bench.core.errors import AceBenchError, ConfigError
from ace_bench.runners.call_slots import Slots
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.identifying import identify
from ace_bench.runners.limits import Budget
from ace_bench.runners.reservations import Spending
from ace_bench.runners.settings import Settings, decode, read_settings
from ace_bench.store.call_log import Cost
from ace_bench.store.reservations import read_costs


@dataclass(frozen=True, kw_only=True)
class Part:
    """The part of a sweep's limits that one share of its runs has.

    ``budget`` is what these runs may spend from now on, and ``spent`` is what each run of the folder had spent before.
    A share that is started again has the same part, so it continues with what is left of that.
    """

    calls_in_flight: int | None = None
    folder: Path | None = None
    budget: Budget | None = None
    spent: Mapping[Path, Cost] = field(default_factory=dict)

    def __str__(self) -> str:
        slots = [] if self.calls_in_flight is None else [f"{self.calls_in_flight} calls in flight"]
        budget = [] if self.budget is None else [f"{self.budget.describe()} to spend"]
        return " and ".join(slots + budget)


NO_PART = Part()


class SharedLimits:
    """The slots for calls and the spending of shared budgets of all runs in a process."""

    def __init__(self, part: Part = NO_PART, runs: Sequence[RunConfig] = ()) -> None:
        """``part`` limits the ``runs`` of a share; raises ``StoreError`` if what they have spent cannot be read."""
        self._lock = threading.Lock()
        self._part = part
        self._slots: dict[int | None, Slots] = {}
        self._spending: dict[Path, Spending] = {}
        if part.folder is not None and part.budget is not None:
            self._spending[part.folder] = _spending_of_share(part.folder, part.budget, part.spent, runs)

    def slots(self, number: int | None) -> Slots:
        """Return the slots of the runs with ``max_calls_in_flight=number``."""
        with self._lock:
            limit = number if self._part.calls_in_flight is None else self._part.calls_in_flight
            return self._slots.setdefault(number, Slots(limit))

    def spending(self, run: Path, budget: Budget) -> Spending:
        """Return what counts against the budget of a run: its own calls, or the calls of all runs in its folder.

        The folder is ``<results>/<name>``. Earlier calls are read once. Raises ``StoreError`` if they cannot be read.
        """
        if not budget.shared:
            return Spending()
        folder = run.parents[2]
        with self._lock:
            if folder not in self._spending:
                remark = f" (the budget of the runs in {folder} together)"
                self._spending[folder] = Spending(by_run=read_costs(folder), remark=remark)
            return self._spending[folder]


def divide_limits(configs: Sequence[RunConfig], most: int) -> list[Part]:
    """Return the parts of at most ``most`` shares; each share gets at least one call in flight.

    Raises ``ConfigError`` if the runs have different limits, and ``StoreError`` if their spending cannot be read.
    """
    settings = {_limits_of(read_settings(config.settings)) for config in configs}
    if len(settings) > 1:
        raise ConfigError(
            "a sweep on other machines divides its limits: give all its runs the same max_calls_in_flight and, with "
            "budget.shared=true, the same budget, name and results"
        )
    ((calls, budget, folder),) = settings
    count = most if calls is None else min(most, calls)
    slots = [None if calls is None else calls // count + (share < calls % count) for share in range(count)]
    if budget is None:
        return [Part(calls_in_flight=number) for number in slots]
    spent = read_costs(folder)
    part = budget.divide(reduce(add, spent.values(), Cost()), count)
    return [Part(calls_in_flight=number, folder=folder, budget=part, spent=spent) for number in slots]


def _limits_of(settings: Settings) -> tuple[int | None, Budget | None, Path]:
    shared = settings.budget.shared and settings.budget.limits_calls
    folder = Path(settings.results) / settings.name if shared else Path()
    return settings.max_calls_in_flight, settings.budget if shared else None, folder


def _spending_of_share(
    folder: Path, budget: Budget, spent: Mapping[Path, Cost], configs: Sequence[RunConfig]
) -> Spending:
    """Return the spending of a share's runs, limited to its part beyond what they had spent before."""
    runs = set[Path]()
    for config in configs:
        with suppress(AceBenchError):  # the run itself reports its mistake
            runs.add(identify(decode(config)).folder)
    before = reduce(add, (cost for run, cost in spent.items() if run in runs), Cost())
    return Spending(
        by_run={run: cost for run, cost in read_costs(folder).items() if run in runs},
        limits=budget.raised_by(before),
        remark=f" (this share's part of the budget of the runs in {folder})",
    )
