"""The content of ``metrics.json``, computed from a finished run; the README documents every key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from typing import Any

import msgspec
import numpy as np

from ace_bench.core.backbones import GENERATOR, JUDGE, Backbone, ListPriced, Priced
from ace_bench.core.context import Citable
from ace_bench.core.errors import UNREADABLE
from ace_bench.core.method import FINAL_TRIAL, POST_UPDATE_ROLLOUT, VERIFIED
from ace_bench.core.model_names import count_models
from ace_bench.core.statistics import blocks, bootstrap_interval, clusters, score_bounds
from ace_bench.core.task import Task, headline_score
from ace_bench.core.types import Record, Stage, Usage
from ace_bench.runners.arena import fault_of
from ace_bench.runners.experiment import Experiment
from ace_bench.runners.loop import RunOutcome
from ace_bench.runners.timing import timing_of
from ace_bench.store.call_log import Account, Ledger
from ace_bench.store.calls import StoredCall, restore_calls, stored_calls
from ace_bench.store.fidelity import certify
from ace_bench.store.gains import measure_gain, query_cost
from ace_bench.store.journal import Journal, RolloutRecord
from ace_bench.store.role_counts import count_roles
from ace_bench.store.roles import Roles, record_of

SCHEMA = 1
_DIGITS = 4
_ROUNDING = 0.01
"""Largest difference between a headline and the mean of its scores, in percentage points."""


@dataclass(kw_only=True)
class _StageSums:
    """Sums over the rollouts of one stage; ``faults`` include faults of adaptation steps, by ``role/owner/kind``."""

    rollouts: int = 0
    restarts: int = 0
    dropped: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)


def run_metrics(experiment: Experiment, outcome: RunOutcome, metadata: Record) -> Record:
    """Return the metrics of a run. Interrupting and continuing a run only changes ``timing`` and ``cache``."""
    journal, ledger, task = experiment.folder.journal, experiment.folder.calls.ledger, experiment.arena.task
    sums, operations = _sum_journal(journal, learn_unreadable=experiment.arena.learns_unreadable)
    stream = metadata["mode"] == "online" and bool(journal.steps)
    calls = stored_calls(experiment.folder.path).entries
    metrics = {
        "schema": SCHEMA,
        **metadata,
        "headline": _headline(task, outcome, stream=stream),
        **_gain(task, outcome, stream=stream),
        "query": _query_costs(outcome, calls),
        "splits": {outcome.split: _split(task, outcome)},
        "validation": [*outcome.validation],
        **_learning(task, journal),
        **_trials(journal),
        **_verification(journal),
        "context": {
            "kind": outcome.context.kind,
            "items": outcome.context.size,
            "tokens": outcome.context.tokens,
            "digest": outcome.context.digest,
        },
        **_rollout_counts(sums, steps=len(journal.steps), operations=operations),
        **_reply_counts(ledger, experiment.arena.backbone),
        "unreadable_replies": _by_stage(lambda stage: dict(sorted((+sums[stage].unreadable).items()))),
        "tokens": {**_by_stage(lambda stage: _tokens(ledger.stage(stage))), "total": _tokens(ledger.total)},
        "usd": {**_by_stage(lambda stage: ledger.stage(stage).usage.usd), "total": ledger.total.usage.usd},
        **_price_lists(ledger, experiment.arena.backbone),
        "replayed": _by_stage(lambda stage: ledger.stage(stage).replayed),
        "cache": _cache(journal, ledger, experiment.arena.backbone),
        "role_quality": record_of(_count_roles(experiment, outcome, calls)),
        "timing": timing_of(experiment),
    }
    return {**metrics, "as_authors": certify(experiment.folder.path, metrics)}


def _by_stage(value: Callable[[Stage], Any]) -> dict[str, Any]:
    return {stage.value: value(stage) for stage in Stage}


def _rollout_counts(sums: Mapping[Stage, _StageSums], *, steps: int, operations: Mapping[str, int]) -> Record:
    """Return what happened in the rollouts and steps, by the journal."""
    return {
        "rollouts": _by_stage(lambda stage: sums[stage].rollouts),
        "steps": steps,
        "operations": dict(sorted(operations.items())),
        "faults": _by_stage(lambda stage: dict(sorted(sums[stage].faults.items()))),
        "restarts": _by_stage(lambda stage: sums[stage].restarts),
        "dropped_items": _by_stage(lambda stage: sums[stage].dropped),
        "counters": _by_stage(lambda stage: dict(sorted(sums[stage].counters.items()))),
    }


def _reply_counts(ledger: Ledger, backbone: Callable[[str], Backbone]) -> Record:
    """Return the calls by role, how many of their replies were odd, and which models replied."""
    return {
        "calls": _by_stage(lambda stage: {role: paid.calls for role, paid in ledger.roles(stage).items()}),
        "cut_replies": _by_stage(lambda stage: _by_role(ledger, stage, "cut")),
        "blank_replies": _by_stage(lambda stage: _by_role(ledger, stage, "blank")),
        "thoughts": _by_stage(
            lambda stage: {
                role: {"replies": paid.thought, "characters": paid.thought_chars}
                for role, paid in ledger.roles(stage).items()
                if paid.thought
            }
        ),
        "several_objects": _by_stage(lambda stage: _by_role(ledger, stage, "several")),
        "all_reasoning_replies": _by_stage(lambda stage: _by_role(ledger, stage, "all_reasoning")),
        "models": count_models(
            (backbone(role).name, answered, number) for (role, answered), number in ledger.models().items()
        ),
    }


def _count_roles(experiment: Experiment, outcome: RunOutcome, calls: Sequence[StoredCall]) -> Roles:
    """Return how well each role did, by its calls in the run's folder."""
    folder, start = experiment.folder, experiment.beginning.start
    steps = folder.journal.steps if isinstance(start, Citable) else ()
    contexts = accumulate(steps, lambda context, step: context.patched(step.patch), initial=start)
    rollouts = [*folder.journal.rollouts.values()]
    return count_roles(restore_calls(calls), rollouts, folder.journal.steps, chain(contexts, [outcome.context]))


