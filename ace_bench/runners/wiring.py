"""From a plan and a folder to a bench: door, meter and arena joined up."""

from __future__ import annotations

from ace_bench.core.protocols import Selective
from ace_bench.core.types import Stage
from ace_bench.runners.arena import RunArena, whole
from ace_bench.runners.assemble import Plan
from ace_bench.runners.bench import Bench
from ace_bench.runners.door import Door
from ace_bench.runners.meter import Meter, Observer
from ace_bench.runners.stopping import Stop
from ace_bench.store.folder import RunFolder
from ace_bench.store.responses import Responses


def make_bench(
    folder: RunFolder,
    plan: Plan,
    stop: Stop,
    observers: tuple[Observer, ...],
    responses: Responses | None = None,
) -> Bench:
    """Join the parts of one run; all its calls go through one door into one folder."""
    journal, calls = folder.journal, folder.calls
    folder.gate.on_failure = stop.request
    meter = Meter(spent=lambda: calls.ledger.total, observers=observers)
    door = Door(
        calls=calls,
        budget=plan.budget,
        stop=stop,
        wall=lambda: sum(journal.wall(stage) for stage in Stage),
        faults=plan.faults,
        responses=responses,
        seed=plan.seed,
    )
    arena = RunArena(
        task=plan.task,
        agent=plan.agent,
        prompts=plan.prompts,
        backbones=plan.backbones,
        labels=plan.labels,
        limits=plan.limits,
        concurrency=plan.concurrency,
        door=door,
        journal=journal,
        meter=meter,
        seed=plan.seed,
        stage=Stage.EVALUATE,
        shown=plan.method.shown if isinstance(plan.method, Selective) else whole,
    )
    return Bench(method=plan.method, arena=arena, folder=folder, meter=meter, seed=plan.seed)
