"""Runs wrong commands in this process and looks at how they are refused."""

import os
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from ace_bench.core.resources import config_folders
from ace_bench.runners import run as experiment
from ace_bench.runners.override_help import explain_overrides
from tests.launching import CONFIGS, composed

CALLED = "a call was made"


def refusal(overrides, results: Path, capsys) -> str:
    """Return the one sentence by which a command is refused, after a look that nothing else happened."""
    try:
        config, chosen = composed(*overrides)
    except (OmegaConfBaseException, HydraException, ValueError):
        return composing_error(overrides, capsys)
    if not any(one.startswith("results=") for one in overrides):
        config.results = str(results)
    before = set(Path.cwd().iterdir())
    status = experiment.run(config, chosen)
    printed = capsys.readouterr()
    assert status == 2, f"{overrides} ended with {status}: {printed.out}"
    assert printed.out == ""
    assert not results.exists(), "a run folder was made"
    assert set(Path.cwd().iterdir()) == before
    return sentence(printed.err)


def composing_error(overrides, capsys) -> str:
    """Return what run.py says where Hydra cannot compose a command."""
    with (
        pytest.raises(SystemExit) as stopped,
        explain_overrides(config_folders(), overrides),
        initialize_config_dir(str(CONFIGS), version_base="1.3"),
    ):
        compose("config", overrides=list(overrides), return_hydra_config=True)
    assert stopped.value.code == 2
    return sentence(capsys.readouterr().err)


def sentence(error: str) -> str:
    assert error.count("\n") == 1, error
    assert error.endswith("\n")
    assert "Traceback" not in error
    assert "\\n" not in error
    assert CALLED not in error
    beginning, _, text = error.strip().partition("error: ")
    assert beginning == ""
    return text.replace(os.sep, "/")
