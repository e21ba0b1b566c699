"""Hyperparameter search by Optuna, in a plugin of ours because Hydra's own needs an Optuna below 3.

Optuna proposes settings from the scores of earlier runs. The settings match those of Hydra's plugin.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, RangeSweep, Transformer
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import CompactHydraException, ConfigCompositionException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from ace_bench.core.settings import Count, check

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.distributions import BaseDistribution

_NODE = {
    "_target_": "hydra_plugins.ace_bench.optuna_sweeper.OptunaSweeper",
    "direction": "maximize",
    "n_trials": 20,
    "n_jobs": 1,
    "seed": 0,
    "params": {},
}
ConfigStore.instance().store(group="hydra/sweeper", name="optuna", node=_NODE, provider="ace_bench")

RESULTS = "optimization_results.yaml"
"""In the sweep's folder: the best settings and their score."""

_log = logging.getLogger(__name__)


class OptunaSweeper(Sweeper):
    """Runs ``n_trials`` trials of Optuna's TPE sampler, ``n_jobs`` at a time.

    ``params`` are overrides by key, such as ``interval(0.5, 0.9)``; overrides on the command line replace them. The
    sampler has a ``seed``: a repeated sweep proposes the same runs, and finished ones are skipped.
    """

    def __init__(
        self,
        *,
        direction: Literal["maximize", "minimize"],
        n_trials: int,
        n_jobs: int,
        seed: int,
        params: Mapping[str, Any],
    ) -> None:
        for name, value in (("n_trials", n_trials), ("n_jobs", n_jobs)):
            check(value, Count, f"hydra.sweeper.{name}")
        self._direction = direction
        self._n_trials, self._n_jobs = n_trials, n_jobs
        self._seed = seed
        self._params = params

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Store what Hydra passes for starting runs."""
        self.config = config
        self.hydra_context = hydra_context
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Run all trials and write the best settings to ``RESULTS``; an error where no run finished."""
        import optuna

        requested = [*(f"{key}={value}" for key, value in self._params.items()), *arguments]
        overrides = {
            override.key_or_group: override for override in OverridesParser.create().parse_overrides(requested)
        }
        space = {key: distribution(override) for key, override in overrides.items() if override.is_sweep_override()}
        fixed = [str(override.input_line) for override in overrides.values() if not override.is_sweep_override()]
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=self._seed), direction=self._direction)
        for first in range(0, self._n_trials, self._n_jobs):
            trials = [study.ask(space) for _ in range(min(self._n_jobs, self._n_trials - first))]
            jobs = [[*fixed, *(f"{key}={_written(value)}" for key, value in trial.params.items())] for trial in trials]
            assert self.launcher is not None
            for trial, job in zip(trials, self.launcher.launch(jobs, initial_job_idx=first), strict=True):
                _tell(study, trial, job)
        self._write(study)

    def _write(self, study: Study) -> None:
        from optuna.trial import TrialState

        assert self.config is not None
        if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            raise CompactHydraException("No run of the search finished; their errors are above.")
        best = {"best_params": study.best_params, "best_value": study.best_value}
        file = Path(str(self.config.hydra.sweep.dir)) / RESULTS
        file.parent.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(OmegaConf.create(best), file)
        _log.info("best: %s, score %s; see %s", study.best_params, study.best_value, file)


def distribution(override: Override) -> BaseDistribution:
    """Return the Optuna distribution of a sweep: ``choice()``, ``range()`` or ``interval()``, also ``tag(log,
    interval())``.

    Like Hydra's, a range ends before its last number. Raises ``ConfigCompositionException`` for other sweeps.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    match override.value():
        case ChoiceSweep() | RangeSweep():
            values: list[Any] = list(override.sweep_iterator(transformer=Transformer.encode))
            return CategoricalDistribution(values)
        case IntervalSweep(start=int(low), end=int(high), tags=tags):
            return IntDistribution(low, high, log="log" in tags)
        case IntervalSweep(start=int() | float() as least, end=int() | float() as most, tags=tags):
            return FloatDistribution(least, most, log="log" in tags)
    raise ConfigCompositionException(f"{override.input_line} cannot be searched: write choice(), range() or interval()")


def _tell(study: Study, trial: Trial, job: JobReturn) -> None:
    """Report a run's score to the study; a failed run is marked as failed, and the search continues."""
    from optuna.trial import TrialState

    score = job.return_value if job.status is JobStatus.COMPLETED else None
    if isinstance(score, int | float):
        study.tell(trial, score)
        return
    study.tell(trial, state=TrialState.FAIL)
    _log.warning("trial %d has no score: %s", trial.number, " ".join(job.overrides or ()))


def _written(value: object) -> str:
    """Write a value for the command line; strings among choices are already quoted."""
    return {None: "null", True: "true", False: "false"}[value] if isinstance(value, bool | None) else str(value)
