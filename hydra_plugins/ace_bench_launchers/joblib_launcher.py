"""Sweeps over the cores of this machine: workers of one process each, so that one that dies takes no other run along.

With one pool for all workers, as in the launcher that Hydra's project publishes, the operating system ends the whole
sweep when it ends one worker for want of memory.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, filter_overrides
from omegaconf import DictConfig

from ace_bench.core.settings import Count, check
from hydra_plugins.ace_bench_launchers.jobs import JobsLauncher, Shared, failed, run_in_worker

_NODE = {"_target_": "hydra_plugins.ace_bench_launchers.joblib_launcher.JoblibLauncher", "n_jobs": -1}
ConfigStore.instance().store(group="hydra/launcher", name="cores", node=_NODE, provider="ace_bench")

_ATTEMPTS = 2
"""How often a run is started whose worker dies."""

_DIED = "the process of this run was killed, perhaps for want of memory"

_log = logging.getLogger(__name__)


class JoblibLauncher(JobsLauncher):
    """Runs ``n_jobs`` jobs at a time, -1 for one a core, in workers that joblib's loky starts."""

    def __init__(self, n_jobs: int) -> None:
        if n_jobs != -1:
            check(n_jobs, Count, "hydra.launcher.n_jobs")
        self._workers = n_jobs

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs and return their results; Ctrl-C stops the runs cleanly and starts no further ones."""
        from joblib import cpu_count

        shared, configs = self.composed(job_overrides, initial_job_idx)
        workers = queue.SimpleQueue[_Worker]()
        count = min(len(configs), cpu_count() if self._workers == -1 else self._workers)
        started = [_Worker(shared) for _ in range(count)]
        for worker in started:
            workers.put(worker)

        def run(config: DictConfig, overrides: Sequence[str]) -> JobReturn:
            worker = workers.get()
            try:
                return worker.run(config, overrides)
            finally:
                workers.put(worker)

        with ThreadPoolExecutor(count) as threads:
            try:
                return list(threads.map(run, configs, job_overrides))
            except BaseException:
                for worker in started:
                    worker.stop()
                raise
            finally:
                threads.shutdown(cancel_futures=True)
                for worker in started:
                    worker.close()


class _Worker:
    """One process, which is replaced when it dies."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._pool: Executor | None = None
        self._process = 0
        self._stopped = False

    def run(self, config: DictConfig, overrides: Sequence[str]) -> JobReturn:
        """Run one job; a second time if the process dies."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._opened().submit(run_in_worker, self._shared, config).result()
            except BrokenProcessPool:
                self._pool = None
                if self._stopped:
                    break
                again = " starting it once more" if attempt + 1 < _ATTEMPTS else ""
                _log.warning("%s: %s;%s", " ".join(filter_overrides(overrides)), _DIED, again)
        return failed(overrides, _DIED)

    def stop(self) -> None:
        """Stop the run of the process, which has not seen the Ctrl-C; later runs are not started."""
        self._stopped = True
        if self._pool is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGINT)

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown()

    def _opened(self) -> Executor:
        from joblib.externals.loky import ProcessPoolExecutor

        if self._pool is None:
            # With a session of its own, the process gets a Ctrl-C in the terminal once, from `stop`, and not twice.
            self._pool = ProcessPoolExecutor(max_workers=1, initializer=os.setsid)
            self._process = self._pool.submit(os.getpid).result()
        return self._pool
