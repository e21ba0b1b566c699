"""What the launchers share: the jobs of a sweep, each run by a function that another process can call."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, configure_log, filter_overrides, run_job, setup_globals
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

from ace_bench.cli.sweep_summary import note_failure

_log = logging.getLogger(__name__)

Shared = tuple[HydraContext, TaskFunction, Any]
"""What all jobs of a sweep need, besides a configuration each."""


class JobsLauncher(Launcher):
    """Composes the jobs of a sweep."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Store what Hydra passes for starting jobs."""
        self._context = hydra_context
        self._function = task_function
        self._config = config

    def composed(self, job_overrides: Sequence[Sequence[str]], first: int) -> tuple[Shared, list[DictConfig]]:
        """Return what the jobs share, and their configurations; ``first`` is the number of the first one."""
        setup_globals()
        configure_log(self._config.hydra.hydra_logging, self._config.hydra.verbose)
        Path(str(self._config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        configs = [self._composed(list(job), number) for number, job in enumerate(job_overrides, first)]
        return (self._context, self._function, Singleton.get_state()), configs

    def _composed(self, overrides: list[str], number: int) -> DictConfig:
        _log.info("#%d: %s", number, " ".join(filter_overrides(overrides)))
        config: DictConfig = self._context.config_loader.load_sweep_config(self._config, overrides)
        with open_dict(config):
            config.hydra.job.id = config.hydra.job.num = number
        return config


def run_in_worker(shared: Shared, config: DictConfig) -> JobReturn:
    """Run one job, in another process than the sweep's."""
    context, function, singletons = shared
    setup_globals()
    Singleton.set_state(singletons)
    return run_job(
        hydra_context=context,
        task_function=function,
        config=config,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )


def failed(overrides: Sequence[str], reason: str) -> JobReturn:
    """Return the result of a job whose worker died; it has a row in the sweep's table."""
    note_failure(overrides)
    found = JobReturn(overrides=list(overrides), status=JobStatus.FAILED)
    found.return_value = CompactHydraException(f"{' '.join(filter_overrides(overrides))}: {reason}")
    return found
