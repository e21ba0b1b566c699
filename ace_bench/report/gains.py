"""Whether a run helped: against its own score before adaptation, and against the base's runs that lie beside it."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import Record
from ace_bench.report.evidence import RolloutLine, evaluations, predictions, read_journal, tested_rollouts
from ace_bench.report.listing import asked
from ace_bench.report.records import RunSummary, latest_repetitions, read_run
from ace_bench.report.statistics import compare
from ace_bench.store.calls import StoredCall
from ace_bench.store.gains import (
    Gain,
    adapted,
    command_of_base,
    describe_cost,
    limits_of_one_run,
    marks_of_number,
    measure_gain,
    query_cost,
    score_name,
    subject_of,
)

NO_ANSWER: Record = {"sentences": [], "notes": [], "changed": [], "beside": []}
"""What is said of a run without a result."""
_PLAIN = {"base": "base", "ace": "ace_empty"}
"""What a method is compared with: all with the base, and ACE also with its own prompt without bullets."""


def base_folders(run: RunSummary) -> list[Path]:
    """Return the folders of finished runs beside a run that it may be compared with, in the same experiment."""
    if run.method == "base" or not run.finished or len(run.folder.parents) < 3:
        return []
    experiment = glob.escape(str(run.folder.parents[2]))
    methods = [plain for name, plain in _PLAIN.items() if name in ("base", run.method)]
    found = (glob.glob(f"{experiment}/{run.task}-{name}-{run.backbone}-*/*/seed*/metrics.json") for name in methods)
    return [Path(path).parent for paths in found for path in sorted(paths)]


class _Attempt(msgspec.Struct):
    answer: str | None = None


class _AnswerLine(RolloutLine, gc=False):
    """Rollouts with their answers."""

    attempt: _Attempt | None = None


def against_base(run: RunSummary) -> list[str]:
    """Say how a run differs from the base on the same samples, if the base was run on them. Raises ``StoreError``."""
    return [*filter(None, (_compare(run, bases) for bases in bases_of(run)))]


def bases_of(run: RunSummary) -> list[list[RunSummary]]:
    """Return the runs beside a run that it may be compared with: of each base those with most seeds.

    They asked the same model in the same way about the same samples. Raises ``StoreError``.
    """
    bases: dict[str, dict[str, list[RunSummary]]] = {}
    for folder in base_folders(run):
        with suppress(StoreError):  # a damaged base is no base
            base = read_run(folder)
            if base.finished and asked(base) == asked(run) and base.tested_samples:  # they are read here
                bases.setdefault(base.method, {}).setdefault(base.digest, []).append(base)
    return [max(runs.values(), key=len) for runs in bases.values()]


def _compare(run: RunSummary, bases: Sequence[RunSummary]) -> str:
    """Compare a run with the seeds of a base. Returns "" if they have no scores of the same samples."""
    seeds = latest_repetitions(bases, lambda base: base.seed)
    metric = run.metrics["headline"]["metric"]
    points = run.points(metric)
    base_points = {seed: scores for seed, base in seeds.items() if (scores := base.points(metric)) is not None}
    if points is None or not base_points:
        return ""
    try:
        tested = compare({run.seed: points}, base_points, base_adapts=False)
    except DataError:  # other samples
        return ""
    if tested.interval is None:
        return ""
    after = run.metrics["headline"]["after"]
    gain = Gain(
        n=tested.n,
        before=after - tested.difference,
        after=after,
        ci95=(tested.interval.low, tested.interval.high),
        p=tested.p,
        better=tested.better,
        worse=tested.worse,
        units=tested.test.removeprefix("t over "),  # of one run, and a base whose seeds are averaged
        detectable=tested.detectable,
    )
    seeds_text = f"{len(base_points)} seed{'s' * (len(base_points) != 1)}"
    subject = f"Over method={bases[0].method} ({seeds_text}) this run"
    return gain.describe(subject, score_name(run.metrics), marks=marks_of_number(run.metrics))


def answer_of(run: RunSummary, initial: str | None, calls: Iterable[StoredCall]) -> Record:
    """Return what the page of a finished run says first, and the samples whose scores differ before and after.

    ``initial`` is the digest of its first context, if it adapted. ``changed`` is against the run's own test before
    adaptation. For a run without one ``beside`` has an entry for each base that lies beside it. Runs of older versions
    are measured here. Raises ``StoreError``.
    """
    metrics = run.metrics
    if not metrics:
        return NO_ANSWER
    journal = read_journal(run.folder, _AnswerLine)
    after, before = tested_rollouts(journal, metrics), _before(run, journal, initial)
    pairs = [(before[sample], line) for sample, line in after.items() if sample in before]
    sentences = _own_gain(run, pairs) if before.keys() == after.keys() else []
    bases = bases_of(run)
    sentences += filter(None, (_compare(run, seeds) for seeds in bases))
    notes = list[str]()
    if not sentences and adapted(metrics):
        base = command_of_base(run.processes[-1].command if run.processes else None)
        sentences.append(
            f"No gain is measured: nothing was tested without what was learnt. For a comparison run {base}"
        )
    if adapted(metrics):
        notes.append(f"One run: {limits_of_one_run(metrics)}.")
    records = [call.record for call in calls]
    keys = {"before": [line.key for line in before.values()], "after": [line.key for line in after.values()]}
    cost = describe_cost(metrics, {name: query_cost(records, wanted) for name, wanted in keys.items()})
    notes += [f"Cost: {cost}."] * bool(cost)
    beside = [] if before else [_changed_from(_nearest(seeds, run.seed), after) for seeds in bases]
    return {"sentences": sentences, "notes": notes, "changed": _changed(pairs), "beside": beside}


def _nearest(seeds: Sequence[RunSummary], seed: int) -> RunSummary:
    """Return the run of a seed, or the first one: a base that draws nothing has one seed."""
    return next((base for base in seeds if base.seed == seed), seeds[0])


def _changed_from(base: RunSummary, after: Mapping[str, _AnswerLine]) -> Record:
    """Return the samples whose scores differ from those of a base run."""
    tested = tested_rollouts(read_journal(base.folder, _AnswerLine), base.metrics)
    pairs = [(tested[sample], line) for sample, line in after.items() if sample in tested]
    name = f"method={base.method}, seed {base.seed}"
    changed = [{**sample, "before": ""} for sample in _changed(pairs)]  # this run has no such rollout
    return {"name": name, "folder": str(base.folder), "changed": changed}


def _changed(pairs: Iterable[tuple[_AnswerLine, _AnswerLine]]) -> list[Record]:
    """Name the rollouts of samples whose scores differ, with the score and the answer of the first of both."""
    return [
        {
            "before": first.key,
            "after": last.key,
            "score": _score(first),
            "answer": first.attempt.answer if first.attempt else None,
        }
        for first, last in pairs
        if _score(first) != _score(last)
    ]


def _before(run: RunSummary, journal: Sequence[_AnswerLine], initial: str | None) -> Mapping[str, _AnswerLine]:
    """Return by sample the rollouts before adaptation: with the first context, or the first of several trials."""
    headline = run.metrics["headline"]
    if headline["before"] is None or initial is None:
        return {}
    if "trials" in run.metrics:
        return predictions(journal, headline["split"], first=True)
    return evaluations(journal, headline["split"], initial)


def _own_gain(run: RunSummary, pairs: Sequence[tuple[RolloutLine, RolloutLine]]) -> list[str]:
    metrics, headline = run.metrics, run.metrics["headline"]
    if recorded := metrics.get("gain"):
        gain: Gain | None = msgspec.convert(recorded, Gain)
    else:
        stream = metrics["mode"] == "online" and bool(metrics["steps"])
        ordered = sorted(pairs, key=lambda pair: (pair[1].grade.place, pair[1].sample) if pair[1].grade else (0, ""))
        grades = [(first.grade, last.grade) for first, last in ordered if first.grade and last.grade]
        before, after = [first for first, _ in grades], [last for _, last in grades]
        gain = measure_gain(before, after, headline["after"] - headline["before"], stream=stream)
    if gain is None:
        return []
    return [gain.describe(subject_of(metrics), score_name(metrics), marks=marks_of_number(metrics))]


def _score(line: RolloutLine) -> float | None:
    return line.grade.score if line.grade else None
