"""Words that no command can use: a place that cannot be, numbers of any size, and outputs that take no text."""

import errno
import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.cli.main import main
from tests.launching import ROOT, launch

TINY = ("task=formula", "task.source=sample", "method=base", "limit=2")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    assert launch(folder, *TINY).status == 0
    return folder


def said_by(words, capsys):
    try:
        status = main(words)
    except SystemExit as stop:
        status = stop.code
    error = capsys.readouterr().err
    assert status == 2, words
    assert "Traceback" not in error
    return error.splitlines()[-1]


HUGE = ("9" * 20, "9" * 5000, "-" + "9" * 20)


@pytest.mark.parametrize("huge", HUGE, ids=len)
@pytest.mark.parametrize(
    "words",
    [
        *(f"run task=formula task.source=sample dry_run=true {key}=HUGE" for key in ("seed", "limit", "concurrency")),
        "run task=formula task.source=sample dry_run=true mode.epochs=HUGE",
        "run task=formula task.source=sample dry_run=true method.max_reflection_rounds=HUGE",
        "run task=formula task.source=sample dry_run=true budget.calls=HUGE",
        "check ddxplus --source sample --set train_size=HUGE",
        "check ddxplus --source sample task.train_size=HUGE",
        "reproduce table=2 --jobs HUGE",
        "playbook export RUN --every HUGE --out OUT",
        "playbook show RUN --limit HUGEx",
        "tables RUN seed=HUGE",
        "view RUN --port HUGE",
        "serve --port HUGE",
    ],
)
def test_a_number_of_any_size_is_one_sentence(words, huge, runs, tmp_path, capsys):
    given = [word.replace("HUGE", huge) for word in words.split()]
    said = said_by([{"RUN": str(runs), "OUT": str(tmp_path / "out")}.get(word, word) for word in given], capsys)
    assert "error: " in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("address", ["http://h:99999/v1", "http://h:0/v1", "http://h:x/v1"])
def test_an_address_that_cannot_be_is_a_mistake_of_the_configuration(address, capsys, tmp_path):
    words = ["run", *TINY, "backbone=openai_compatible", "backbone.model=m", "backbone.api_key_env=null"]
    said = said_by([*words, f"backbone.base_url={address}", f"results={tmp_path / 'results'}"], capsys)
    assert said.startswith(f"error: backbone.base_url={address} must be like http://localhost:8000/v1")


WRITERS = ("ls RUNS", "tables RUNS --rows method", "doctor RUNS", "--help", "check formula")
OUTPUTS = ("ascii", "closed", "ended")


@pytest.mark.parametrize(
    ("words", "output"),
    [
        # Quick tests give each command one output, and each output a command.
        pytest.param(words, output, marks=() if OUTPUTS[place % len(OUTPUTS)] == output else pytest.mark.slow)
        for place, words in enumerate(WRITERS)
        for output in OUTPUTS
    ],
)
def test_outputs_that_take_no_text_are_no_traceback(words, output, runs, tmp_path):
    command = f"{sys.executable} -m ace_bench {words.replace('RUNS', str(runs))}"
    shell = {"ascii": command, "closed": f"{command} >&-", "ended": f"{command} | true"}[output]
    variables = {"PYTHONIOENCODING": "ascii"} if output == "ascii" else {}
    done = subprocess.run(
        ["bash", "-c", shell], cwd=ROOT, env={**os.environ, **variables}, capture_output=True, check=False, text=True
    )
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr


def test_a_file_system_without_locks_is_one_sentence(runs, tmp_path, capsys, monkeypatch):
    lock = fcntl.flock

    def refuse(handle, operation):
        if os.readlink(f"/proc/self/fd/{handle}").startswith((str(runs), str(tmp_path))):
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert main(["doctor", str(runs)]) == 0
    assert main(["run", *TINY, f"results={tmp_path / 'results'}"]) == 3
    assert "its file system has no locks; choose another folder with results=" in "".join(capsys.readouterr())


def test_several_new_runs_at_once_get_a_folder_each(tmp_path):
    command = [sys.executable, "-m", "ace_bench", "run", *TINY, "resume=false", f"results={tmp_path}"]
    with ThreadPoolExecutor(2) as pool:
        ran = [*pool.map(lambda _: subprocess.run(command, cwd=ROOT, capture_output=True, check=False), range(2))]
    assert [one.returncode for one in ran] == [0, 0]
    assert {path.parent.name for path in tmp_path.rglob("metrics.json")} == {"seed0", "seed0-2"}
