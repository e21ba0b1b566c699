"""Wrong arguments of the commands, and a few wrong commands as a user starts them."""

import subprocess
import sys

import pytest

from ace_bench.backbones.embedded.server import serve
from ace_bench.cli.main import main
from tests.launching import ROOT
from tests.outcomes import outcomes
from tests.wrong.refusing import sentence


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("ace_bench.tasks.data._DOWNLOADED", tmp_path / "none")


# Words after ace-bench, and the last line of what is said.
WRONG_COMMANDS = [
    "check nope",
    "check finer --data-dir nowhere",
    "check finer --data-dir configs",
    "check formula --source sample --set hint",
    "check formula --source sample --set hint=maybe",
    "check formula --source sample --set hnit=true",
    "check ddxplus --source sample --set val_size=0",
    "tables --results nowhere",
    "tables nonsense",
    "leaderboard nowhere --name a --method b --llm c",
    "prompts nowhere prompts/official",
    "reproduce table=99",
    "reproduce table=2 --jobs 0",
    "reproduce table=2 --jobs -1",
    "check",
    "check finer --source imagined",
    "tables --colour",
    "data",
    "reprot",
    "xyz",
    "task=finer",
    "run -sc install=bash",
    "run --shell-completion install=bash",
    "tables --columns task nosuchfolder",
    "tables --columns task --rows method,method",
    "tables --columns task --rows ,",
    "tables --rows method --with-paper",
    "table results",
    "playbook exprt",
    "tables --with-papers",
    "check qa --set instruction=Say:${seed}",
    "check qa --set instruction=${",
    "check qa --set data=(a",
]


def test_wrong_words_are_refused_as_recorded(snapshot, capsys):
    def refuse(words):
        try:
            status = main(words.split(" "))
        except SystemExit as stop:
            status = stop.code
        said = capsys.readouterr().err
        assert status == 2
        return sentence(said) if said.startswith("error: ") else said.splitlines()[-1]

    assert outcomes(refuse, WRONG_COMMANDS, {str(ROOT): "ROOT"}) == snapshot


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
    "limit.test=20": "limit.test: write limit={test: NUMBER} in quotes",
    "-m hparams_search=ace hydra.sweeper.n_trials=x": "hydra.sweeper.n_trials=x must be a whole number, 1 or more",
    "-m launcher=threads hydra.launcher.n_jobs=0": "hydra.launcher.n_jobs=0 must be a whole number, 1 or more",
    "-m hydra/launcher=submitit_local seed=0,1": "hydra/launcher=submitit_local is not a launcher of ace-bench",
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
