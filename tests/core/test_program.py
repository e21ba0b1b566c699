"""How a program starts: signals, ``.env``, and the command lines that messages name."""

import os
import signal
import subprocess
import sys

import pytest

from ace_bench.core.program import INTERRUPTED, command_line, read_env_file


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_one_sentence(number):
    code = f"import os; from ace_bench.core.program import *; exit_on_signals(); os.kill(os.getpid(), {number:d})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + number, INTERRUPTED)


def test_a_command_is_named_as_it_was_started(monkeypatch):
    lines = []
    for started in ("/venv/bin/ace-bench", "a/scripts/make_tables.py"):
        monkeypatch.setattr(sys, "argv", [started, "run.py"])
        lines.append([command_line(command) for command in ("run", "figures", "ls")])
    assert lines == [
        ["ace-bench run", "ace-bench figures", "ace-bench ls"],
        ["python run.py", "python scripts/make_figures.py", "ace-bench ls"],
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
