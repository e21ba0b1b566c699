"""Wrong arguments of the commands, and a few wrong commands as a user starts them."""

import subprocess
import sys

import pytest

from ace_bench.cli.main import main, start
from ace_rehearsal.server import serve
from tests.launching import ROOT
from tests.wrong.refusing import sentence

ARGUMENTS = {
    "check nope": "there is no task nope; choose one of appworld, bird_sql, ddxplus, finer, formula",
    "check finer --data-dir nowhere": "task.data_dir=nowhere is not a folder",
    "check finer --data-dir configs": "configs lacks train.jsonl",
    "check formula --source sample --set hint": "--set hint has no value",
    "check formula --source sample --set hint=maybe": "task.hint=maybe must be true or false",
    "check formula --source sample --set hnit=true": "there is no setting task.hnit; did you mean task.hint?",
    "check ddxplus --source sample --set val_size=0": "task.val_size=0 must be a whole number, 1 or more",
    "tables --results nowhere": "there are no runs in nowhere",
    "tables nonsense": "nonsense is not a setting; write table=nonsense",
    "leaderboard nowhere --name a --method b --llm c": "nowhere is not the folder of a finished run",
    "prompts nowhere prompts/official": "nowhere",
    "reproduce table=99": "no runs make table 99",
}
USAGE = {
    "reproduce table=2 --jobs -1": "argument --jobs: -1 must be a whole number, 1 or more",
    "check": "the following arguments are required: task",
    "check finer --source imagined": "invalid choice: 'imagined'",
    "tables --colour": "there is no option --colour",
    "data": "the following arguments are required",
}


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("ace_bench.tasks.data._DOWNLOADED", tmp_path / "none")


@pytest.mark.parametrize("case", {**ARGUMENTS, **USAGE})
def test_a_wrong_command_line(case, capsys):
    command, *arguments = case.split(" ")
    try:
        status = start(command, arguments)
    except SystemExit as stop:
        status = stop.code
    said = capsys.readouterr().err
    assert status == 2
    assert ARGUMENTS[case] in sentence(said) if case in ARGUMENTS else USAGE[case] in said.splitlines()[-1]


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
