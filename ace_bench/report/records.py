"""Run folders as frozen values, from which tables, figures and reports are made.

Finding runs reads ``identity.json``, and ``metrics.json`` or, for an unfinished run, ``environment.json`` and
``status.json``. Configuration, journal and calls are read on first use, and only the fields that are needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ace_bench.core.backbones import GENERATOR
from ace_bench.core.encoding import collector_paused
from ace_bench.core.errors import DataError, FolderDamaged, StoreError
from ace_bench.core.identity import FORM
from ace_bench.core.model_names import ModelCounts
from ace_bench.core.types import Record, Stage
from ace_bench.report.episodes import Episode, episodes_of, figure_of, long_ones
from ace_bench.report.evidence import (
    CallCosts,
    GradeScores,
    RolloutLine,
    collapsed,
    evaluates_other_context,
    points_of,
    read_calls,
    read_journal,
    read_steps,
    sharpest_fall,
    spent,
    tested_rollouts,
)
from ace_bench.report.folders import Problem, closed_folder, run_folders
from ace_bench.report.same_runs import settle_same_runs
from ace_bench.report.statistics import Points, mean_score
from ace_bench.store.fidelity import certify
from ace_bench.store.folder import is_in_use
from ace_bench.store.notes import Notes, read_notes
from ace_bench.store.processes import Process, parse_command, read_processes
from ace_bench.store.results import NOTHING, place_of_run, read_about, read_result, read_settings, read_status

RUNNING, STOPPED = "running", "stopped"
"""States of unfinished runs: a process works on it, or none does and the same command continues it."""
_SEED = re.compile(r"seed\d+(?:-(?P<attempt>\d+))?")
_SPENT = "spent."
_SPENT_TESTED = "spent.tested."
_EPISODES, _LONG = "episodes.", "long_episodes."
_FALL = ("fall.before.tokens", "fall.after.tokens")
_ROUNDING = 0.01
"""Maximum rounding difference between a metric and the mean of its points, in percentage points."""


@dataclass(frozen=True, kw_only=True)
class _JournalFacts:
    """The grades of the tested samples, and whether the context collapsed."""

    tested: Mapping[str, GradeScores]
    collapsed: bool


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run. ``metrics`` is empty until it has finished. ``state`` comes from ``status.json``.

    ``identity`` holds the settings that can change an answer and ``contents`` the checksums of data and templates, as
    the run wrote them (``identity.json``).

    ``attempt`` counts repetitions of one seed (``resume=false``) from 1. An ``older`` version made the run: no command
    continues it. A run is ``seeded`` if it draws something by its seed. ``asked_models`` are the names of models by
    role.
    """

    folder: Path
    task: str
    method: str
    backbone: str
    mode: str
    labels: str
    seed: int
    source: str
    simulated: bool
    digest: str
    identity: Record = field(repr=False)
    attempt: int = 1
    older: bool = False
    seeded: bool = True
    protocol: str = "paper"
    state: str = ""
    reason: str = ""
    metrics: Record = field(default_factory=dict, repr=False)
    contents: Record = field(default_factory=dict, repr=False)
    asked_models: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def model(self) -> str:
        """The name of the model that answers samples, as the run asks for it, or "" in runs of older versions."""
        return self.asked_models.get(GENERATOR, "")

    def asked_model(self, role: str) -> str:
        """Return the name of the model that a role asks for."""
        return self.asked_models.get(role, self.model)

    @property
    def models(self) -> ModelCounts:
        """Answered calls of a finished run, by the model that was asked for and the one that answered."""
        counts: ModelCounts = self.metrics.get("models", {})  # runs of older versions have none
        return counts

    @property
    def finished(self) -> bool:
        """Whether it has a result."""
        return bool(self.metrics)

    @property
    def comparable(self) -> bool:
        """Whether its numbers are comparable with published ones: a real model on real data."""
        return not self.simulated and self.source == "real"

    def context_file(self, name: str) -> Path:
        """Return the path of one of its contexts, such as ``tested``."""
        return self.folder / "contexts" / f"{name}.json"

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The resolved configuration. Raises ``StoreError``."""
        return read_settings(self.folder)

    @property
    def sweep(self) -> str:
        """The command that made it together with other runs, "" for a run of its own. Raises ``StoreError``."""
        sweeps = (process.sweep for process in reversed(self.processes))
        return next((sweep for sweep in sweeps if sweep and parse_command(sweep)), "")

    @cached_property
    def notes(self) -> Notes:
        """The tags and the note that a user gave it."""
        return read_notes(self.folder)

    @cached_property
    def processes(self) -> Sequence[Process]:
        """The processes that worked on the run. Raises ``StoreError``."""
        return read_processes(self.folder)

    def value(self, metric: str) -> float | None:
        """Return a number of the run, ``None`` if it is unknown.

        ``metric`` is one of the task's (``accuracy``) on the tested split after adaptation, a path into
        ``metrics.json`` (``rollouts.adapt``), ``spent.`` with a sum over calls as in ``evidence.spent``
        (``spent.adapt.reflector.all.in``, where the stage ``tested`` is ``evaluate`` without an evaluation before
        adaptation), ``fall.before.tokens`` and ``fall.after.tokens``: the size of the context before and after the
        step that removed most tokens, or ``episodes.`` with a figure of ``episodes.figure_of``. ``long_episodes.``
        gives it for episodes of five steps and more. ``A/B`` is one per another (``usd.total/n``).
        """
        if "/" in metric:
            dividend, divisor = map(self.value, metric.split("/", 1))
            return dividend / divisor if dividend is not None and divisor else None
        if metric.startswith(_SPENT_TESTED):
            return spent(self._tested_calls, f"{Stage.EVALUATE}.{metric.removeprefix(_SPENT_TESTED)}")
        if metric.startswith(_SPENT):
            return spent(self._calls, metric.removeprefix(_SPENT))
        if metric.startswith((_EPISODES, _LONG)):
            chosen = long_ones if metric.startswith(_LONG) else list
            return figure_of(chosen(self._episodes), metric.partition(".")[2]) if self.finished else None
        if metric in _FALL:
            sizes = [step.context_tokens for step in read_steps(self.folder)]
            self._expect("journal.jsonl", "steps", len(sizes), self.metrics.get("steps", 0))
            step = sharpest_fall(sizes)
            return None if step is None else sizes[step - 1 + _FALL.index(metric)]
        path = metric.split(".")
        value: Any = self.metrics
        if len(path) == 1 and self.finished:
            tested = self.metrics["splits"][self.metrics["headline"]["split"]]["after"]
            value = tested if metric in tested else self.metrics
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if isinstance(value, int | float) else None

    def points(self, metric: str) -> Points | None:
        """Return the scores that make up a metric of the tested split, for intervals and paired tests.

        ``None`` if the metric is not a mean over samples or groups. Raises ``StoreError`` if the journal is damaged.
        """
        figure = self.value(metric)
        points = points_of(self._tested, metric, self.metrics["headline"]["metric"])
        if not points or figure is None or abs(mean_score({self.seed: points}) - figure) > _ROUNDING:
            return None
        return points

    @cached_property
    def certificate(self) -> Record | None:
        """How far a finished run is as the authors' code is, or ``None`` if its records cannot tell."""
        try:
            return self.metrics.get("as_authors") or certify(self.folder, self.metrics)
        except StoreError:
            return None

    @cached_property
    def collapsed(self) -> bool:
        """Whether its context collapsed (paper, section 2.2). Raises ``StoreError``."""
        return self._journal.collapsed

    @property
    def tested_samples(self) -> list[str]:
        """Sorted ids of the samples that a finished run scored. Raises ``StoreError``."""
        return sorted(self._tested)

    @property
    def _tested(self) -> Mapping[str, GradeScores]:
        grades = self._journal.tested
        self._expect("journal.jsonl", "tested samples", len(grades), self.metrics["headline"]["n"])
        return grades

    @cached_property
    def _journal(self) -> _JournalFacts:
        """What tables need of the journal, which is read once and not kept: a folder may hold a thousand runs."""
        lines = read_journal(self.folder, RolloutLine)
        tested = tested_rollouts(lines, self.metrics) if self.finished else {}
        return _JournalFacts(
            tested={sample: line.grade for sample, line in tested.items() if line.grade},
            collapsed=collapsed([line.context_tokens for line in lines if line.kind == "step"]),
        )

    @cached_property
    def _calls(self) -> list[CallCosts]:
        calls = read_calls(self.folder)
        counted = self.metrics.get("calls", {}).values()
        self._expect("calls.jsonl", "calls", len(calls), sum(sum(roles.values()) for roles in counted))
        return calls

    @cached_property
    def _tested_calls(self) -> list[CallCosts]:
        """Calls, except in an evaluation before adaptation, which not every run makes (``mode.before``)."""
        split, tested = self.metrics["headline"]["split"], self.metrics["context"]["digest"]
        return [call for call in self._calls if not evaluates_other_context(call, split, tested)]

    @cached_property
    def _episodes(self) -> list[Episode]:
        return episodes_of(self.folder, settings=self.settings, metrics=self.metrics, calls=self._calls)

    def _expect(self, name: str, unit: str, count: int, wanted: int) -> None:
        """Compare with the count in the metrics, since the file itself does not show lines lost at its end."""
        if count < wanted:
            raise StoreError(
                f"{self.folder / name} holds {count} of {wanted} {unit}; restore the file, or repeat the run"
            )


