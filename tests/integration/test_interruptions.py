"""Ctrl-C and SIGTERM stop a run within seconds, whatever its calls are doing."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ace_bench.backbones.embedded.server.faults import Faults
from ace_bench.backbones.embedded.server.serve import ReaderServer
from tests.backbones.serving import over_http, running
from tests.launching import ROOT, Ran, launch

LONGEST_S = 15
"""Three times what is promised: other work on the machine must not fail a test."""


class Reader(ReaderServer):
    """Answers the probe and some calls; then it fails or keeps everyone waiting."""

    answers = 3

    def __init__(self, then):
        super().__init__(host="127.0.0.1", port=0)
        self.then = then

    def count(self, what):
        if what == "requests" and self.stats()["requests"] >= self.answers:
            if self.then == "fails":
                self.faults = Faults(chances={"http_500": 1.0})
            else:
                self.latency_s = 30.0
        return super().count(what)


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("then", "number"), [("fails", signal.SIGTERM), ("waits", signal.SIGINT)], ids=["in a pause", "in a request"]
)
def test_a_run_that_waits_for_its_backbone_stops_within_seconds_and_records_nothing(then, number, tmp_path):
    with running(Reader(then)) as server, start(server, tmp_path / "cut") as process:
        wait_for_requests(server, server.answers + 2, process)
        asked = time.monotonic()
        process.send_signal(number)
        output = process.communicate(timeout=60)[0]
        assert time.monotonic() - asked < LONGEST_S
    assert process.returncode == 130
    assert "Traceback" not in output
    assert "Run the same command to continue" in output
    folder = ROOT / output.splitlines()[-1]
    assert json.loads((folder / "status.json").read_text())["state"] == "stopped"
    calls = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    assert not any(call["fault"] for call in calls)
    # The first answer is the probe's. On a busy machine the last one may come too late to be recorded.
    assert server.answers - 2 <= len(calls) <= server.answers - 1
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        continued = launch(tmp_path / "cut", *arguments(server))
        whole = launch(tmp_path / "whole", *arguments(server))
    assert continued.folder == folder
    assert continued.lasting() == whole.lasting()


class Stormy(ReaderServer):
    """Has an outage or a bad time from some request on; none until then."""

    storm = (10**9, {})

    def count(self, what):
        if what == "requests":
            first, chances = self.storm
            self.faults = Faults(chances=chances if self.stats()["requests"] >= first else {}, seed=first)
        return super().count(what)


STORMS = ({"http_500": 1.0}, {"http_500": 0.4, "drop": 0.2, "truncate": 0.2})


@pytest.mark.thorough
@pytest.mark.parametrize(
    "method",
    [
        ("method=ace", "mode.epochs=1", "limit=12"),
        ("method=ace", "method.verify=true", "mode.epochs=1", "limit=8"),
        ("protocol=official", "mode.eval_every=4", "limit=8"),
        ("protocol=official", "mode=online", "mode.window=3", "limit=10"),
        ("method=dc_rs", "mode=online", "limit=15"),
        ("method=gepa", "method.auto=null", "method.max_metric_calls=30", "limit=6"),
    ],
    ids=lambda settings: " ".join(settings[:2]),
)
def test_kills_interruptions_and_outages_at_random_moments_change_nothing(method, tmp_path):
    rng = random.Random(method[0])
    with running(Stormy(host="127.0.0.1", port=0, latency_s=0.01)) as server:
        settings = ("method=ace", *method, "estimate=false", "backbone.retry.times=1", "backbone.retry.first_pause=0")
        whole = launch(tmp_path / "whole", *arguments(server), *settings)
        calls = len(whole.lines("calls"))
        for blow in (*rng.sample([*STORMS, "SIGKILL", "SIGTERM", "SIGINT", "SIGKILL"], 6), None):
            moment = server.stats()["requests"] + rng.randrange(2, calls // 4)
            server.storm = (moment, blow) if isinstance(blow, dict) else (10**9, {})
            with start(server, tmp_path / "cut", *settings) as process:
                if isinstance(blow, str):
                    while process.poll() is None and server.stats()["requests"] < moment:
                        time.sleep(0.005)
                    process.send_signal(getattr(signal, blow))
                output = process.communicate(timeout=240)[0]
            assert process.returncode in (0, 3, 130, -signal.SIGKILL), output
            assert "Traceback" not in output
    assert process.returncode == 0, output
    cut = Ran(status=0, folder=ROOT / output.splitlines()[-1])
    assert cut.lasting() == whole.lasting()
    answered = [call["id"] for call in cut.lines("calls") if call["fault"] is None]
    assert sorted(answered) == sorted(call["id"] for call in whole.lines("calls"))


def wait_for_handler(process):
    """Wait until Python itself has started, whose own traceback nobody can prevent."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        pytest.skip("sees by Linux's means when the program begins")
    while not int(status.read_text().partition("SigCgt:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1:
        assert process.poll() is None
        time.sleep(0.005)


@pytest.mark.parametrize("program", [["run.py"], ["-m", "ace_bench", "reproduce"]])
def test_a_stop_while_the_program_is_still_loading_is_one_sentence(program, tmp_path):
    for number in (signal.SIGINT, signal.SIGTERM):
        for delay in (0.0, 0.3):
            task = ("task=finer", "task.source=sample") if program == ["run.py"] else ("table=2", "backbone=embedded")
            command = [sys.executable, *program, *task, f"results={tmp_path}"]
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            with process:
                wait_for_handler(process)
                time.sleep(delay)
                process.send_signal(number)
                output = process.communicate(timeout=60)[0]
            assert process.returncode in (130, 128 + number), output
            assert "Traceback" not in output
            assert "nterrupted" in output or "Stopped" in output


SWEEP = ("run.py", "-m", "task=formula", "method=ace", "seed=0,1,2", "launcher=threads", "hydra.launcher.n_jobs=2")


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_the_runs_of_a_sweep_stop_with_its_process_and_go_on_where_they_were(blow, tmp_path):
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
