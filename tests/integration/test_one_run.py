"""One run has one name: what is paid for is found again, and no folder answers for another run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ace_bench.cli.main import start
from ace_bench.report.frames import load_frames
from ace_bench.report.page.results import Results
from ace_bench.report.records import find_runs
from ace_bench.store.results import CHECKSUMS, IDENTITY
from tests.launching import ROOT, launch

SMALL = ("task=finer", "method=base", "task.source=sample", "limit=2", "mode.before=false")
METHOD = ROOT / "examples" / "method"


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
    digest = "0123456789ab" + 52 * "0"
    for name in (IDENTITY, "metrics.json", "environment.json"):
        content = json.loads((folder / name).read_text()) | {"digest": digest}
        if name == IDENTITY:
            del content["form"], content["settings"]["sampling"], content["settings"]["repeat_calls"]
        without_checksum(folder, name)
        (folder / name).write_text(json.dumps(content))
    older = folder.parent.with_name(digest[:12])
    folder.parent.rename(older)
    return older / folder.name


def test_a_setting_of_somebody_elses_method_counts_by_any_name(tmp_path):
    for keep in (1, 2):
        command = [sys.executable, "-m", "ace_bench", "--config-dir", METHOD / "last_mistakes/configs", "run"]
        words = ("method=last_mistakes", *SMALL[2:], "mode.epochs=1", f"method.keep={keep}", f"results={tmp_path}")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (METHOD, ROOT)))}
        subprocess.run([*command, *words], check=True, capture_output=True, env=env)
    sizes = {run.identity["method"]["keep"]: run.metrics["context"]["items"] for run in find_runs(tmp_path).runs}
    assert sizes == {1: 1, 2: 2}


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


def edited(folder, after):
    """Give a run another score, as a result of other hands."""
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["headline"]["after"] = metrics["splits"]["test"]["after"]["accuracy"] = after
    without_checksum(folder, "metrics.json")
    (folder / "metrics.json").write_text(json.dumps(metrics))


@pytest.fixture
def said(capsys):
    """Call a command, and return its exit status and all that it printed."""

    def call(command, *words):
        capsys.readouterr()
        status = start(command, list(map(str, words)))
        return status, "".join(capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def three_seeds(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    for seed in (0, 1, 2):
        launch(results, *SMALL, f"seed={seed}")
    return results


def group(results):
    """The folder of the seeds of the only run."""
    (found,) = results.glob("main/*/*")
    return found


def swap_seeds(results):
    first, second = (group(results) / name for name in ("seed0", "seed1"))
    first.rename(results / "aside")
    second.rename(first)
    (results / "aside").rename(second)
    return ("seed0", "seed1")


def rename_digest(results):
    group(results).rename(group(results).with_name("0123456789ab"))
    return ("0123456789ab",)


def move_to_another_task(results):
    folder = group(results).parent
    folder.rename(folder.with_name("formula-base-embedded-offline"))
    return ("formula-base-embedded-offline",)


@pytest.mark.parametrize("moved", [swap_seeds, rename_digest, move_to_another_task])
def test_a_run_under_another_ones_name_counts_as_what_it_records_and_is_named(moved, three_seeds, said, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(three_seeds, results)
    names = moved(results)
    found = find_runs(results)
    assert sorted((run.task, run.seed) for run in found.runs) == [("finer", 0), ("finer", 1), ("finer", 2)]
    for command, words in (("ls", (results,)), ("tables", (results, "--rows", "method")), ("doctor", (results,))):
        status, text = said(command, *words)
        assert status == (command == "doctor")
        for name in names:
            assert re.search(rf"{name}\S* was moved or renamed: by its own records it is finer-base", text)


def test_folders_of_one_run_with_different_results_have_none(three_seeds, said, tmp_path):
    ours = tmp_path / "results" / "ours"
    shutil.copytree(three_seeds, ours)
    shutil.copytree(three_seeds, tmp_path / "results" / "theirs")
    found = find_runs(tmp_path / "results")
    assert (len(found.runs), len(found.copies), found.problems) == (3, 3, ())
    assert said("ls", tmp_path, "--state", "copy")[1].count("copy") == 3
    edited(group(ours) / "seed1", after=77.7)
    found = find_runs(tmp_path / "results")
    assert [(run.seed, run.finished) for run in found.runs] == [(0, True), (1, False), (2, True), (1, False)]
    (problem,) = found.problems
    for name in ("ours", "theirs"):
        assert f"{name}/{(group(ours) / 'seed1').relative_to(ours)}" in problem.reason
    for command, words in (("ls", ()), ("tables", ("--rows", "method,seed", "--over", "nothing")), ("doctor", ())):
        text = said(command, tmp_path / "results", *words)[1]
        assert problem.reason in text.replace("\n  ", " ")
        assert "77.7" not in text
    assert "contradictory" in said("tables", tmp_path / "results", "--rows", "method,seed")[1]
    rows = {row["about"]["state"]: row["result"] for row in Results(tmp_path / "results").listing()["runs"]}
    assert rows["contradictory"] is None
    assert rows["finished"]["after"] == 25


def test_runs_behind_links_are_found_once(three_seeds, said, tmp_path):
    targets = {
        "run": group(three_seeds) / "seed0",
        "seeds": group(three_seeds),
        "group": group(three_seeds).parent,
        "results": three_seeds,
        "above": tmp_path,
        "itself": tmp_path / "mix" / "itself",
        "gone": tmp_path / "gone",
        "system": Path("/proc/sys"),
    }
    mix = tmp_path / "mix"
    mix.mkdir()
    for name, target in targets.items():
        (mix / name).symlink_to(target)
    assert sorted(run.seed for run in find_runs(mix).runs) == [0, 1, 2]
    assert len(find_runs(mix, three_seeds, tmp_path).runs) == 3
    assert said("tables", mix, "--rows", "method")[0] == 0
    assert len(load_frames([mix, three_seeds]).rollouts.query("seed == 0")) == len(
        load_frames(group(three_seeds) / "seed0").rollouts
    )
    for name in ("seeds", "group", "results"):
        (mix / name).unlink()
    assert [run.seed for run in find_runs(mix).runs] == [0]
