"""Where a sweep's runs go: this machine, the nodes of a Ray cluster, or jobs of Slurm. On each, ``Workers`` make them.

The launchers that Hydra's project publishes make each run in a process of its own, which could not share limits, or
need an older cloudpickle than other parts of this project.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ace_bench.cli.arguments import print_line
from ace_bench.cli.sweep_summary import note_failure, note_run
from ace_bench.core.settings import Count, check

if TYPE_CHECKING:
    from ace_bench.runners.composing import RunConfig
    from ace_bench.runners.host import RunEnd
    from ace_bench.runners.shared_limits import Part

_NAME = "hydra_plugins.ace_bench.launchers"
_PLAN = ("hydra/sweeper=planned", "hydra.sweeper.plan=")
"""Start of the words that name a sweep's plan, which ``cli.experiment`` adds to what the user typed."""
_NODES: Mapping[str, Mapping[str, Any]] = {
    # Hydra takes "basic" where no launcher is named. Its own could not share limits between runs.
    "basic": {"_target_": f"{_NAME}.ThreadsLauncher", "n_jobs": 1},
    "threads": {"_target_": f"{_NAME}.ThreadsLauncher", "n_jobs": -1},
    "ray": {"_target_": f"{_NAME}.RayLauncher", "init": {}, "remote": {}},
    "slurm": {"_target_": f"{_NAME}.SlurmLauncher"},
}
for _option, _node in _NODES.items():
    ConfigStore.instance().store(group="hydra/launcher", name=_option, node=dict(_node), provider="ace_bench")


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

    def result(
        self, overrides: Sequence[str], end: RunEnd | None, *, reason: str, printed: bool, logs: str = "its error above"
    ) -> JobReturn:
        """Return the result of a job; of a run without an end ``reason`` says why, and has a row in the sweep's table.

        ``printed``: the console has the errors of runs, else ``logs`` have them.
        """
        from ace_bench.runners.metrics import objective

        for folder in filter(Path.exists, end.folders if end else ()):  # another machine's may not be seen from here
            note_run(folder)
        if end is not None and end.status and printed and not self._searches:
            note_failure([] if end.folders else overrides)
        elif end is None or end.status:
            if end is None or not end.folders:
                note_failure(overrides)
            why = reason if end is None else f"this run ended with status {end.status}, see {logs}"
            job = JobReturn(overrides=list(overrides), status=JobStatus.FAILED)
            job.return_value = CompactHydraException(f"{' '.join(overrides)}: {why}")
            return job
        done = JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED)
        done.return_value = objective(end.metrics) if end.metrics else None
        return done

    def _results(
        self, runs: Sequence[Sequence[str]], shares: Sequence[list[RunEnd | None] | str], logs: str
    ) -> Sequence[JobReturn]:
        """Return the results of runs that were dealt out like cards; a share that did not end is why."""
        results = []
        for index, overrides in enumerate(runs):
            share, turn = shares[index % len(shares)], index // len(shares)
            end = None if isinstance(share, str) else share[turn]
            reason = share if isinstance(share, str) else "its share was stopped before it began"
            results.append(self.result(overrides, end, reason=reason, printed=False, logs=logs))
        return results


class ThreadsLauncher(RunsLauncher):
    """Makes ``n_jobs`` runs at a time in this process; -1: one a core, and all of them where calls are limited."""

    def __init__(self, n_jobs: int) -> None:
        if n_jobs != -1:
            check(n_jobs, Count, "hydra.launcher.n_jobs")
        self._at_a_time = n_jobs

    def launch(
        self,
        job_overrides: Sequence[Sequence[str]],
        initial_job_idx: int,  # noqa: ARG002 - jobs of later calls need no other numbers
    ) -> Sequence[JobReturn]:
        """Make all runs and return their results; Ctrl-C stops the runs cleanly and starts no further ones."""
        from ace_bench.core.console import Console
        from ace_bench.runners.board import Board, short_names
        from ace_bench.runners.schedule import cores
        from ace_bench.runners.workers import Workers, make_all

        workers = Workers(1, sweep=_sweep_command())
        count = self._at_a_time
        if count == -1:
            limited = workers.compose(tuple(job_overrides[0])).settings["max_calls_in_flight"] is not None
            count = len(job_overrides) if limited else cores()
        workers.count = min(len(job_overrides), count)
        runs = [tuple(overrides) for overrides in job_overrides]
        # One thing is shown: the runs together, or the only run.
        board = Board(Console(), len(runs), short_names(runs)) if len(runs) > 1 else None
        ends = make_all(job_overrides, workers, board)
        if workers.stopped.is_set():
            raise KeyboardInterrupt
        return [
            self.result(overrides, end, reason="", printed=True)
            for overrides, end in zip(job_overrides, ends, strict=True)
        ]


