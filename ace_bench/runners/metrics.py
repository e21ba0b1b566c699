"""From a finished run to ``metrics.json``; every key is documented in the README."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ace_bench.core.backbones import Backbone, Priced
from ace_bench.core.statistics import bootstrap_interval
from ace_bench.core.task import Task
from ace_bench.core.types import Record, Stage, Usage
from ace_bench.runners.experiment import Experiment, RunOutcome
from ace_bench.store.journal import Journal, RolloutRecord
from ace_bench.store.ledger import Account, Ledger

SCHEMA = 1
_DIGITS = 4


def run_metrics(experiment: Experiment, outcome: RunOutcome, about: Record) -> Record:
    """Return the metrics of a run. All but ``timing`` and ``cache`` is the same however often a run was cut."""
    journal, ledger = experiment.folder.journal, experiment.folder.calls.ledger
    return {
        "schema": SCHEMA,
        **about,
        "headline": _headline(experiment.arena.task, outcome),
        "splits": {outcome.split: _split(experiment.arena.task, outcome)},
        "validation": [*outcome.validation],
        "context": {
            "kind": outcome.context.kind,
            "items": outcome.context.size,
            "tokens": outcome.context.tokens,
            "digest": outcome.context.digest,
        },
        "rollouts": _count_by_stage(journal.rollouts.values()),
        "steps": len(journal.steps),
        "operations": _operations(journal),
        "faults": _faults(journal),
        "restarts": {
            stage.value: sum(r.restarts for r in journal.rollouts.values() if r.stage is stage) for stage in Stage
        },
        "dropped_items": {
            stage.value: sum(r.attempt.dropped for r in journal.rollouts.values() if r.stage is stage)
            for stage in Stage
        },
        "counters": {stage.value: _counters(journal, stage) for stage in Stage},
        "calls": {stage.value: {r: a.calls for r, a in ledger.roles(stage).items()} for stage in Stage},
        "tokens": {**{stage.value: _tokens(ledger.stage(stage)) for stage in Stage}, "total": _tokens(ledger.total)},
        "usd": {**{stage.value: ledger.stage(stage).usage.usd for stage in Stage}, "total": ledger.total.usage.usd},
        "replayed": {stage.value: ledger.stage(stage).replayed for stage in Stage},
        "cache": {**_cache(ledger, experiment.arena.backbone), "servers": _servers(journal)},
        "timing": {stage.value: _timing(journal, ledger, stage, experiment.arena.concurrency) for stage in Stage},
    }


def objective(metrics: Record) -> float:
    """Return the score that a search compares runs by: the best on validation, or the headline where there is none."""
    scores: list[float] = [seen["score"] for seen in metrics["validation"]]
    return max(scores) if scores else float(metrics["headline"]["after"])


def _headline(task: Task, outcome: RunOutcome) -> Record:
    grades = [record.grade for record in outcome.after]
    before = None
    if outcome.before is not None:
        before = _rounded(task.score([record.grade for record in outcome.before]))[task.headline]
    interval = bootstrap_interval(
        grades, lambda some: task.score(some)[task.headline], seed=0, group=lambda grade: grade.group
    )
    return {
        "split": outcome.split,
        "metric": task.headline,
        "before": before,
        "after": _rounded(task.score(grades))[task.headline],
        "ci95": None if interval is None else [round(bound, _DIGITS) for bound in interval],
        "n": len(grades),
    }


def _split(task: Task, outcome: RunOutcome) -> Record:
    def describe(records: Sequence[RolloutRecord] | None) -> Record | None:
        if records is None:
            return None
        faults = sum(record.fault is not None for record in records)
        return {"n": len(records), "faults": faults, **_rounded(task.score([record.grade for record in records]))}

    return {"before": describe(outcome.before), "after": describe(outcome.after)}


def _rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: round(score, _DIGITS) for name, score in scores.items()}


def _count_by_stage(records: Iterable[RolloutRecord]) -> Record:
    counts = Counter(record.stage for record in records)
    return {stage.value: counts[stage] for stage in Stage}


def _counters(journal: Journal, stage: Stage) -> Record:
    """Sum the figures that an agent keeps of its attempts, such as steps."""
    total: Counter[str] = Counter()
    for record in journal.rollouts.values():
        if record.stage is stage:
            total.update(record.attempt.counters)
    return dict(sorted(total.items()))


def _operations(journal: Journal) -> Record:
    """Count what happened to the context, by kind of event (``fault`` events are counted as faults)."""
    counts = Counter(event["event"] for step in journal.steps for event in step.events)
    return {name: counts[name] for name in sorted(counts) if name != "fault"}


def _faults(journal: Journal) -> Record:
    """Count faults by stage, then ``role/owner/kind``; those of rollouts are the generator's."""
    counts: dict[str, Counter[str]] = {stage.value: Counter() for stage in Stage}
    for record in journal.rollouts.values():
        for role, fault in (("generator", record.fault), ("judge", record.judge_fault)):
            if fault is not None:
                counts[record.stage.value][f"{role}/{fault.owner}/{fault.kind}"] += 1
    for step in journal.steps:
        for event in step.events:
            if event["event"] == "fault":
                counts[Stage.ADAPT.value][f"{event['role']}/{event['owner']}/{event['kind']}"] += 1
    return {stage: dict(sorted(faults.items())) for stage, faults in counts.items()}


