"""Sweeps over Ray: each run is a Ray task.

The launcher that Hydra's project publishes needs an older cloudpickle than other parts of this project.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, configure_log, filter_overrides, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

_NODE = {"_target_": "hydra_plugins.ace_bench_ray.ray_launcher.RayLauncher", "init": {}, "remote": {}}
ConfigStore.instance().store(group="hydra/launcher", name="ray", node=_NODE, provider="ace_bench")

_log = logging.getLogger(__name__)


class RayLauncher(Launcher):
    """Submits all jobs at once; Ray schedules them. ``init`` and ``remote`` are Ray's options."""

    def __init__(self, init: Mapping[str, Any], remote: Mapping[str, Any]) -> None:
        self._init = init
        self._remote = remote

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Store what Hydra passes for starting jobs."""
        self._context = hydra_context
        self._function = task_function
        self._config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs and return their results; a failed job or a dead worker does not stop the others."""
        import ray

        setup_globals()
        configure_log(self._config.hydra.hydra_logging, self._config.hydra.verbose)
        Path(str(self._config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        configs = [self._composed(list(job), initial_job_idx + place) for place, job in enumerate(job_overrides)]
        owned = not ray.is_initialized()
        if owned:
            ray.init(**_plain(self._init))
        try:
            run = ray.remote(**_plain(self._remote))(_run)
            shared = ray.put((self._context, self._function, Singleton.get_state()))
            pending = [run.remote(shared, config) for config in configs]
            return [_result(ref, job) for ref, job in zip(pending, job_overrides, strict=True)]
        finally:
            if owned:
                ray.shutdown()

    def _composed(self, overrides: list[str], number: int) -> DictConfig:
        _log.info("#%d: %s", number, " ".join(filter_overrides(overrides)))
        config: DictConfig = self._context.config_loader.load_sweep_config(self._config, overrides)
        with open_dict(config):
            config.hydra.job.id = config.hydra.job.num = number
        return config


def _run(shared: tuple[HydraContext, TaskFunction, Any], config: DictConfig) -> JobReturn:
    """Run one job, in a Ray worker."""
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


def _result(ref: Any, overrides: Sequence[str]) -> JobReturn:
    import ray

    try:
        found: JobReturn = ray.get(ref)
    except ray.exceptions.RayError as error:
        _log.error("%s: %s", " ".join(overrides), error)
        found = JobReturn(overrides=list(overrides), status=JobStatus.FAILED)
        found.return_value = error
    return found


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as plain values, without those set to null."""
    return {key: value for key, value in options.items() if value is not None}