def check_comparable(compared: RunSummary, base: RunSummary) -> None:
    """Raise ``DataError`` if the scores of two finished runs do not mean the same."""
    for subject, our_value, base_value in (
        ("the metric", *(run.metrics["headline"]["metric"] for run in (compared, base))),
        ("the data", compared.source, base.source),
        ("who answered", *("a stand-in" if run.simulated else "a model" for run in (compared, base))),
    ):
        if our_value != base_value:
            raise DataError(
                f"the runs differ in {subject} ({our_value}, {base_value}); compare runs that have the same"
            )


@dataclass(frozen=True, kw_only=True)
class Found:
    """All runs under some folders, in the order of their paths, and the ``damaged`` ones that cannot be read.

    ``copies`` are further folders of a run in ``runs``, with the same result. A run whose folders have different
    results is ``CONTRADICTORY`` in each of them, and has no result. ``problems`` name these, and folders with the name
    of another run, which count as what they record.
    """

    runs: tuple[RunSummary, ...]
    damaged: tuple[Problem, ...]
    copies: tuple[RunSummary, ...] = ()
    problems: tuple[Problem, ...] = ()


def find_runs(*folders: Path) -> Found:
    """Read all runs under some folders, at any depth. Damaged folders are listed with the reason."""
    runs, damaged = list[RunSummary](), list[Problem]()
    closed: list[str] = []
    with collector_paused():
        for folder in run_folders(*folders, on_closed=closed.append):
            try:
                runs.append(read_run(folder))
            except StoreError as error:
                damaged.append(Problem(folder=folder, reason=str(error)))
        misplaced = [*_misplaced(runs)]
    settled = settle_same_runs(runs)
    return Found(
        runs=settled.runs,
        damaged=(*damaged, *map(closed_folder, closed)),
        copies=settled.copies,
        problems=(*misplaced, *settled.problems),
    )


