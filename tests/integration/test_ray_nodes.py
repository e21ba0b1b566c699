"""A sweep over two Ray nodes, of which one dies: its runs go on at the other, and no finished call is paid twice."""

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from ace_bench.report.records import find_runs
from tests.backbones.serving import running
from tests.launching import ROOT

pytest.importorskip("ray")
RAY = Path(sys.executable).parent / "ray"
LIMIT_S = 90


def until(found, what):
    end = time.monotonic() + LIMIT_S
    while not found():
        assert time.monotonic() < end, f"no {what} after {LIMIT_S} s"
        time.sleep(0.2)


def node(stack, env, log, *options):
    """Start one node as a process group of its own, as a machine of its own would be."""
    common = ("--block", "--num-cpus=2", "--object-store-memory=100000000", "--include-log-monitor=false")
    with log.open("w") as output:
        process = subprocess.Popen(
            [RAY, "start", *options, *common], env=env, stdout=output, stderr=output, start_new_session=True
        )
    stack.callback(process.wait)
    stack.callback(end, process)
    until(lambda: "Ray runtime started" in log.read_text(), f"node: {log.read_text()}")
    return process


def end(process):
    """End all processes of a node at once."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def raylet(process):
    """Return the process of a node's scheduler; its workers are other processes."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,comm=", "--sid", str(process.pid)], capture_output=True, text=True, check=True
    )
    return next(int(line.split()[0]) for line in listed.stdout.splitlines() if "raylet" in line)


def calls(results):
    return {path.parent: len(path.read_text().splitlines()) for path in results.glob("main/**/calls.jsonl")}


@pytest.mark.thorough
@pytest.mark.parametrize("whole", [True, False], ids=["the machine", "its raylet alone"])
def test_runs_of_a_dead_node_go_on_at_the_other(whole, tmp_path):
    results = tmp_path / "results"
    env = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    env |= {"RAY_USAGE_STATS_ENABLED": "0"}
    with ExitStack() as stack:
        server = stack.enter_context(running(ReaderServer(host="127.0.0.1", port=0, latency_s=0.2)))
        head = ("--head", "--node-ip-address=127.0.0.1", "--port=0", "--include-dashboard=false")
        node(stack, env, tmp_path / "first.log", *head)
        address = "127.0.0.1:" + re.search(r"--address='[^:]+:(\d+)'", (tmp_path / "first.log").read_text())[1]
        second = node(stack, env, tmp_path / "second.log", f"--address={address}", "--node-ip-address=127.0.0.2")
        command = [
            *(sys.executable, str(ROOT / "run.py"), "-m", "task=formula", "method=ace", "seed=0,1,2,3"),
            *("task.source=sample", "embedder=hashing", "limit={train: 20, val: 1, test: 10}", "mode.epochs=1"),
            *("concurrency=1", "estimate=false", "backbone=openai_compatible", "backbone.model=embedded"),
            *(f"backbone.base_url={server.address}", "backbone.simulated=true", "backbone.api_key_env=null"),
            *("launcher=ray", f"hydra.launcher.init.address={address}", f"results={results}"),
        ]
        swept = subprocess.Popen(
            command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        until(lambda: len(calls(results)) == 4 and min(calls(results).values()) > 15, "calls of four runs")
        if whole:
            end(second)
        else:
            os.kill(raylet(second), signal.SIGKILL)
        said, _ = swept.communicate(timeout=300)
        assert swept.returncode == 0, said
        asked = server.stats()["completions"]
    runs = find_runs(results).runs
    assert [run.finished for run in runs] == [True] * 4
    kept = sum(calls(results).values())
    starts = 4 + 2  # each start probes the server twice, and each killed run had one call in flight
    assert kept <= asked <= kept + 2 * starts + 2, (kept, asked)
