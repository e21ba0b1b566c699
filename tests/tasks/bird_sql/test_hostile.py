"""Queries that mean harm, are broken or run wild: the database stays as it is, and the next query runs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ace_bench.core.errors import RolloutFault
from tests.launching import ROOT
from tests.tasks.bird_sql.conftest import build
from tests.tasks.bird_sql.hostile import EXCESSIVE, FOREVER, REFUSED


@pytest.mark.parametrize(
    "queries", [pytest.param(REFUSED, id="refused"), pytest.param(EXCESSIVE, id="excessive", marks=pytest.mark.slow)]
)
def test_whatever_a_query_does_nothing_outside_its_box_is_reached(queries, workers, database, tmp_path):
    """Read, written, left running, or over its memory: nothing; and the next query runs."""
    pool = workers(timeout=0.15)
    other = build(
        tmp_path / "other" / "other.sqlite", "CREATE TABLE keys (k); INSERT INTO keys VALUES ('planted-key');"
    )
    before, files = [database.read_bytes(), other.read_bytes()], sorted(tmp_path.rglob("*"))
    wrong, most = {}, 0
    for sql, expected in queries.items():
        outcome = pool.run(database, sql.replace("{tmp}", str(tmp_path)).replace("{other}", str(other)))
        said = outcome.observed(pool.limits)
        if expected and (outcome.ran or not any(part in said for part in expected.split("|"))):
            wrong[sql[:80]] = said
        assert len(said) < 1_000
        assert "planted-key" not in said
        # More than once, because a busy machine may let the time pass before the query begins.
        assert any(pool.run(database, "SELECT count(*) FROM people").preview == ("3",) for _ in range(5)), sql[:80]
        for process in list(pool._alive):
            most = max(most, peak(process.pid))
            assert not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(), sql[:80]
            assert {kind for kind in opened(process.pid) if kind not in ("pipe", "/dev/null", "/dev/urandom")} == set()
    assert wrong == {}
    assert [database.read_bytes(), other.read_bytes()] == before
    assert sorted(tmp_path.rglob("*")) == files, "no file was made, beside the database or elsewhere"
    assert most < pool.limits.memory_mb << 10


def peak(pid: int) -> int:
    """Most memory that a process ever had, in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def opened(pid: int) -> set[str]:
    return {os.readlink(path).partition(":")[0] for path in Path(f"/proc/{pid}/fd").iterdir()}


REACHING = """
import json, os, resource, socket, sys
sys.argv[1:2] = [json.dumps({"limits": {}, "readable": [], "clock": ""})]
sys.path.insert(0, sys.argv[2])
from ace_bench.tasks.bird_sql import worker

layers = worker._confine([sys.argv[3]], 512 << 20)
tried = {
    "read the database": lambda: open(sys.argv[3], "rb").read(1),
    "read another file": lambda: open(sys.argv[4], "rb").read(1),
    "read /etc/passwd": lambda: open("/etc/passwd", "rb").read(1),
    "list a folder": lambda: os.listdir(os.path.dirname(sys.argv[4])),
    "write beside it": lambda: open(sys.argv[4] + "-new", "wb").write(b"x"),
    "write to /tmp": lambda: open(f"/tmp/ace-bench-{os.getpid()}", "wb").write(b"x"),
    "change the database": lambda: open(sys.argv[3], "r+b").write(b"x"),
    "start a program": lambda: os.execv("/bin/true", ["true"]),
    "connect": lambda: socket.create_connection(("127.0.0.1", int(sys.argv[5])), timeout=5),
}
done = []
for name, attempt in tried.items():
    try:
        attempt()
        done.append(name)
    except OSError:
        pass
kinds = resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE
print(json.dumps([layers, done, [resource.getrlimit(kind) for kind in kinds]]))
"""


def test_the_process_itself_reads_its_databases_and_nothing_else(database, tmp_path):
    """Should a query ever get past SQLite, it meets the kernel."""
    other = tmp_path / "other.txt"
    other.write_text("planted")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = [str(ROOT), str(database), str(other), str(listening.getsockname()[1])]
        done = subprocess.run(
            [sys.executable, "-I", "-c", REACHING, "{}", *place], capture_output=True, text=True, check=True, env={}
        )
    layers, reached, limits = json.loads(done.stdout)
    assert limits == [[512 << 20] * 2, [0, 0], [0, 0]]
    if "files" not in layers or len(layers) < 2:
        pytest.skip(f"this machine confines by {layers or 'nothing'}")
    assert reached == ["read the database"]
    assert other.read_text() == "planted"


