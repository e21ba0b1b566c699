"""The first commands of a user: `init` makes and checks a configuration, `ls` lists runs."""

import io
import re
from contextlib import closing

import pytest

from ace_bench.cli.main import main
from ace_bench.core.resources import CONFIG_DIRS
from ace_bench.store.folder import RunFolder
from tests.backbones.openai_compatible.scripted import answer, serving
from tests.launching import launch
from tests.outcomes import outcomes


@pytest.fixture
def run_command(monkeypatch, tmp_path, capsys):
    """Calls a command in an empty folder with what is typed; returns its status, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CONFIG_DIRS, "")

    def call(*words, typed=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capsys.readouterr()
        status = main(words)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_answers_become_a_configuration_that_the_printed_command_runs(run_command, tmp_path):
    status, out, err = run_command("init", "limit=2", "mode.before=false", typed="formula\n\nbase\n\n\n")
    assert status == 0
    assert err.count("[") == 5, "five questions"
    assert "data: sample, samples: train 2, val 2, test 2" in out
    command = out.splitlines()[-1].split()
    assert command[:2] == ["ace-bench", "run"]
    status, out, _ = run_command(*command[1:])
    assert (status, "formula · base · embedded" in out) == (0, True)
    same = launch(
        tmp_path / "other", "task=formula", "task.source=sample", "method=base", "limit=2", "mode.before=false"
    )
    assert out.split()[-1].split("/")[-2:] == [*same.folder.parts[-2:]], "the run of the same settings"
    written = tmp_path / "experiments" / "experiment" / "first.yaml"
    before = written.read_bytes()
    status, _, err = run_command("init")
    assert (status, "exists" in err, written.read_bytes()) == (2, True, before)


def test_a_model_is_asked_and_its_budget_estimated_before_the_file_is_written(run_command, tmp_path):
    with serving(answer('{"reasoning": "r", "final_answer": "1"}'), models=("tiny",)) as server:
        words = ("init", "--task", "formula", "--data", "sample", "--method", "base", "--model", f"tiny@{server.url}")
        status, _, err = run_command(*words, "--budget", "1calls", "limit=2")
        assert (status, "budget.calls=1" in err) == (2, True)
        assert not list(tmp_path.rglob("*.yaml"))
        status, out, _ = run_command(*words, "--budget", "9calls", "limit=2", "--name", "mine", "--into", "my own")
    assert (status, "model: answers" in out, "Estimate: 2 calls" in out) == (0, True, True)
    assert out.splitlines()[-1] == "ace-bench run --config-dir 'my own' experiment=mine"
    written = (tmp_path / "my own" / "experiment" / "mine.yaml").read_text()
    assert f"base_url: {server.url}" in written
    assert "calls: 9" in written


WRONG_ANSWERS = [
    "--model gpt_51",
    "--model m@http://127.0.0.1:9/v1",
    "--model m@http://me:planted@h/v1",
    "--data real",
    "--data nowhere",
    "--budget much",
    "--key-env KEY",
    "--name a/b",
    "--name first_contact",
    "lmit=4",
    "limit",
]


def test_a_wrong_answer_is_one_sentence_and_writes_nothing(snapshot, run_command, tmp_path):
    def refuse(words):
        status, _, err = run_command("init", *words.split(" "))
        assert (status, "planted" in err) == (2, False)
        assert not list(tmp_path.rglob("*.yaml"))
        return err.splitlines()[-1]

    assert outcomes(refuse, WRONG_ANSWERS) == snapshot


def test_runs_are_listed_by_how_they_ended(snapshot, run_command, tmp_path):
    """What ``ls`` says of them is that of ``ls.txt``."""
    assert run_command("ls")[0] == 2
    (tmp_path / "results").mkdir()
    said = []

    def list_runs(*words):
        status, out, err = run_command("ls", *words)
        said.append(f"## ls {' '.join(words)}: status {status}\n{out}{err}")

    list_runs()
    small = ("task=formula", "limit=2", "mode.before=false", "mode.epochs=1")
    finished = launch(tmp_path / "results", *small, "method=base")
    broken = launch(tmp_path / "results", *small, "method=ace", "budget.calls=1")
    list_runs("--json")
    seconds = round(sum(finished.metrics["timing"][stage]["wall_s"] for stage in ("adapt", "evaluate")), 1)
    assert f'"seconds": {seconds}' in said[-1] or f'"seconds":{seconds}' in said[-1]
    with closing(RunFolder(broken.folder)):
        list_runs("method=ace")
    list_runs("results")
    list_runs("--state", "finished")
    (finished.folder / "metrics.json").write_text("{")
    (broken.folder / "calls.jsonl").unlink()
    (broken.folder / "calls.jsonl").mkdir()
    list_runs()
    list_runs("task=formula", "--state", "finished")
    list_runs("nowhere", "method=ace")
    text = "\n".join(said).replace(finished.folder.parent.name, "d" * 12).replace(broken.folder.parent.name, "e" * 12)
    text = re.sub(r'("seconds": ?)[\d.]+|\b\d+s\b( +)', lambda found: f"{found[1] or ''}SECONDS{found[2] or ''}", text)
    text = re.sub(r'(tokens_per_s": )[\d.]+', r"\1RATE", text)
    assert text == snapshot
