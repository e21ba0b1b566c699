"""Sweeps over Ray: each run is a Ray task.

The launcher that Hydra's project publishes needs an older cloudpickle than other parts of this project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn

from hydra_plugins.ace_bench_launchers.jobs import JobsLauncher, failed, run_in_worker

_NODE = {"_target_": "hydra_plugins.ace_bench_launchers.ray_launcher.RayLauncher", "init": {}, "remote": {}}
ConfigStore.instance().store(group="hydra/launcher", name="ray", node=_NODE, provider="ace_bench")


class RayLauncher(JobsLauncher):
    """Submits all jobs at once; Ray schedules them. ``init`` and ``remote`` are Ray's options."""

    def __init__(self, init: Mapping[str, Any], remote: Mapping[str, Any]) -> None:
        self._init = init
        self._remote = remote

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs and return their results; a failed job or a dead worker does not stop the others."""
        import ray

        jobs, configs = self.composed(job_overrides, initial_job_idx)
        owned = not ray.is_initialized()
        if owned:
            ray.init(**_plain(self._init))
        try:
            run = ray.remote(**_plain(self._remote))(run_in_worker)
            shared = ray.put(jobs)
            pending = [run.remote(shared, config) for config in configs]
            return [_result(ref, job) for ref, job in zip(pending, job_overrides, strict=True)]
        finally:
            if owned:
                ray.shutdown()


def _result(ref: Any, overrides: Sequence[str]) -> JobReturn:
    import ray

    try:
        found: JobReturn = ray.get(ref)
    except ray.exceptions.RayError as error:
        return failed(overrides, str(error))
    return found


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as plain values, without those set to null."""
    return {key: value for key, value in options.items() if value is not None}
