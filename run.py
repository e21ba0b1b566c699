"""Run one experiment: ``python run.py task=finer method=ace``. ``--help`` lists the groups and usual overrides."""

import os
import signal
import sys
from pathlib import Path

from ace_bench.core.loading import INTERRUPTED, leave_at_signals

if __name__ == "__main__":
    leave_at_signals()

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import CompactHydraException
from hydra.types import RunMode
from omegaconf import DictConfig

ROOT = Path(__file__).resolve().parent


@hydra.main(version_base="1.3", config_path="configs", config_name="config")
def main(config: DictConfig) -> None:
    """Hand the composed configuration to the runner; heavy imports wait until here so that --help is quick."""
    from ace_bench.runners.run import run
    from ace_bench.runners.signals import EXIT_INTERRUPTED, end_after, parent_process

    hydra_config = HydraConfig.get()
    sweeps = hydra_config.mode is RunMode.MULTIRUN
    # Ray and Slurm look after their jobs themselves, and a Slurm job may outlive the process that submitted it.
    parent = None if sweeps and "joblib" not in hydra_config.launcher._target_ else parent_process()
    if parent is not None:
        end_after(parent)
    status = run(config, hydra_config.runtime.choices, ROOT, parent=parent)
    if status and status != EXIT_INTERRUPTED and sweeps:
        # An exception, unlike an exit, leaves the other runs of a sweep going.
        raise CompactHydraException(
            f"This run ended with status {status}, others of the sweep perhaps, too: see above."
        )
    if status:
        sys.exit(status)


def sweep() -> None:
    """Run a sweep; its launcher puts its workers away when it is interrupted, and they end when it is killed."""
    from ace_bench.runners.signals import EXIT_INTERRUPTED, end_with_this_process

    end_with_this_process(os.environ)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.stderr.write(INTERRUPTED)
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    from ace_bench.runners.override_help import explain_overrides

    with explain_overrides(ROOT / "configs", sys.argv[1:]):
        if {"-m", "--multirun"} & set(sys.argv):
            sweep()
        else:
            main()
