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


def against_base(run: RunSummary) -> list[str]:
    """Say how a run differs from the base on the same samples, if the base was run on them. Raises ``StoreError``."""
    bases: dict[str, dict[str, list[RunSummary]]] = {}
    for folder in base_folders(run):
        with suppress(StoreError):  # a damaged base is no base
            base = read_run(folder)
            if base.finished and asked(base) == asked(run):
                bases.setdefault(base.method, {}).setdefault(base.digest, []).append(base)
    return [*filter(None, (_compare(run, max(runs.values(), key=len)) for runs in bases.values()))]


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
    """Return what the page of a finished run says first, and the rollouts of each sample before and after adaptation.

    ``initial`` is the digest of its first context, if it adapted. ``changed`` names the rollouts by key, for samples
    whose scores differ. Runs of older versions are measured here. Raises ``StoreError``.
    """
    metrics = run.metrics
    if not metrics:
        return {"sentences": [], "notes": [], "changed": []}
    journal = read_journal(run.folder, RolloutLine)
    after, before = tested_rollouts(journal, metrics), _before(run, journal, initial)
    pairs = [(before[sample], line) for sample, line in after.items() if sample in before]
    sentences = _own_gain(run, pairs) if before.keys() == after.keys() else []
    sentences += against_base(run)
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
    changed = [[first.key, last.key] for first, last in pairs if _score(first) != _score(last)]
    return {"sentences": sentences, "notes": notes, "changed": changed}


def _before(run: RunSummary, journal: Sequence[RolloutLine], initial: str | None) -> Mapping[str, RolloutLine]:
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
