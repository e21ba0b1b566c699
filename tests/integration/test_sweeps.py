"""Sweeps by Hydra's launchers: in one process, over Ray, and as Slurm jobs."""

import os
import subprocess
import sys

import pytest

from ace_bench.report.records import find_runs
from tests.launching import ROOT

SWEEP = ("task=finer,formula", "method=base", "backbone=faulty,embedded", "task.source=sample", "limit=2")
BACKBONES = """from ace_bench.core.errors import ConfigError
from ace_bench.backbones.embedded.backbone import EmbeddedBackbone


class Faulty(EmbeddedBackbone):
    def complete(self, *messages, **about):
        raise ConfigError("it cannot be called")
"""


def sweep(results, *overrides, **env):
    return subprocess.run(
        [sys.executable, ROOT / "run.py", "-m", *overrides, f"results={results}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=results.parent,
        env={**os.environ, **env},
    )


def own_backbones(folder):
    """Write the backbone ``faulty``; return the option and the environment that make it known."""
    (folder / "own_backbones.py").write_text(BACKBONES)
    group = folder / "configs" / "backbone"
    group.mkdir(parents=True)
    (group / "faulty.yaml").write_text("_target_: own_backbones.Faulty\n")
    return ("--config-dir", folder / "configs"), {"PYTHONPATH": str(folder)}


def finished(results):
    return sorted(run.task for run in find_runs(results).runs if run.finished)


def checked(tmp_path, *launcher, **env):
    results = tmp_path / "results"
    (tmp_path / "own").mkdir()
    option, known = own_backbones(tmp_path / "own")
    env |= known
    swept = sweep(results, *option, *SWEEP, *launcher, **env)
    assert swept.returncode == 1, swept.stdout + swept.stderr
    if {"launcher=slurm", "launcher=ray"} & {*launcher}:  # the errors are in other processes' logs
        assert "ended with status 2" in swept.stderr
    else:
        lines = [line for line in swept.stdout.splitlines() if line.startswith("[")]
        assert sum("failed with status 2" in line for line in lines) == 2, swept.stdout
        assert len(lines) == 4, "each run has a line as it ends"
        assert swept.stdout.count("error: ") == 2
    assert "Traceback" not in swept.stderr
    assert "no such key" not in swept.stderr
    assert finished(results) == ["finer", "formula"]
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("bin", "own")] == ["results"]
    before = {run.folder: (run.folder / "metrics.json").stat().st_mtime_ns for run in find_runs(results).runs}
    again = sweep(results, *SWEEP, "backbone=embedded", *launcher, **env)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "2 runs: base" in again.stdout
    assert {folder: (folder / "metrics.json").stat().st_mtime_ns for folder in before} == before
    assert len(find_runs(results).runs) == 2
    return swept.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param((), id="one by one", marks=pytest.mark.thorough),
        pytest.param(("launcher=threads", "hydra.launcher.n_jobs=2"), id="threads"),
    ],
)
def test_a_run_that_fails_stops_no_other_and_a_repeated_sweep_does_what_is_left(launcher, tmp_path):
    checked(tmp_path, *launcher)


@pytest.mark.thorough
def test_ray_with_two_workers(tmp_path):
    ray = ("launcher=ray", "hydra.launcher.init.num_cpus=2", "+hydra.launcher.init.object_store_memory=1e8")
    said = checked(tmp_path, *ray, "max_calls_in_flight=4")
    assert "4 runs in 1 share, which has at most 4 calls in flight." in said
