"""What becomes of a sweep on a cluster: it runs, it outlives time limits, and a cancelled job costs nothing."""

import json
from dataclasses import replace
from pathlib import Path

from ace_bench.report.records import find_runs
from tests.integration.test_sweeps import SWEEP, own_backbones
from tests.slurm.conftest import until

PROBES = 2
"""Calls that a start makes to see whether and how the server answers; they are not of the run."""


def lines(results: Path, name: str) -> list[list[dict[str, object]]]:
    return [
        [json.loads(line) for line in path.read_text().splitlines()] for path in sorted(results.glob(f"main/**/{name}"))
    ]


def paid_once(results: Path, server, starts: int) -> None:
    """The server answered no more than the calls in the folders and the probes; at most one a stop was in flight."""
    kept = sum(map(len, lines(results, "calls.jsonl")))
    asked = server.stats()["completions"]
    assert kept <= asked - PROBES * 2 <= kept + (PROBES + 1) * (starts - 2), (asked, kept, starts)


def test_a_sweep_runs_and_a_run_that_fails_stops_no_other(cluster, tmp_path):
    (tmp_path / "own").mkdir()
    option, known = own_backbones(tmp_path / "own")
    there = replace(cluster, env={**cluster.env, **known})
    swept = there.sweep(tmp_path / "results", *option, *SWEEP)
    said, _ = swept.communicate(timeout=240)
    assert swept.returncode == 1, said
    assert "ended with status 2" in said
    assert f"the logs in {tmp_path}/results/sweeps/slurm" in said
    assert sorted(run.task for run in find_runs(tmp_path / "results").runs if run.finished) == ["finer", "formula"]


def test_a_run_past_its_time_limit_is_submitted_again_and_goes_on(cluster, server, settings, tmp_path):
    limit = ("hydra.launcher.timeout_min=1", "hydra.launcher.signal_delay_s=30")
    swept = cluster.sweep(tmp_path / "results", *settings, *limit)
    said, _ = swept.communicate(timeout=500)
    assert swept.returncode == 0, said
    runs = find_runs(tmp_path / "results").runs
    assert [run.finished for run in runs] == [True, True]
    logs = "".join(path.read_text() for path in (tmp_path / "results" / "sweeps").rglob("*_log.err"))
    assert "timed-out" in logs, "no run reached its limit"
    assert "Traceback" not in logs
    paid_once(tmp_path / "results", server, starts=2 + logs.count("timed-out"))


def test_a_cancelled_job_stops_cleanly_and_the_same_sweep_completes_it(cluster, server, settings, tmp_path):
    results = tmp_path / "results"
    swept = cluster.sweep(results, *settings)
    until(lambda: sum(map(len, lines(results, "calls.jsonl"))) > 20, "call")
    cluster.command("scancel", *cluster.jobs())
    until(cluster.idle, "end of the jobs")
    swept.kill()
    swept.communicate()
    stops = [path.read_text() for path in results.glob("main/**/status.json")]
    again = cluster.sweep(results, *settings)
    said, _ = again.communicate(timeout=500)
    assert again.returncode == 0, said
    assert [run.finished for run in find_runs(results).runs] == [True, True]
    paid_once(results, server, starts=4)
    assert ["interrupted" in stop for stop in stops] == [True, True], stops
