"""The first commands of a user: `init` makes and checks a configuration, `ls` lists runs."""

import io
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from ace_bench import tasks
from ace_bench.cli.main import main
from ace_bench.cli.own_table import default_instruction, propose, suggest_grader
from ace_bench.core.resources import CONFIG_DIRS
from ace_bench.store.calls import read_calls
from ace_bench.store.folder import RunFolder
from tests.backbones.openai_compatible.scripted import answer, serving
from tests.launching import launch
from tests.outcomes import outcomes

TICKETS = Path(tasks.__file__).parent / "samples" / "qa" / "tickets.csv"


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
    assert (status, "model: answers" in out, "Estimate: about 2 calls" in out) == (0, True, True)
    assert out.splitlines()[-1] == "ace-bench run --config-dir 'my own' experiment=mine"
    written = (tmp_path / "my own" / "experiment" / "mine.yaml").read_text()
    assert f"base_url: {server.url}" in written
    assert "calls: 9" in written


def test_a_table_of_ones_own_is_looked_at_and_the_printed_command_runs_it(run_command, tmp_path):
    shutil.copy(TICKETS, tmp_path / "tickets.csv")
    words = ("init", "tickets.csv", "--budget", "none", "limit=2", "mode.before=false", "mode.epochs=1")
    status, out, err = run_command(*words, typed="\n\n\n\nSay: which team, or 'none'?\nbase\n\n")
    assert status == 0, err
    assert "tickets.csv: 60 rows; columns id, message, team, customer, split" in out
    assert "always answering 'company desk' is right on 16.7% of the 18 test rows" in out
    labels = "billing, company desk, delivery, returns, safety, workshop"
    assert f"[Sort each message into its team. Answer with one of these: {labels}.]" in err
    written = (tmp_path / "experiments" / "experiment" / "first.yaml").read_text()
    assert {"  question: message", "  answer: team", "  id: id", "  group: customer"} <= {*written.splitlines()}
    status, out, _ = run_command(*out.splitlines()[-1].split()[1:])
    assert (status, "qa · base · embedded" in out) == (0, True)
    prompt = next(read_calls(tmp_path / out.split()[-1])).request.messages[-1].content
    assert "Say: which team, or 'none'?" in prompt


def test_what_a_table_suggests():
    def suggested(**columns):
        chosen = propose(columns)
        grader = suggest_grader(columns[chosen.answer], has_choices=bool(chosen.choices))
        return chosen.question, chosen.answer, grader, chosen.split

    sums = {"text": [f"{n} and {n}?" for n in range(6)], "solution": [f"{2 * n:,}" for n in range(6)]}
    assert suggested(**sums) == ("text", "solution", "numeric", "")
    options = {"choices": [["a", "b"]] * 6, "question": list("uvwxyz"), "answer": ["a", "b"] * 3}
    assert suggested(**options) == ("question", "answer", "choice", "")
    prose = {"x": ["a long question of some words"] * 6, "summary": [f"{n} {'word ' * 20}" for n in range(6)]}
    assert suggested(**prose, fold=["train", "dev", "test"] * 2)[2:] == ("exact", "fold")
    unnamed = {"a": [f"what is {n}, in one word of the list?" for n in range(6)], "b": ["yes", "no"] * 3}
    assert suggested(**unnamed) == ("a", "b", "exact", "")


def instruction(answers, grader="exact"):
    return default_instruction({"team": answers}, question="ticket", answer="team", grader=grader)


def test_an_instruction_lists_the_labels_that_a_setting_can_hold():
    assert instruction(["b", "a"] * 3) == "Sort each ticket into its team. Answer with one of these: a, b."
    assert instruction(['6"', "a"] * 3) == instruction(["a", "b"]) == instruction(["1"] * 3, "numeric") == ""


WRONG_ANSWERS = [
    "tickets.csv other.csv",
    "missing.csv",
    "tickets.csv --task finer",
    "--task qa --data sample",
    "tickets.csv --question nowhere",
    "tickets.csv --answer message",
    "tickets.csv --instruction Use_${this}",
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
    shutil.copy(TICKETS, tmp_path / "tickets.csv")

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
    list_runs("--sort", "cost", "--since", "2026-01-01")
    list_runs("--since", "2999-01-01")
    list_runs("--since", "yesterday")
    (finished.folder / "metrics.json").write_text("{")
    (broken.folder / "calls.jsonl").unlink()
    (broken.folder / "calls.jsonl").mkdir()
    list_runs()
    list_runs("task=formula", "--state", "finished")
    list_runs("nowhere", "method=ace")
    text = "\n".join(said).replace(finished.folder.parent.name, "d" * 12).replace(broken.folder.parent.name, "e" * 12)
    text = re.sub(r'("seconds": ?)[\d.]+', r"\1SECONDS", text)
    text = re.sub(r"20\d\d-\d\d-\d\d([ T])\d\d:\d\d", r"2026-11-27\g<1>10:30", text)
    text = re.sub(r"(10:30:)\d\dZ", r"\g<1>00Z", text)
    text = re.sub(r'(tokens_per_s": )[\d.]+', r"\1RATE", text)
    assert text == snapshot
