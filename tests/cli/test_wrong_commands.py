"""Wrong arguments of the commands, and a few wrong commands as a user starts them."""

import subprocess
import sys
from pathlib import Path

import pytest

from ace_bench.cli.main import main
from ace_rehearsal.server import serve
from tests.cases import check_cases
from tests.launching import ROOT
from tests.wrong.refusing import sentence


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("ace_bench.tasks.data._DOWNLOADED", tmp_path / "none")


def test_wrong_words_are_refused_as_the_file_says(capsys):
    def refuse(words):
        try:
            status = main(words.split(" "))
        except SystemExit as stop:
            status = stop.code
        said = capsys.readouterr().err
        assert status == 2
        return sentence(said) if said.startswith("error: ") else said.splitlines()[-1]

    check_cases(Path(__file__).with_name("wrong_commands.txt"), {"refusal": refuse}, {str(ROOT): "ROOT"})


@pytest.mark.parametrize("content", [b"a: [\n", b"a: \xff\n"])
@pytest.mark.parametrize(
    "command", ["run task=mine", "run -m task=mine seed=0,1", "run --help task=mine", "check mine"]
)
def test_an_option_that_is_not_yaml(command, content, tmp_path, monkeypatch, capsys):
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "mine.yaml").write_bytes(content)
    monkeypatch.setenv("ACE_BENCH_CONFIG_DIRS", str(tmp_path))
    assert main(command.split(" ")) == 2
    said = sentence(capsys.readouterr().err)
    assert "task/mine" in said
    assert "is not YAML in UTF-8" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [*((f"--port={port}", "port") for port in ("99999999", "-1", "http", "1.5")), ("--faults=oops=1", "fault 'oops'")],
)
def test_a_wrong_option_of_the_embedded_server(given, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        serve.main(["--port=0", given])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


COMMANDS = {
    "methd=ace": "methd: there is no such key; did you mean method?",
    "-m hparams_search=ace hydra.sweeper.n_trials=x": "hydra.sweeper.n_trials=x must be a whole number, 1 or more",
    "-m launcher=joblib hydra.launcher.n_jobs=0": "hydra.launcher.n_jobs=0 must be a whole number, 1 or more",
    "--limit=3": "there is no option --limit; settings are written without dashes: limit=VALUE",
    "--multirn": "there is no option --multirn; did you mean --multirun?",
    "--cfg=nonsense": "--cfg needs one of job, hydra, all",
    "--config-dir=": "--config-dir has no value",
    "launcher=slurm": "launcher=slurm starts the runs of a sweep: add --multirun",
}


@pytest.mark.parametrize("wrong", COMMANDS)
def test_a_wrong_command(wrong, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run.py"])
    monkeypatch.setenv("ACE_BENCH_DATA", "")
    try:
        status = main(["run", *wrong.split(" "), f"results={tmp_path / 'results'}"])
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert COMMANDS[wrong] in sentence(printed.err)
    assert not list(tmp_path.iterdir())


def test_a_wrong_command_as_a_process(tmp_path):
    command = [sys.executable, "run.py", wrong := "methd=ace", f"results={tmp_path / 'results'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert COMMANDS[wrong] in sentence(done.stderr)
    assert not list(tmp_path.iterdir())