def _tokens(account: Account) -> Record:
    return {"in": account.usage.prompt, "out": account.usage.completion}


def _cache(ledger: Ledger, backbone: Callable[[str], Backbone]) -> Record:
    """Say what prefix caches served, and what share of the input's full price that saved (paper, section 4.7)."""

    def describe(account: Account, stages: Iterable[Stage]) -> Record:
        cached, prompt = account.usage.cached, account.usage.prompt
        share = None if cached is None or not prompt else round(cached / prompt, _DIGITS)
        parts = [(backbone(role), paid.usage) for stage in stages for role, paid in ledger.roles(stage).items()]
        return {"cached_tokens": cached, "share": share, "saved": _saved(parts)}

    parts: dict[str, Any] = {stage.value: describe(ledger.stage(stage), (stage,)) for stage in Stage}
    return {**parts, "total": describe(ledger.total, Stage)}


def _saved(parts: Iterable[tuple[Backbone, Usage]]) -> float | None:
    """Return the share of the input's price that was not billed; ``None`` where a price or a count is unknown."""
    full = billed = 0.0
    for backbone, usage in parts:
        if not isinstance(backbone, Priced):
            return None
        prices = [backbone.dollars(Usage(prompt=usage.prompt, completion=0, cached=hit)) for hit in (0, usage.cached)]
        if prices[0] is None or prices[1] is None:
            return None
        full, billed = full + prices[0], billed + prices[1]
    return round(1 - billed / full, _DIGITS) if full else None


def _servers(journal: Journal) -> Record:
    """Say what each server's own counters tell, by stage; ``start`` is how full its cache was for this run."""
    servers: dict[str, dict[str, Any]] = {
        server: {"start": "warm" if asked else "cold"} for server, asked in journal.asked_before.items()
    }
    for record in journal.caches:
        sums = servers.setdefault(record.server, {"start": None}).setdefault(
            record.stage.value, {"queries": 0, "hits": 0}
        )
        sums["queries"] += record.queries
        sums["hits"] += record.hits
    return servers


def _timing(journal: Journal, ledger: Ledger, stage: Stage, concurrency: int) -> Record:
    """Wall seconds, model seconds, and wall without what retries waited (shared among concurrent rollouts)."""
    wall, account = journal.wall(stage), ledger.stage(stage)
    return {
        "wall_s": round(wall, 3),
        "model_s": round(account.seconds, 3),
        "retries": account.retries,
        "waited_s": round(account.waited, 3),
        "wall_without_waiting_s": round(max(0.0, wall - account.waited / concurrency), 3),
    }
