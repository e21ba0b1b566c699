"""Runs wrong commands in this process and looks at how they are refused."""

import os
from pathlib import Path

import pytest
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from ace_bench.core.errors import ConfigError
from ace_bench.runners import run as experiment
from ace_bench.runners.composing import compose_run, settle
from ace_bench.runners.host import reporting
from tests.launching import composed


def refusal(overrides, results: Path, capsys) -> str:
    """Return the one sentence by which a command is refused, after a look that nothing else happened."""
    try:
        config, chosen = composed(*overrides)
    except (OmegaConfBaseException, HydraException, ValueError):
        return composing_error(overrides)
    if not any(one.startswith("results=") for one in overrides):
        config.results = str(results)
    before = set(Path.cwd().iterdir())
    with reporting() as report:
        experiment.run(settle(config, chosen, written=False), report.host)
    printed = capsys.readouterr()
    assert report.status == 2, f"{overrides} ended with {report.status}: {printed.out}"
    assert printed.out == ""
    assert not results.exists(), "a run folder was made"
    assert set(Path.cwd().iterdir()) == before
    return sentence(printed.err)


def composing_error(overrides) -> str:
    """Return what run.py says where a command cannot be composed."""
    with pytest.raises(ConfigError) as refused:
        compose_run(overrides)
    return sentence(f"error: {refused.value}\n")


def sentence(error: str) -> str:
    assert error.count("\n") == 1, error
    assert error.endswith("\n")
    assert "Traceback" not in error
    assert "\\n" not in error
    beginning, _, text = error.strip().partition("error: ")
    assert beginning == ""
    return text.replace(os.sep, "/")
