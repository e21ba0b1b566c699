"""Packages of extras: what misses one says so in one sentence."""

import tomllib
from importlib.util import find_spec

import pytest

from ace_bench.cli.main import start
from ace_bench.core import resources
from ace_bench.core.errors import ConfigError
from tests.launching import ROOT


def test_a_feature_names_its_extra_before_anything_is_imported(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(resources.EXTRAS.values()) <= set(project["optional-dependencies"])
    monkeypatch.setattr(resources, "find_spec", lambda name: None if name == "dspy" else find_spec(name))
    with pytest.raises(ConfigError, match=r"method=gepa needs dspy: pip install 'ace-bench\[optimisers\]'"):
        resources.require("method=gepa", "pandas", "dspy")


def test_an_import_that_nothing_foresaw_is_one_sentence(monkeypatch, capsys):
    def importing(name):
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas.core")

    monkeypatch.setattr("ace_bench.cli.main.import_module", importing)
    assert start("check", ["finer"]) == 2
    assert capsys.readouterr().err == "error: this command needs pandas: pip install 'ace-bench[analysis]'\n"


def test_a_cause_counts_and_modules_of_no_extra_do_not():
    error = RuntimeError("wrapped")
    error.__cause__ = ModuleNotFoundError("No module named 'ray'", name="ray")
    assert "ace-bench[sweeps]" in str(resources.missing_extra(error))
    assert resources.missing_extra(ModuleNotFoundError("x", name="nothing")) is None