K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=RunSummary)


def latest_repetitions(runs: Iterable[R], key: Callable[[R], K]) -> dict[K, R]:
    """Return the run that counts for each key: the last repetition (``resume=false``) that finished."""
    return {key(run): run for run in sorted(runs, key=precedence)}


def precedence(run: RunSummary) -> tuple[bool, bool, int]:
    """Order repetitions of a run: the last one counts."""
    return run.finished, not run.older, run.attempt


def _misplaced(runs: Iterable[RunSummary]) -> Iterator[Problem]:
    """Yield the folders that have another run's name. Names of links are ignored."""
    parents: dict[str, str] = {}  # the seeds of a run share theirs, and to resolve a path takes long
    for run in runs:
        parent, name = os.path.split(run.folder)
        if parent not in parents:
            parents[parent] = os.path.realpath(parent)
        real = Path(parents[parent], name)
        expected = place_of_run(real.resolve() if real.is_symlink() else real, vars(run), run.digest)
        if expected.problem:
            yield Problem(folder=run.folder, reason=expected.problem)


def read_run(folder: Path) -> RunSummary:
    """Read one run folder, finished or not. Raises ``StoreError``."""
    metrics, identity = read_result(folder)
    metadata = metrics or read_about(folder)
    status = {"state": "finished"} if metrics else _ended_status(folder)
    attempt = _SEED.fullmatch(folder.name)
    protocol = metadata.get("protocol", "paper")
    if not isinstance(protocol, str) or not protocol.isidentifier():
        raise FolderDamaged(f"{folder} names a protocol that is no word; repeat the command of the run")
    keys = ("task", "method", "backbone", "mode", "labels", "seed", "source", "simulated", "digest")
    return RunSummary(
        folder=folder,
        **{key: metadata[key] for key in keys},
        identity=identity["settings"],
        contents=identity["contents"],
        protocol=protocol,
        attempt=int(attempt["attempt"] or 1) if attempt else 1,
        older=identity.get("form") != FORM,
        asked_models=metadata.get("roles", {}),
        seeded=metadata.get("drawn") != NOTHING,
        state=status["state"],
        reason=status.get("reason", ""),
        metrics=metrics or {},
    )


def _ended_status(folder: Path) -> Record:
    """Return the status of an unfinished run. A killed process could not write that it stopped."""
    status = read_status(folder)
    if status["state"] == RUNNING and not is_in_use(folder):
        return {"state": STOPPED, "reason": "its process ended without a word"}
    return status


def marks_of(*, simulated: bool, source: str) -> str:
    """Return the words that mark runs that cannot be compared with published numbers, or "" for others."""
    marks = ["simulated"] * simulated + ["sample data"] * (source == "sample")
    return f"[{', '.join(marks)}: not comparable with published numbers]" if marks else ""
