"""Evaluations by `vllm run-batch`, with a program that stands in for it; tests/vllm has the real one."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from ace_batch.run_batch import RunBatchFiles
from ace_bench.runners.composing import settle
from ace_bench.runners.identifying import identify
from tests.doubles import Crash
from tests.launching import composed, launch

TEST = 4


@pytest.fixture
def behave(tmp_path, monkeypatch):
    """Set what the program does."""
    file, program = tmp_path / "behaviour", tmp_path / "vllm"
    program.write_text(f"#!{sys.executable} -IS\n{Path(__file__).with_name('vllm_stand_in.py').read_text()}")
    program.chmod(0o755)
    monkeypatch.setenv("BEHAVIOUR", str(file))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    file.write_text("answer")
    return file.write_text


def words(*more, batch=("batch=vllm", "backbone.batch.gather_seconds=0.05", "backbone.batch.poll_seconds=0.02")):
    return (
        "backbone=smollm2",
        "backbone.model=some/model",
        "backbone.server.executable=vllm",
        "backbone.retry.first_pause=0.001",
        "backbone.retry.longest_pause=0.002",
        *batch,
        "task=qa",
        "task.source=sample",
        "method=base",
        f"limit={{test: {TEST}}}",
        "estimate=false",
        *more,
    )


def processes(folder):
    return sorted(path.name for path in folder.glob("batches/backbone/*.process"))


def wait_for_process(results):
    while not (found := list(results.rglob("*.log"))) or "loading" not in found[0].read_text():
        time.sleep(0.01)
    return int(found[0].with_suffix(".process").read_text())


def test_one_process_answers_the_run_that_a_server_would(tmp_path, behave, capsys):
    ran = launch(tmp_path, *words("backbone.batch.price_factor=1"))
    printed = " ".join(capsys.readouterr().out.split())
    assert "batches for calls of evaluations; calls of adaptation are refused" in printed
    assert (ran.status, processes(ran.folder)) == (0, ["0001.process"])
    assert ran.metrics["tokens"]["evaluate"] == {"in": 10 * TEST, "out": TEST}
    served = identify(settle(*composed(*words(batch=()))))
    assert served.identity.digest == ran.metrics["digest"]


def test_a_process_that_fails_stops_the_run_with_the_end_of_its_log(tmp_path, behave, capsys):
    behave("fail")
    assert launch(tmp_path, *words()).status == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "vllm run-batch ended with status 1; " in said
    assert "0001.log ends: loading some/model / no memory for the cache" in said
    behave("answer")
    ran = launch(tmp_path, *words())
    assert (ran.status, processes(ran.folder)) == (0, ["0001.process", "0002.process"])


def test_a_prompt_that_vllm_refuses_is_a_wrong_answer(tmp_path, behave):
    behave("refuse")
    ran = launch(tmp_path, *words())
    assert (ran.status, ran.metrics["faults"]["evaluate"]) == (0, {"generator/model/context_length": TEST})


@pytest.fixture
def killed(tmp_path, behave, monkeypatch):
    """A run that is killed while its process works; returns that."""

    def die(*_):
        wait_for_process(tmp_path)
        raise Crash

    behave("hang")
    with monkeypatch.context() as patched:
        patched.setattr(RunBatchFiles, "status", die)
        patched.setattr(RunBatchFiles, "close", lambda one: left.extend(one._children.values()))
        left = []
        with pytest.raises(Crash):
            launch(tmp_path, *words())
    return left[0]


def test_a_killed_run_waits_for_the_process_that_it_began(tmp_path, behave, killed, capsys):
    behave("answer")
    ran = launch(tmp_path, *words())
    assert (ran.status, processes(ran.folder), killed.wait()) == (0, ["0001.process"], 0)
    assert "Going on with batch" in capsys.readouterr().out


def test_calls_of_a_process_that_was_killed_go_to_another(tmp_path, behave, killed):
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    behave("answer")
    ran = launch(tmp_path, *words())
    assert (ran.status, processes(ran.folder)) == (0, ["0001.process", "0002.process"])


def test_the_end_of_a_run_ends_its_process(tmp_path, behave):
    def interrupted(backbone):
        thread = threading.Thread(target=lambda: (wait_for_process(tmp_path), backbone.interrupt(0)))
        thread.start()
        return backbone

    behave("hang")
    ran = launch(tmp_path, *words(), backbone=interrupted)
    assert ran.status == 130
    (lock,) = ran.folder.glob("batches/backbone/*.process")
    with pytest.raises(ProcessLookupError):
        os.killpg(int(lock.read_text()), 0)
