"""Composes one configuration as the command line does, for programs that run an experiment themselves."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, open_dict
from omegaconf.errors import OmegaConfBaseException

from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders
from ace_bench.core.secrets import refuse_secret_arguments
from ace_bench.runners.override_help import explanation

_COMPOSING = threading.Lock()
"""Hydra's search path belongs to the process, while runs may start in several threads."""


def compose_run(overrides: Sequence[str]) -> tuple[DictConfig, dict[str, str]]:
    """Return the configuration of a run and the option chosen in each group; raises ``ConfigError``."""
    refuse_secret_arguments(overrides)
    folders = config_folders()
    try:
        with _COMPOSING, initialize_config_dir(str(folders[0]), version_base="1.3"):
            config = compose("config", overrides=list(overrides), return_hydra_config=True)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        text = explanation(error, folders, overrides)
        if text is None:
            raise
        raise ConfigError(text) from error
    choices = dict(config.hydra.runtime.choices)
    with open_dict(config):
        del config.hydra
    return config, choices
