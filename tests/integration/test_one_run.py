"""One run has one name: what is paid for is found again, and no folder answers for another run."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from ace_bench.report.records import find_runs
from ace_bench.store.results import CHECKSUMS, IDENTITY
from tests.launching import ROOT, launch

SMALL = ("task=finer", "method=base", "task.source=sample", "limit=2", "mode.before=false")
PLUGIN = ROOT / "tests" / "plugin_package"


def made(results, *overrides):
    """Make a run and return its folder."""
    ran = launch(results, *SMALL, *overrides)
    assert ran.status == 0
    return ran.folder


@pytest.fixture
def refused(capsys):
    """Start a run that must be refused, and return the sentence on the console."""

    def start(results, *overrides):
        assert launch(results, *SMALL, *overrides).status == 2
        return capsys.readouterr().err

    return start


def without_checksum(folder, name):
    """Forget the checksum of a file that a test changes on purpose."""
    lines = (folder / CHECKSUMS).read_text().splitlines(keepends=True)
    (folder / CHECKSUMS).write_text("".join(line for line in lines if f'"{name}"' not in line))


def aged(folder):
    """Move a run where an older version would have made it, and return its new folder."""
    identity = json.loads((folder / IDENTITY).read_text())
    del identity["form"], identity["settings"]["sampling"], identity["settings"]["repeat_calls"]
    without_checksum(folder, IDENTITY)
    (folder / IDENTITY).write_text(json.dumps(identity))
    older = folder.parent.with_name("0123456789ab")
    folder.parent.rename(older)
    return older / folder.name


def test_a_setting_of_somebody_elses_method_counts_by_any_name(tmp_path):
    for keep in (1, 8):
        command = [sys.executable, "-m", "ace_bench", "--config-dir", PLUGIN / "capital_cities/configs", "run"]
        words = ("experiment=capital_notes", f"method.keep={keep}", f"results={tmp_path}")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (PLUGIN, ROOT, ROOT / "packages")))}
        subprocess.run([*command, *words], check=True, capture_output=True, env=env)
    scores = {run.identity["method"]["keep"]: run.metrics["headline"]["after"] for run in find_runs(tmp_path).runs}
    assert scores == {1: 50.0, 8: 100.0}


def test_a_run_of_an_older_version_is_shown_and_paid_for_again_only_when_asked(tmp_path, refused):
    older = aged(made(tmp_path))
    (shown,) = find_runs(tmp_path).runs
    assert (shown.folder, shown.older, shown.finished) == (older, True, True)
    said = refused(tmp_path)
    assert str(older) in said
    assert "resume=false makes the run again" in said
    launch(tmp_path, *SMALL, "seed=1")
    launch(tmp_path, *SMALL, "limit=3")
    again = made(tmp_path, "resume=false")
    assert made(tmp_path) == again != older
    assert [run.older for run in find_runs(tmp_path).runs] == [True, False, False, False]


@pytest.mark.parametrize("finished", [True, False])
def test_a_folder_that_holds_another_seed_is_refused(finished, tmp_path, refused):
    first, second = made(tmp_path), made(tmp_path, "seed=1")
    for folder in () if finished else (first, second):
        (folder / "metrics.json").unlink()
        without_checksum(folder, "metrics.json")
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    for seed, recorded in ((0, 1), (1, 0)):
        assert f"seed{seed} holds seed {recorded} by its own records" in refused(tmp_path, f"seed={seed}")


def test_a_folder_that_holds_a_run_of_other_settings_is_refused(tmp_path, refused):
    ours, other = made(tmp_path), made(tmp_path, "limit=1")
    shutil.rmtree(ours)
    other.rename(ours)
    assert f"{ours} holds the run {other.parent.name}" in refused(tmp_path)
