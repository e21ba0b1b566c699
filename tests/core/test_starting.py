"""How a program starts: signals, ``.env``, packages of extras and folders of options."""

import os
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from importlib.util import find_spec

import pytest

from ace_bench.cli.main import start
from ace_bench.core import resources
from ace_bench.core.errors import ConfigError
from ace_bench.core.program import INTERRUPTED, command_line, read_env_file
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
    assert resources.missing_extra(ModuleNotFoundError("x", name="ace_bench.report.none")) is None


def test_folders_of_options_are_added_one_after_another(tmp_path, monkeypatch):
    monkeypatch.setenv(resources.CONFIG_DIRS, "")
    before = resources.config_folders(), resources.prompt_folders()
    for name in ("a", "b"):
        (tmp_path / name / "configs").mkdir(parents=True)
        resources.add_config_dir(str(tmp_path / name / "configs"))
    (tmp_path / "b" / "prompts").mkdir()
    assert resources.config_folders() == (*before[0], tmp_path / "a" / "configs", tmp_path / "b" / "configs")
    assert resources.prompt_folders() == (*before[1], tmp_path / "b" / "prompts")
    for folder, said in (("nowhere", "--config-dir nowhere is not a folder"), ("", "--config-dir has no value")):
        with pytest.raises(ConfigError, match=f"^{said}; name a folder that holds config groups such as task/$"):
            resources.add_config_dir(folder)


@pytest.mark.parametrize("value", ["nowhere_to_be_found", "ace_bench.__main__"])
def test_a_plugin_that_is_no_package_is_named(value, monkeypatch):
    monkeypatch.setattr(resources, "entry_points", lambda group: [EntryPoint("mine", value, group)])
    with pytest.raises(ConfigError, match=f"the package {value} is not there, which joins by the entry point mine of"):
        resources._plugins.__wrapped__()


def test_an_option_goes_to_its_group_or_package():
    texts = ("a: 1\n", "# @package other\na: 1\n", "# Title\n# @package _global_\n")
    assert [resources.option_place(text, "task") for text in texts] == ["task", "other", ""]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_one_sentence(number):
    code = f"import os; from ace_bench.core.program import *; exit_on_signals(); os.kill(os.getpid(), {number:d})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + number, INTERRUPTED)


def test_a_command_is_named_as_it_was_started(monkeypatch):
    lines = []
    for started in ("/venv/bin/ace-bench", "a/scripts/download_data.py"):
        monkeypatch.setattr(sys, "argv", [started, "run.py"])
        lines.append([command_line(command) for command in ("run", "data", "ls")])
    assert lines == [
        ["ace-bench run", "ace-bench data", "ace-bench ls"],
        ["python run.py", "python scripts/download_data.py", "ace-bench ls"],
    ]


def test_the_file_of_variables_leaves_those_that_are_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    read_env_file()
    (tmp_path / ".env").write_text("SET_BEFORE=no\nSET_BY_FILE=yes\n")
    monkeypatch.setenv("SET_BEFORE", "kept")
    monkeypatch.setenv("SET_BY_FILE", "")
    monkeypatch.delenv("SET_BY_FILE")
    read_env_file()
    assert (os.environ["SET_BEFORE"], os.environ["SET_BY_FILE"]) == ("kept", "yes")
