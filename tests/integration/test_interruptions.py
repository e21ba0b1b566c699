"""Ctrl-C, SIGTERM and the end of a parent stop a run within seconds, whatever its calls are doing."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.serving import over_http, running
from tests.launching import ROOT, Ran, launch

LONGEST_S = 15
"""Three times what is promised: other work on the machine must not fail a test."""


def arguments(server):
    small = ("task=formula", "method=base", "task.source=sample", "limit=6", "concurrency=2")
    return (*small, *over_http(server.address), "backbone.retry.first_pause=30")


def wait_for_requests(server, number, process):
    until = time.monotonic() + 60
    while server.stats()["requests"] < number:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)


def start(server, results, *settings):
    command = [sys.executable, "run.py", *arguments(server), *settings, f"results={results}"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_handler(process):
    """Wait until Python itself has started, whose own traceback nobody can prevent."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        pytest.skip("sees by Linux's means when the program begins")
    while not int(status.read_text().partition("SigCgt:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1:
        assert process.poll() is None
        time.sleep(0.005)


@pytest.mark.parametrize("program", ["run.py", "scripts/reproduce.py"])
def test_a_stop_while_the_program_is_still_loading_is_one_sentence(program, tmp_path):
    for number in (signal.SIGINT, signal.SIGTERM):
        for delay in (0.0, 0.3):
            task = ("task=finer", "task.source=sample") if program == "run.py" else ("table=2", "backbone=embedded")
            command = [sys.executable, program, *task, f"results={tmp_path}"]
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            with process:
                wait_for_handler(process)
                time.sleep(delay)
                process.send_signal(number)
                output = process.communicate(timeout=60)[0]
            assert process.returncode in (130, 128 + number), output
            assert "Traceback" not in output
            assert "nterrupted" in output or "Stopped" in output


def children(parent):
    """The processes that a process has started and that still exist; none where the system does not show them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # others come and go
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(path.parent)
    return found


SWEEP = ("run.py", "-m", "task=formula", "method=ace", "seed=0,1,2", "launcher=joblib", "hydra.launcher.n_jobs=2")


@pytest.mark.slow
def test_worker_processes_end_with_the_process_that_started_them(tmp_path):
    longer = ("task.source=sample", "backbone=embedded", "mode.epochs=50")  # than the workers take to notice
    command = [sys.executable, *SWEEP, *longer, f"results={tmp_path}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while sum(path.stat().st_size > 0 for path in tmp_path.glob("main/*/*/*/calls.jsonl")) < 2:
            assert time.monotonic() < until
            time.sleep(0.02)
        workers = children(process.pid)
        process.kill()
    until = time.monotonic() + 60
    while any(worker.exists() for worker in workers):
        assert time.monotonic() < until, "a worker waits for work that never comes"
        time.sleep(0.1)
    states = [json.loads(path.read_text()) for path in tmp_path.rglob("status.json")]
    assert {state["state"] for state in states} <= {"stopped", "finished"}
    assert any("the process that started the run has ended" in state["reason"] for state in states)


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_runs_in_one_process_stop_with_it_and_go_on_where_they_were(blow, tmp_path):
    with running(ReaderServer(host="127.0.0.1", port=0, latency_s=0.05)) as server:
        settings = [word for word in arguments(server) if not word.startswith(("task=", "method="))]
        command = [sys.executable, *SWEEP, *settings, "mode.epochs=1", f"results={tmp_path / 'cut'}"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": ROOT}
        with subprocess.Popen(command, **pipes) as process:
            wait_for_requests(server, 40, process)
            asked = time.monotonic()
            process.send_signal(blow)
            output = process.communicate(timeout=60)[0]
        assert time.monotonic() - asked < LONGEST_S
        assert process.returncode == (130 if blow == signal.SIGINT else -blow), output
        assert "Traceback" not in output
        states = [json.loads(path.read_text())["state"] for path in tmp_path.rglob("status.json")]
        assert set(states) == {"stopped" if blow == signal.SIGINT else "running"}
        assert len(states) == 2, "runs that had not begun did not begin"
        assert subprocess.run(command, **pipes, check=False).returncode == 0
        runs = [Ran(status=0, folder=path.parent) for path in sorted(tmp_path.rglob("metrics.json"))]
        for seed, run in enumerate(runs):
            words = [word for word in (*SWEEP[2:4], *settings) if not word.startswith("seed=")]
            assert run.lasting() == launch(tmp_path / "whole", *words, "mode.epochs=1", f"seed={seed}").lasting()
    answered = server.stats()["completions"]
    kept = sum(len(run.lines("calls")) for run in runs)
    assert len(runs) == 3
    # Beside the calls of both sweeps and of the runs alone there are probes, and what was in flight.
    assert 2 * kept <= answered <= 2 * kept + 2 * len(runs) * 5 + 4
