"""Where a sweep's runs go: over the cores of this machine, or over Ray. Each run is made from its composed settings.

The launchers that Hydra's project publishes end a whole sweep when one worker is killed for want of memory, or need an
older cloudpickle than other parts of this project.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ace_bench.cli.sweep_summary import note_failure, note_run
from ace_bench.core.settings import Count, check

if TYPE_CHECKING:
    from ace_bench.runners.run import RunEnd
    from ace_bench.runners.schedule import Batch
    from ace_bench.runners.workers import Outcome

_NAME = "hydra_plugins.ace_bench_launchers.launchers"
_NODES: Mapping[str, Mapping[str, Any]] = {
    "cores": {"_target_": f"{_NAME}.CoresLauncher", "n_jobs": -1},
    "ray": {"_target_": f"{_NAME}.RayLauncher", "init": {}, "remote": {}},
}
for _option, _node in _NODES.items():
    ConfigStore.instance().store(group="hydra/launcher", name=_option, node=dict(_node), provider="ace_bench")

_log = logging.getLogger(__name__)


class RunsLauncher(Launcher):
    """Returns the ends of runs as Hydra's sweepers take them."""

    def setup(
        self,
        *,
        hydra_context: HydraContext,  # noqa: ARG002 - runs need nothing of Hydra
        task_function: TaskFunction,  # noqa: ARG002
        config: DictConfig,
    ) -> None:
        """Store what is known of the sweep: a search needs a score of each run."""
        self._searches = "BasicSweeper" not in config.hydra.sweeper._target_

    def result(self, overrides: Sequence[str], end: RunEnd | None, *, reason: str, shown: bool) -> JobReturn:
        """Return the result of a job; of a run without an end ``reason`` says why, and has a row in the sweep's table.

        ``shown``: the console has the errors of runs.
        """
        from ace_bench.runners.metrics import objective

        for folder in end.folders if end else ():
            note_run(folder)
        if end is not None and end.status and shown and not self._searches:
            note_failure([] if end.folders else overrides)
        elif end is None or end.status:
            if end is None or not end.folders:
                note_failure(overrides)
            why = reason if end is None else f"this run ended with status {end.status}, see its error above"
            found = JobReturn(overrides=list(overrides), status=JobStatus.FAILED)
            found.return_value = CompactHydraException(f"{' '.join(overrides)}: {why}")
            return found
        done = JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED)
        done.return_value = objective(end.metrics) if end.metrics else None
        return done


class CoresLauncher(RunsLauncher):
    """Runs ``n_jobs`` jobs at a time in worker processes, -1 for one a core."""

    def __init__(self, n_jobs: int) -> None:
        if n_jobs != -1:
            check(n_jobs, Count, "hydra.launcher.n_jobs")
        self._workers = n_jobs

    def launch(
        self,
        job_overrides: Sequence[Sequence[str]],
        initial_job_idx: int,  # noqa: ARG002 - jobs of later calls need no other numbers
    ) -> Sequence[JobReturn]:
        """Run all jobs and return their results; Ctrl-C stops the runs cleanly and starts no further ones."""
        from ace_bench.runners.schedule import Schedule, cores
        from ace_bench.runners.workers import DIED, Workers

        found: dict[int, JobReturn] = {}

        def words(jobs: Iterable[int]) -> dict[int, tuple[str, ...] | None]:
            return {job: tuple(job_overrides[job]) for job in jobs}

        def note(batch: Batch[int], outcome: Outcome) -> None:
            for job in batch.jobs:
                found[job] = self.result(batch.words, outcome.end, reason=DIED, shown=True)

        jobs = range(len(job_overrides))
        workers = Workers(min(len(jobs), cores() if self._workers == -1 else self._workers))
        workers.make(Schedule(jobs=jobs, words=words, chain=lambda job: -job), note)
        if workers.stopped.is_set():
            raise KeyboardInterrupt
        return [found[job] for job in jobs]


class RayLauncher(RunsLauncher):
    """Submits all jobs at once; Ray schedules them. ``init`` and ``remote`` are Ray's options."""

    def __init__(self, init: Mapping[str, Any], remote: Mapping[str, Any]) -> None:
        self._init = init
        self._remote = remote

    def launch(
        self,
        job_overrides: Sequence[Sequence[str]],
        initial_job_idx: int,  # noqa: ARG002 - as above
    ) -> Sequence[JobReturn]:
        """Run all jobs and return their results; a failed job or a dead worker does not stop the others."""
        import ray

        from ace_bench.core.resources import config_folders
        from ace_bench.runners.composing import compose_run
        from ace_bench.runners.planning import Composer
        from ace_bench.runners.workers import make_run

        compose = Composer(config_folders())
        configs = [compose_run(words, compose) for words in job_overrides]
        owned = not ray.is_initialized()
        if owned:
            ray.init(**_plain(self._init))
        try:
            run = ray.remote(**_plain(self._remote))(make_run)
            pending = [run.remote(config, words) for config, words in zip(configs, job_overrides, strict=True)]
            return [self._end(ref, words) for ref, words in zip(pending, job_overrides, strict=True)]
        finally:
            if owned:
                ray.shutdown()

    def _end(self, ref: Any, overrides: Sequence[str]) -> JobReturn:
        import ray

        try:
            end: RunEnd = ray.get(ref)
        except ray.exceptions.RayError as error:
            return self.result(overrides, None, reason=str(error), shown=False)
        end.folders = [*filter(Path.exists, end.folders)]  # another machine's may not be seen from here
        return self.result(overrides, end, reason="", shown=False)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as plain values, without those set to null."""
    return {key: value for key, value in options.items() if value is not None}