def _by_role(ledger: Ledger, stage: Stage, figure: str) -> dict[str, int]:
    """Return a figure of the account of each role in a stage; roles with 0 are left out."""
    numbers = {role: getattr(paid, figure) for role, paid in ledger.roles(stage).items()}
    return {role: number for role, number in numbers.items() if number}


def objective(metrics: Record) -> float:
    """Return the score that a search compares runs by: the best on validation, or the headline without validation."""
    scores: list[float] = [validation["score"] for validation in metrics["validation"]]
    return max(scores) if scores else float(metrics["headline"]["after"])


def _headline(task: Task, outcome: RunOutcome, *, stream: bool) -> Record:
    def score(records: Sequence[RolloutRecord]) -> float:
        return round(headline_score(task, [record.grade for record in records]), _DIGITS)

    after = score(outcome.after)
    interval = _interval(task, outcome.after, after, stream=stream)
    return {
        "split": outcome.split,
        "metric": task.headline,
        "before": None if outcome.before is None else score(outcome.before),
        "after": after,
        "ci95": None if interval is None else [round(bound, _DIGITS) for bound in interval],
        "n": len(outcome.after),
    }


def _gain(task: Task, outcome: RunOutcome, *, stream: bool) -> Record:
    """Return the gain over the score before adaptation, or nothing where it is not known for each sample."""
    if outcome.before is None:
        return {}
    order = outcome.after if stream else sorted(outcome.after, key=lambda record: record.sample)
    first, last = {record.sample: record.grade for record in outcome.before}, [record.grade for record in order]
    change = headline_score(task, last) - headline_score(task, [*first.values()])
    gain = measure_gain([first[record.sample] for record in order], last, change, stream=stream)
    return {} if gain is None else {"gain": {**msgspec.structs.asdict(gain), "ci95": [*gain.ci95]}}


def _query_costs(outcome: RunOutcome, calls: Sequence[StoredCall]) -> Record:
    """Return what an answer costs on average, before and after adaptation."""
    rollouts = {"before": outcome.before or (), "after": outcome.after}
    keys = {name: [record.key for record in records] for name, records in rollouts.items()}
    return {name: query_cost((call.record for call in calls), wanted) for name, wanted in keys.items()}


def _interval(
    task: Task, records: Sequence[RolloutRecord], value: float, *, stream: bool
) -> tuple[float, float] | None:
    """Return 95% bounds of the headline, as tables do for one seed; a bootstrap if it is not the mean of the scores.

    The records of a stream are in its order, and consecutive ones depend on each other.
    """
    if not stream:
        records = sorted(records, key=lambda record: record.sample)  # bounds must not depend on the order of replies
    scores = np.array([[record.grade.score for record in records]])
    if not scores.size:
        return None
    if abs(100 * float(scores.mean()) - value) > _ROUNDING:
        grades = [record.grade for record in records]
        return bootstrap_interval(grades, partial(headline_score, task), group=lambda grade: grade.group)
    groups = clusters(range(len(records)), lambda place: records[place].grade.group)
    bounds = score_bounds(scores, blocks(groups) if stream else groups)
    return None if bounds is None else (100 * bounds[0], 100 * bounds[1])


def _split(task: Task, outcome: RunOutcome) -> Record:
    def describe(records: Sequence[RolloutRecord] | None) -> Record | None:
        if records is None:
            return None
        answered = [record.grade for record in records if fault_of(task, record) is None]
        scores = task.score([record.grade for record in records])
        if 0 < len(answered) < len(records):  # as the official code counts, which leaves failed samples out
            scores = {**scores, f"{task.headline}_without_faults": headline_score(task, answered)}
        return {"n": len(records), "faults": len(records) - len(answered), **_round_scores(scores)}

    return {"before": describe(outcome.before), "after": describe(outcome.after)}


def _learning(task: Task, journal: Journal) -> Record:
    """Return the scores on the learnt samples before and after curation, or nothing without such rollouts."""
    pairs = [event for step in journal.steps for event in step.events if event["event"] == POST_UPDATE_ROLLOUT]
    if not pairs:
        return {}

    def score(which: str) -> Record:
        return _round_scores(task.score([journal.rollouts[event[which]].grade for event in pairs]))

    return {"learning": {"n": len(pairs), "before": score("first"), "after_curation": score("again")}}


