"""Many runs on one server: makespan and cost, simulated from the calls of finished runs, and measured."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby
from pathlib import Path

from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Stage
from ace_bench.report.evidence import CallCosts, read_calls, read_steps
from ace_bench.report.records import find_runs
from benchmarks.fleet_made import Measured, make_fleet
from benchmarks.measuring import Grid, Setting, price_card

SLOTS = (1, 8, 64)
"""Calls in flight to plan for, unless others are given."""
_HOUR = 3600
_CALL_S = 0.2
_NOT_OF_SAMPLE = 3
"""Other sessions have at most so many parts. A sample's session is ``stage/[scope/]sample/context/trial``."""
_HEADINGS = ("slots", "makespan h", "longest chain h", "work / slots h", "makespan / bound", "slots in use", "list $")
_NOTES = (
    "Calls of a sample follow one another; so do the steps of adaptation. Samples under the same context go side by "
    "side, up to the run's concurrency. All runs start together, and a free slot goes to the adaptation that has most "
    "left to do, then to evaluations. The harness's own time and waiting of runs for contexts of others are left out.",
)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Samples that go side by side: for each the seconds of its calls, one after another."""

    adapts: bool
    chains: tuple[tuple[float, ...], ...]

    def seconds(self, concurrency: int) -> float:
        """Return the least time it takes with free slots."""
        sums = [sum(chain) for chain in self.chains]
        return max(*sums, sum(sums) / concurrency)


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """The phases of a run, one after another."""

    phases: tuple[Phase, ...]
    concurrency: int

    @property
    def chain(self) -> float:
        """The least time the run takes with free slots, in seconds."""
        return sum(phase.seconds(self.concurrency) for phase in self.phases)

    @property
    def work(self) -> float:
        """The seconds of all calls."""
        return sum(sum(chain) for phase in self.phases for chain in phase.chains)


def fleet(setting: Setting) -> list[Grid]:
    """finished runs on one server with some slots, simulated; with ``make`` they are made first, and measured"""
    slots = max(setting.slots or SLOTS)
    measured = None
    if setting.make:
        seconds = setting.call_seconds or _CALL_S
        setting = replace(setting, slots=(slots,), call_seconds=seconds)
        measured = make_fleet(setting.make, setting.scratch, slots=slots, call_seconds=seconds)
    runs = [run for run in find_runs(setting.scratch).runs if run.finished]
    if not runs:
        raise ConfigError(f"{setting.scratch} holds no finished runs: give --results DIR, the folder of recorded runs")
    calls = {run.folder: read_calls(run.folder) for run in runs}
    plans = [
        plan_of(run_calls, run.settings["concurrency"], steps=steps_of(run.folder), call_seconds=setting.call_seconds)
        for run, run_calls in zip(runs, calls.values(), strict=True)
    ]
    card = price_card(setting.prices)
    costs = [card.dollars(call.usage) for run_calls in calls.values() for call in run_calls]
    usd = "n/a" if None in costs else f"{sum(cost or 0 for cost in costs):,.2f}"
    chain, work = max(plan.chain for plan in plans), sum(plan.work for plan in plans)

    def row(slots: int, makespan: float, mark: str = "") -> tuple[str, ...]:
        hours = (f"{seconds / _HOUR:,.3f}" for seconds in (makespan, chain, work / slots))
        return (f"{slots}{mark}", *hours, f"{makespan / max(chain, work / slots):.2f}", f"{work / makespan:.1f}", usd)

    rows = [row(slots, simulate(plans, slots)) for slots in setting.slots or SLOTS]
    if measured is not None:
        rows.append(row(slots, measured.seconds, ", measured"))
    length = f"{setting.call_seconds:g} s a call" if setting.call_seconds else "calls as long as recorded"
    simulated = " [simulated backbone]" if any(run.simulated for run in runs) else ""
    title = f"Fleet: {len(runs)} runs, {len(costs):,} calls, {length}{simulated}"
    notes = _NOTES if measured is None else (*_NOTES, _measured_note(measured, len(costs)))
    return [Grid(title=title, headings=_HEADINGS, rows=tuple(rows), notes=notes)]


def _measured_note(measured: Measured, calls: int) -> str:
    cpu = f"{measured.cpu:.1f} s of CPU ({1000 * measured.cpu / calls:.2f} ms a call)"
    return (
        f"Measured is the whole command, from its start to its tables: {measured.seconds:.1f} s, {cpu}, "
        f"{measured.mib:.0f} MiB in {measured.processes} processes at most. The server is not counted."
    )


def steps_of(folder: Path) -> Mapping[str, int]:
    """Return the number of the step that learnt from a sample, by the part of its sessions that names the sample."""
    return {
        name: step.index
        for step in read_steps(folder)
        for sample in step.samples
        for name in (f"epoch{step.epoch}/{sample}", sample)
    }


def plan_of(
    calls: Iterable[CallCosts], concurrency: int, *, steps: Mapping[str, int], call_seconds: float | None = None
) -> RunPlan:
    """Read the phases of a run off its recorded calls and ``steps_of``; ``call_seconds`` is another length of calls."""
    sent = (call for call in calls if not call.replayed)
    groups = groupby(sent, key=lambda call: (call.stage, _beside(call, steps)))
    phases = (_phase(stage, members, call_seconds) for (stage, _), members in groups)
    return RunPlan(phases=tuple(phases), concurrency=concurrency)


def _beside(call: CallCosts, steps: Mapping[str, int]) -> int | str:
    """Return a key that concurrent calls share: their step, or else their context. Other sessions share no key.

    The context is not enough: it stays the same in steps that learn nothing.
    """
    parts = call.session.split("/")
    if len(parts) <= _NOT_OF_SAMPLE:
        return call.session
    step = steps.get("/".join(parts[1:-2])) if call.stage is Stage.ADAPT else None
    return parts[-2] if step is None else step


def _phase(stage: Stage, calls: Iterable[CallCosts], call_seconds: float | None) -> Phase:
    chains: dict[str, list[float]] = {}
    for call in calls:
        chains.setdefault("/".join(call.session.split("/")[:-2]), []).append(call_seconds or call.seconds)
    return Phase(adapts=stage is Stage.ADAPT, chains=tuple(map(tuple, chains.values())))


def simulate(plans: Sequence[RunPlan], slots: int) -> float:
    """Return the seconds until all calls of all runs are done, with at most ``slots`` in flight."""
    now, free, order = 0.0, slots, count()
    waiting: list[tuple[float, int, _Run, Iterator[float], float]] = []
    under_way: list[tuple[float, int, _Run, Iterator[float], float]] = []

    def ask(urgency: float, run: _Run, chain: Iterator[float]) -> None:
        if (seconds := next(chain, None)) is not None:
            heapq.heappush(waiting, (-urgency, next(order), run, chain, seconds))
        else:
            go_on(run)

    def go_on(run: _Run) -> None:
        for begun in iter(lambda: next(run, None), None):
            ask(begun[0], run, iter(begun[1]))

    for run in map(_begin_chains, plans):
        go_on(run)
    while waiting or under_way:
        while free and waiting:
            urgency, _, run, chain, seconds = heapq.heappop(waiting)
            heapq.heappush(under_way, (now + seconds, next(order), run, chain, -urgency))
            free -= 1
        now, _, run, chain, urgency = heapq.heappop(under_way)
        free += 1
        ask(urgency, run, chain)
    return now


_Run = Iterator[tuple[float, tuple[float, ...]] | None]


def _begin_chains(plan: RunPlan) -> _Run:
    """Yield each chain of calls when it may begin, with its urgency, and ``None`` to wait until one has ended."""
    for index, phase in enumerate(plan.phases):
        adapting = [later_phase for later_phase in plan.phases[index:] if later_phase.adapts]
        urgency = sum(later_phase.seconds(plan.concurrency) for later_phase in adapting) if phase.adapts else 0.0
        for number, chain in enumerate(phase.chains):
            if number >= plan.concurrency:
                yield None
            yield urgency, chain
        for _ in phase.chains[: plan.concurrency]:
            yield None
