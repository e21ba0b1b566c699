"""The state of the runs of a result: finished, begun, or missing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from ace_bench.cli.reproducing.request import Job
from ace_bench.core.program import command_line
from ace_bench.report.histories import write_around_fall
from ace_bench.report.planned import TESTED, Compose, Need, Runs, run_overrides
from ace_bench.report.records import RunSummary, find_runs
from ace_bench.store.code import CodeReader, changed_modules
from ace_bench.store.processes import last_code

NAME = "paper"
"""The name that all these runs have in common."""


class State(StrEnum):
    """``waiting``: it needs a context of an unfinished run. ``needless``: that run never collapsed, so there is no
    context. ``changed``: it is finished, and code that decides its result changed since; running it again checks that.
    """

    FINISHED = "finished"
    CHANGED = "changed"
    BEGUN = "begun"
    MISSING = "missing"
    WAITING = "waiting"
    NEEDLESS = "needless"


class RunStates:
    """The runs in a results folder at one moment."""

    def __init__(self, results: Path, compose: Compose) -> None:
        """Read all runs under ``results``."""
        self._results = results
        self._compose = compose
        self._code = CodeReader()
        self._runs = Runs(find_runs(results).runs, compose)

    def run(self, job: Job) -> RunSummary | None:
        """Return the run on disk."""
        return self._runs.find(job.planned, seed=job.seed, extra=job.extra)

    def of(self, job: Job) -> State:
        """Return the state of a run; raises ``ConfigError`` where an override does not fit."""
        run = self.run(job)
        if run is not None:
            if not run.finished:
                return State.BEGUN
            code = self._code.code_of(self._compose([*(self._overrides(job) or ()), f"seed={job.seed}"]))
            return State.CHANGED if changed_modules(last_code(run.processes), code.modules) else State.FINISHED
        if self._overrides(job) is None:
            return State.WAITING
        return State.MISSING if all(self._made(job, need) for need in job.planned.needs) else State.NEEDLESS

    def command(self, job: Job) -> list[str] | None:
        """Return the arguments of ``ace-bench run``; ``None`` while a run that it needs is not finished."""
        overrides = self._overrides(job)
        if overrides is None:
            return None
        return [*overrides, f"seed={job.seed}", f"name={NAME}", f"results={self._results}"]

    def _made(self, job: Job, need: Need) -> bool:
        """Write the contexts around a run's sharpest fall; false where there was no fall."""
        run = self._runs.find(need.run, seed=job.seed, extra=job.extra)
        return need.context == TESTED or (run is not None and write_around_fall(run.folder))

    def _overrides(self, job: Job) -> list[str] | None:
        return self._runs.overrides(job.planned, seed=job.seed, extra=job.extra)


def as_typed(job: Job, compose: Compose, arguments: Sequence[str] | None = None) -> str:
    """Return a run's command as a user would type it; a context that does not exist yet is a comment."""
    words = arguments or [*run_overrides(job.planned, job.extra, compose), f"seed={job.seed}"]
    needs = "" if arguments else "".join(f"  # then {need.setting}=..." for need in job.planned.needs)
    return f"{command_line('run')} {shlex.join(words)}{needs}"