class RayLauncher(RunsLauncher):
    """Submits a share of the runs to each node. ``init`` and ``remote`` are Ray's options."""

    def __init__(self, init: Mapping[str, Any], remote: Mapping[str, Any]) -> None:
        self._init = init
        self._remote = remote

    def launch(
        self,
        job_overrides: Sequence[Sequence[str]],
        initial_job_idx: int,  # noqa: ARG002 - as above
    ) -> Sequence[JobReturn]:
        """Make all runs and return their results; the share of a node that dies is continued on another one."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from ace_bench.runners.workers import make_share

        configs, sweep = _compose_all(job_overrides), _sweep_command()
        owned = not ray.is_initialized()
        if owned:
            ray.init(**_plain(self._init))
        try:
            listed: Any = ray.nodes  # its types are wrong
            nodes = [node for node in listed() if node["Alive"] and node["Resources"].get("CPU")]
            parts = _divide(configs, len(nodes))
            make: Any = ray.remote(**_plain(self._remote))(make_share)
            pending = [
                make.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=True)).remote(
                    job_overrides[first :: len(parts)], configs[first :: len(parts)], part, sweep
                )
                for first, (node, part) in enumerate(zip(nodes, parts, strict=False))
            ]
            shares = [_ends(partial(ray.get, ref), ray.exceptions.RayError) for ref in pending]
            return self._results(job_overrides, shares, "its error above")
        finally:
            if owned:
                ray.shutdown()


class SlurmLauncher(RunsLauncher):
    """Submits ``array_parallelism`` jobs, each with its share of the runs. ``options`` are those of submitit."""

    def __init__(self, submitit_folder: str, max_num_timeout: int, array_parallelism: int, **options: Any) -> None:
        self._folder = submitit_folder
        self._timeouts = max_num_timeout
        self._jobs = array_parallelism
        self._options = options

    def launch(
        self,
        job_overrides: Sequence[Sequence[str]],
        initial_job_idx: int,  # noqa: ARG002 - as above
    ) -> Sequence[JobReturn]:
        """Make all runs and return their results; a job that is out of time is submitted again and continues."""
        import submitit

        executor = submitit.AutoExecutor(self._folder, cluster="slurm", slurm_max_num_timeout=self._timeouts)
        parameters = submitit.AutoExecutor._typed_parameters()
        executor.update_parameters(
            **{name if name in parameters else f"slurm_{name}": value for name, value in self._options.items()}
        )
        configs = _compose_all(job_overrides)
        parts = _divide(configs, self._jobs)
        shares = [(job_overrides[first :: len(parts)], configs[first :: len(parts)]) for first in range(len(parts))]
        sweeps = [_sweep_command()] * len(parts)
        jobs = executor.map_array(SlurmShare(), *zip(*shares, strict=True), parts, sweeps)
        ends = [_ends(job.result, submitit.core.utils.UncompletedJobError) for job in jobs]
        return self._results(job_overrides, ends, f"the logs in {Path(self._folder).parent}")


class SlurmShare:
    """Makes the runs of one job."""

    def __call__(
        self, runs: Sequence[Sequence[str]], configs: Sequence[RunConfig], part: Part, sweep: str
    ) -> list[RunEnd | None]:
        """Return how the runs ended."""
        from ace_bench.runners.workers import make_share

        return make_share(runs, configs, part, sweep)

    def checkpoint(self, *share: Any) -> Any:
        """Return what is submitted again when the time of a job is over."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, *share)


def _sweep_command() -> str:
    """Return the command that the user typed, which continues the sweep. Machines of a cluster cannot read it."""
    from ace_bench.store.processes import command_of

    return command_of([word for word in sys.argv[1:] if not word.startswith(_PLAN)])


def _compose_all(runs: Sequence[Sequence[str]]) -> list[RunConfig]:
    from ace_bench.runners.workers import Workers

    compose = Workers(1).compose
    return [compose(tuple(overrides)) for overrides in runs]


def _divide(configs: Sequence[RunConfig], most: int) -> list[Part]:
    """Return the part of the limits for each of at most ``most`` shares, and print the parts if there are limits."""
    from ace_bench.runners.shared_limits import divide_limits

    parts = divide_limits(configs, min(most, len(configs)))
    if limits := str(parts[0]):
        shares = "1 share, which" if len(parts) == 1 else f"{len(parts)} shares, each of which"
        print_line(f"{len(configs)} runs in {shares} has at most {limits}.")
    return parts


def _ends(wait: Callable[[], list[RunEnd | None]], failure: type[Exception]) -> list[RunEnd | None] | str:
    """Return how the runs of a share ended, or why it did not."""
    try:
        return wait()
    except failure as error:
        return str(error)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as plain values, without those set to null."""
    return {key: value for key, value in options.items() if value is not None}
