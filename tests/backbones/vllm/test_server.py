"""Launching: readiness, failures with the log's words, and no process left behind however the harness ends."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import asdict

import pytest

from ace_bench.backbones.vllm.command import free_port
from ace_bench.backbones.vllm.server import Server, likely_fix, phase
from ace_bench.core.errors import BackboneUnavailable, ConfigError
from tests.launching import ROOT


def quiet(line):
    pass


@pytest.fixture
def launch(fake):
    started = []

    def make(behaviour="", says="", report_every=0.2, port=None, **settings):
        serve = fake.serve(behaviour, says, **settings)
        started.append(Server(serve, model="some/model", port=port or free_port(), report_every=report_every))
        return started[-1]

    yield make
    for server in started:
        server.stop()


@pytest.mark.slow
def test_a_server_is_waited_for_with_progress_and_stopped_with_all_its_children(fake, launch):
    server, lines = launch("slow"), []
    assert not server.running
    server.start(lines.append)
    assert server.running
    assert urllib.request.urlopen(f"{server.root}/health", timeout=5).status == 200
    assert "starting some/model" in lines[0]
    assert str(server.log) in lines[0]
    assert any("loading the weights" in line for line in lines[1:-1])
    assert lines[-1].startswith("vLLM: ready after")
    assert len(fake.pids()) == 3
    server.stop()
    assert not server.running
    assert fake.all_gone(within=1)
    server.stop()


def test_an_interruption_while_waiting_leaves_nothing(fake, launch):
    server = launch("slow")

    def interrupt(line):
        if (fake.folder / "pids.json").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server.start(interrupt)
    assert fake.all_gone(within=1)


SAYS = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB": "not enough memory",
    "ValueError: No available memory for the cache blocks. Try increasing gpu_memory_utilization": "not enough memory",
    "ValueError: Available memory on node 0 (12.4/16 GiB) is less than desired CPU memory utilization (0.92)": (
        "backbone.server.gpu_memory_utilization"
    ),
    "OSError: no/such is not a local folder and is not a valid model identifier listed on": "model is not found",
    "huggingface_hub.errors.GatedRepoError: 401 Client Error.": "HF_TOKEN",
    "vllm: error: unrecognized arguments: --colour red": "backbone.server.flags",
    "ValueError: Model path does not exist: .smollm2/SmolLM2.gguf": "model is not found",
    "OSError: [Errno 98] error while attempting to bind: address already in use": "backbone.server.port",
    "RuntimeError: Failed to infer device type": "no device",
}


@pytest.mark.parametrize("says", SAYS)
def test_what_a_log_says_is_recognised(says):
    assert SAYS[says] in likely_fix(f"INFO starting\n{says}\nERROR ended\n")


def test_the_phase_of_a_start_is_read_from_the_latest_line_that_tells(tmp_path):
    log = tmp_path / "log"
    log.write_text("")
    assert phase(log) == "importing its code"
    log.write_text("INFO Starting to load model tiny...\nINFO reserved_cpus=[1]\n")
    assert phase(log) == "loading the weights"
    log.write_text(log.read_text() + "INFO Warming up model for the compilation...\nINFO no matter\n")
    assert phase(log) == "compiling and measuring memory"


def test_a_failure_shows_the_end_of_the_log_and_names_its_fix_where_it_is_known(launch):
    says, advice = next(iter(SAYS.items()))
    server = launch("die", says)
    with pytest.raises(
        ConfigError, match=rf"status 1.*{advice}(?s:.*){re.escape(str(server.log))}(?s:.*){re.escape(says)}"
    ):
        server.start(quiet)
    says = "\n".join(f"line {number}" for number in range(100))
    with pytest.raises(BackboneUnavailable) as failure:
        launch("die", says).start(quiet)
    assert "line 99" in failure.value.reason
    assert "line 10\n" not in failure.value.reason


def test_patience_ends(launch):
    server = launch("slow", start_timeout=0.1)
    with pytest.raises(BackboneUnavailable, match="not ready within"):
        server.start(quiet)
    assert not server.running


def test_a_port_in_use_is_refused(launch):
    first = launch()
    first.start(quiet)
    with pytest.raises(ConfigError, match=r"server\.port=\d+ is in use.*or set url"):
        launch(port=int(first.root.rpartition(":")[2])).start(quiet)


HARNESS = """
import json, sys
from ace_bench.backbones.vllm.command import Serve
from ace_bench.backbones.vllm.server import Server
server = Server(Serve(**json.loads(sys.argv[1])), model="m", port=int(sys.argv[2]))
server.start(lambda line: print(line, flush=True))
print("up", flush=True)
sys.stdin.read()
"""


def harness(fake, behaviour=""):
    """Start a server from a process of its own, as a run does."""
    settings = json.dumps(asdict(fake.serve(behaviour)))
    process = subprocess.Popen(
        [sys.executable, "-c", HARNESS, settings, str(free_port())],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert any(line == "up\n" for line in process.stdout)
    return process


@pytest.mark.parametrize("behaviour", ["", "deaf"])
def test_kill_9_of_the_harness_leaves_no_orphan(fake, behaviour):
    with harness(fake, behaviour) as process:
        process.kill()
    assert fake.all_gone()


@pytest.mark.slow
def test_kill_9_of_the_guard_leaves_no_server(fake):
    with harness(fake) as process:
        (guard,) = children_of(process.pid)
        os.kill(guard, signal.SIGKILL)
        server, *left_behind = fake.pids()
        until = time.monotonic() + 5
        while os.path.exists(f"/proc/{server}") and time.monotonic() < until:
            time.sleep(0.05)
        assert not os.path.exists(f"/proc/{server}")
        process.kill()
    for left in left_behind:  # a real server's children watch their parent; these do not
        os.kill(left, signal.SIGKILL)


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children") as children:
        return list(map(int, children.read().split()))