def _trials(journal: Journal) -> Record:
    """Return the mean number of trials of a sample, where a method tries samples again."""
    numbers = [event["trials"] for step in journal.steps for event in step.events if event["event"] == FINAL_TRIAL]
    return {"trials": {"n": len(numbers), "mean": round(sum(numbers) / len(numbers), _DIGITS)}} if numbers else {}


def _verification(journal: Journal) -> Record:
    """Return how many changes were kept and refused by their check, and what that cost; nothing where none was made."""
    checks = [event for step in journal.steps for event in step.events if event["event"] == VERIFIED]
    attempts = {key for check in checks for key in check["attempts"]}
    if not checks:
        return {}
    kept = sum(check["kept"] for check in checks)
    calls = sum(journal.rollouts[key].calls for key in attempts)
    return {"verification": {"kept": kept, "refused": len(checks) - kept, "rollouts": len(attempts), "calls": calls}}


def _round_scores(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: round(score, _DIGITS) for name, score in scores.items()}


def _sum_journal(journal: Journal, *, learn_unreadable: bool) -> tuple[Mapping[Stage, _StageSums], Mapping[str, int]]:
    """Sum the journal up in one pass: its rollouts by stage, and the events of its steps by kind without faults.

    With ``learn_unreadable`` an unreadable reply is counted by its role and is not a fault.
    """
    sums = {stage: _StageSums() for stage in Stage}
    operations: Counter[str] = Counter()
    for record in journal.rollouts.values():
        stage = sums[record.stage]
        stage.rollouts += 1
        stage.restarts += record.restarts
        stage.dropped += record.attempt.dropped
        stage.counters.update(record.attempt.counters)
        for role, fault in ((GENERATOR, record.fault), (JUDGE, record.judge_fault)):
            if fault is not None:
                stage.faults[f"{role}/{fault.owner}/{fault.kind}"] += 1
        stage.unreadable[GENERATOR] += bool(record.attempt.unreadable)
    for event in (event for step in journal.steps for event in step.events):
        if event["event"] == "fault" and learn_unreadable and event["kind"] in UNREADABLE:
            sums[Stage.ADAPT].unreadable[event["role"]] += 1
        elif event["event"] == "fault":
            sums[Stage.ADAPT].faults[f"{event['role']}/{event['owner']}/{event['kind']}"] += 1
        elif event["event"] not in (POST_UPDATE_ROLLOUT, FINAL_TRIAL, VERIFIED):
            operations[event["event"]] += 1
    return sums, operations


def _tokens(account: Account) -> Record:
    return {"in": account.usage.prompt, "out": account.usage.completion}


def _price_lists(ledger: Ledger, backbone: Callable[[str], Backbone]) -> Record:
    """Return the lists that prices come from, with their versions; nothing if all prices are set or unknown."""
    used = [backbone(role) for stage in Stage for role in ledger.roles(stage)]
    lists = {part.price_list for part in used if isinstance(part, ListPriced)} - {None}
    return {"price_lists": sorted(filter(None, lists))} if lists else {}


def _cache(journal: Journal, ledger: Ledger, backbone: Callable[[str], Backbone]) -> Record:
    """Return the cached tokens, their share of the input, and the share of its price saved (paper, section 4.7).

    The servers' own counters stand beside them, and give the share where replies report no cached tokens.
    """
    servers = _servers(journal)

    def describe(account: Account, stages: Iterable[Stage]) -> Record:
        cached, prompt = account.usage.cached, account.usage.prompt
        share = None if cached is None or not prompt else round(cached / prompt, _DIGITS)
        parts = [(backbone(role), paid.usage) for stage in stages for role, paid in ledger.roles(stage).items()]
        figures = {"cached_tokens": cached, "share": share, "saved": _share_saved(parts)}
        counted = [sums[stage] for sums in servers.values() for stage in stages if stage in sums]
        queries = sum(counters["queries"] for counters in counted)
        if share is not None or not queries:
            return figures
        return {
            **figures,
            "share": round(sum(counters["hits"] for counters in counted) / queries, _DIGITS),
            "counted_by": "servers",
        }

    parts: dict[str, Any] = {stage.value: describe(ledger.stage(stage), (stage,)) for stage in Stage}
    return {**parts, "total": describe(ledger.total, Stage), "servers": servers}


def _share_saved(parts: Iterable[tuple[Backbone, Usage]]) -> float | None:
    """Return the share of the input's price that was not billed; ``None`` if a price or a count is unknown."""
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
    """Return each server's own cache counters by stage; ``start`` says whether its cache was cold or warm."""
    servers: dict[str, dict[str, Any]] = {
        server: {"start": "warm" if queries else "cold"} for server, queries in journal.asked_before.items()
    }
    for record in journal.caches:
        sums = servers.setdefault(record.server, {"start": None}).setdefault(
            record.stage.value, {"queries": 0, "hits": 0}
        )
        sums["queries"] += record.queries
        sums["hits"] += record.hits
    return servers
