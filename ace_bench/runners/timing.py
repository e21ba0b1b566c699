"""How long a run took and how fast its model wrote: the part ``timing`` of ``metrics.json``."""

from __future__ import annotations

from ace_bench.core.backbones import GENERATOR
from ace_bench.core.types import Completion, ProbeReply, Record, Stage
from ace_bench.runners.experiment import Experiment
from ace_bench.runners.settings import place_of
from ace_bench.store.call_log import Ledger
from ace_bench.store.folder import ENDPOINTS, LONGEST
from ace_bench.store.journal import Journal
from ace_bench.store.results import read_object
from ace_bench.store.speed import times_slower


def timing_of(experiment: Experiment) -> Record:
    """Return seconds and speed by stage, and the speed of all calls and of the probe."""
    journal, ledger = experiment.folder.journal, experiment.folder.calls.ledger
    stages = {stage.value: _timing_of(journal, ledger, stage, experiment.arena.concurrency) for stage in Stage}
    return {**stages, "total": {**ledger.speed().record(), **_beside_probes(experiment)}}


def _timing_of(journal: Journal, ledger: Ledger, stage: Stage, concurrency: int) -> Record:
    """Return wall and model seconds, and the wall seconds without the waits of calls (divided by the concurrency)."""
    wall, account = journal.wall(stage), ledger.stage(stage)
    return {
        "wall_s": round(wall, 3),
        "model_s": round(account.seconds, 3),
        "retries": account.retries,
        "asked_again": account.asked_again,
        "waited_s": round(account.waited, 3),
        "wall_without_waiting_s": round(max(0.0, wall - account.waited / concurrency), 3),
        **ledger.speed(stage).record(),
    }


def _beside_probes(experiment: Experiment) -> Record:
    """Return how fast a probe's call wrote, and how many times slower the run's calls: of the slowest backbone."""
    path, calls = experiment.folder.path, experiment.folder.calls
    probes = read_object(path, ENDPOINTS) if (path / ENDPOINTS).exists() else {}
    replies: dict[str, list[Completion]] = {}
    for role in {role for stage in Stage for role in calls.ledger.roles(stage)}:
        key = place_of(role) if place_of(role) in probes else place_of(GENERATOR)
        replies.setdefault(key, []).extend(calls.replies(role))
    compared = [
        (slower, probe.tokens_per_s)
        for key, facts in probes.items()
        if LONGEST in facts
        and (slower := times_slower(probe := ProbeReply(**facts[LONGEST]), replies.get(key, ()))) is not None
    ]
    slower, rate = max(compared, default=(None, None))
    return {
        "probe_tokens_per_s": None if rate is None else round(rate, 3),
        "times_slower_than_probe": None if slower is None else round(slower, 3),
    }