def test_what_no_progress_handler_can_stop_is_stopped_by_the_alarm(workers, database):
    """``instr`` on long strings runs for minutes without a single machine step."""
    pool = workers(timeout=0.2, cell_bytes=20_000_000)
    needle = "SELECT instr(hex(zeroblob(9000000)), hex(zeroblob(4000000)) || '1')"
    assert pool.run(database, needle).kind == "timeout"
    assert pool.run(database, "SELECT 1").ran


def test_memory_is_bounded(workers, database):
    pool = workers(timeout=20, memory_mb=256, rows=1_000_000, cell_bytes=50_000_000)
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000) "
    outcome = pool.run(database, rows + "SELECT group_concat(hex(zeroblob(1000000 + x)), '') OVER (ORDER BY -x) FROM n")
    assert not outcome.ran
    assert outcome.kind != "timeout"
    assert pool.run(database, "SELECT 1").ran


def test_a_worker_sees_no_environment_and_one_that_somebody_else_kills_costs_nothing(workers, database, monkeypatch):
    monkeypatch.setenv("PLANTED_API_KEY", "planted")
    pool = workers()
    pool.check()
    (process,) = pool._alive
    assert b"planted" not in Path(f"/proc/{process.pid}/environ").read_bytes()
    assert pool.run(database, "SELECT 1").ran
    assert pool._alive == {process}
    os.kill(process.pid, signal.SIGKILL)
    assert pool.run(database, "SELECT 1").ran
    assert len(pool._alive) == 1


@pytest.mark.slow
def test_a_query_that_brings_its_worker_down_every_time_is_wrong_and_said_to_be(workers, database):
    pool = workers(timeout=30)
    killed: set[int] = set()
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(pool.run, database, FOREVER)
        while not running.done():
            for process in [one for one in list(pool._alive) if one.pid not in killed]:
                while processor_seconds(process.pid) < 0.6:  # well into the query; starting takes less
                    time.sleep(0.01)
                process.kill()
                killed.add(process.pid)
            time.sleep(0.05)
    assert len(killed) == 2
    assert running.result().kind == "crash"
    assert "brought down the process" in running.result().observed(pool.limits)
    assert pool.run(database, "SELECT 1").ran


def test_workers_that_cannot_start_are_the_environments_fault(workers, database, monkeypatch):
    pool = workers()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(RolloutFault) as caught:
        pool.run(database, "SELECT 1")
    assert caught.value.fault.owner == "task"
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RolloutFault, match="before its first query"):
        pool.check()
    monkeypatch.undo()
    assert pool.run(database, "SELECT 1").ran


def test_many_threads_share_few_workers(workers, database):
    pool = workers(count=2, timeout=10)
    with ThreadPoolExecutor(40) as threads:
        outcomes = list(threads.map(lambda n: pool.run(database, f"SELECT {n}").preview, range(40)))
    assert outcomes == [(str(n),) for n in range(40)]
    assert len(pool._alive) <= 2
    pool.close()
    assert not pool._alive


PARENT = """
import sys, threading
from pathlib import Path
from ace_bench.tasks.bird_sql.pool import Workers
from tests.tasks.bird_sql.conftest import CLOCK, limits

pool = Workers(count=2, limits=limits(timeout=60), clock=CLOCK, databases=[Path(sys.argv[1])])
pool.run(Path(sys.argv[1]), "SELECT 1")
threading.Thread(target=pool.run, args=(Path(sys.argv[1]), sys.argv[2]), daemon=sys.argv[3] == "exit").start()
while len(pool._alive) < 2:
    threading.Thread(target=pool.run, args=(Path(sys.argv[1]), "SELECT 1")).start()
print(*(process.pid for process in list(pool._alive)), flush=True)
if sys.argv[3] == "kill":
    threading.Event().wait()
"""


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_no_worker_outlives_its_parent(database, end):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(database), FOREVER, end], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        if end == "kill":
            parent.kill()
        parent.wait(timeout=20)
    assert len(pids) == 2
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
        assert time.monotonic() < deadline, "a worker is left"
        time.sleep(0.05)
