"""A Slurm of one node: munged, slurmctld and slurmd as they are installed, with files and ports of their own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from tests.backbones.serving import running
from tests.launching import ROOT

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "squeue")
LAUNCHER = (
    *("launcher=slurm", "hydra.launcher.array_parallelism=2", "hydra.launcher.cpus_per_task=1"),
    "hydra.launcher.mem_gb=1",
)


@dataclass(frozen=True)
class Cluster:
    """A running cluster; ``env`` is what its commands need."""

    env: dict[str, str]

    def command(self, *words: object) -> str:
        """Run a command of Slurm and return its output."""
        done = subprocess.run([*map(str, words)], env=self.env, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def jobs(self) -> list[str]:
        """Return the ids of jobs that run, as ``scancel`` takes them."""
        return self.command("squeue", "--noheader", "--states=RUNNING", "--format=%i").split()

    def idle(self) -> bool:
        """Whether no job waits, runs or ends."""
        return not self.command("squeue", "--noheader").strip()

    def sweep(self, results: Path, *overrides: object) -> subprocess.Popen[str]:
        """Start a sweep on the cluster, as the command on a login node does."""
        command = [sys.executable, ROOT / "run.py", "-m", *overrides, *LAUNCHER, f"results={results}"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen([*map(str, command)], cwd=results.parent, env=self.env, text=True, **pipes)


def until(found: Callable[[], object], what: str, limit_s: float = 150) -> None:
    """Wait for something to be true."""
    end = time.monotonic() + limit_s
    while not found():
        assert time.monotonic() < end, f"no {what} after {limit_s} s"
        time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        pytest.skip("needs root and Debian's packages slurmctld, slurmd, slurm-client and munge")
    folder = tmp_path_factory.mktemp("slurm")
    for part in folder, folder / "state", folder / "spool":
        part.mkdir(exist_ok=True)
        part.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    cores = min(2, os.cpu_count() or 1)
    template = Path(__file__).with_name("slurm.conf").read_text()
    text = template.format(host=socket.gethostname(), ports=free_ports(2), folder=folder, cores=cores)
    (folder / "slurm.conf").write_text(text)
    env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    places = {"key-file": key, "socket": folder / "munge.sock", "pid-file": folder / "munged.pid"}
    logs = {"log-file": folder / "munged.log", "seed-file": folder / "munge.seed"}
    munged = ["munged", "--force", "--foreground", *(f"--{name}={path}" for name, path in (places | logs).items())]
    with ExitStack() as stack:
        for command in munged, ["slurmctld", "-D"], ["slurmd", "-D"]:
            daemon = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(daemon.wait)
            stack.callback(daemon.send_signal, signal.SIGTERM)
            if command is munged:
                until(places["socket"].exists, "socket of munged", 20)
        here = Cluster(env)
        node = ("sinfo", "--noheader", "--format=%t")
        until(lambda: subprocess.run(node, env=env, capture_output=True, check=False).stdout == b"idle\n", "node", 60)
        yield here
        subprocess.run(["scancel", "--state=RUNNING"], env=env, check=False)


@pytest.fixture
def server() -> Iterator[ReaderServer]:
    """A model that takes its time, so that there is something to interrupt."""
    with running(ReaderServer(host="127.0.0.1", port=0, latency_s=0.25)) as served:
        yield served


@pytest.fixture
def settings(server: ReaderServer) -> tuple[str, ...]:
    """A sweep of two runs of about 70 seconds each over HTTP, one call at a time."""
    return (
        *("task=finer", "method=ace", "seed=0,1", "task.source=sample", "embedder=hashing", "concurrency=1"),
        *("limit={train: 30, val: 1, test: 20}", "mode.epochs=1", "estimate=false", "backbone=openai_compatible"),
        *(f"backbone.base_url={server.address}", "backbone.model=embedded", "backbone.simulated=true"),
        "backbone.api_key_env=null",
    )
