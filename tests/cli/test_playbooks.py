"""The playbooks of a run as files, named as the authors' code names them."""

from __future__ import annotations

import pytest

from ace_bench.cli.main import start
from ace_bench.contexts.export import official_text
from ace_bench.report.histories import history
from tests.launching import launch

SMALL = ("task=finer", "task.source=sample", "limit=5", "mode.before=false")


def exported(folder, out, *options):
    assert start("playbooks", [str(folder), "--out", str(out), *options]) == 0
    return {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*.txt")}


def test_an_offline_run_gives_steps_epochs_the_best_and_the_final_playbook(tmp_path):
    folder = launch(tmp_path / "results", *SMALL, "mode.epochs=2", "mode.select=best", "mode.eval_every=2").folder
    files = exported(folder, tmp_path / "out", "--every", "2")
    texts = [official_text(context) for context in history(folder)][1:]
    intermediate = {f"epoch_{epoch}_step_{step}": 5 * (epoch - 1) + step - 1 for epoch in (1, 2) for step in (2, 4)}
    intermediate |= {"epoch_1_final": 4, "epoch_2_final": 9}
    assert files == {
        **{f"intermediate_playbooks/{name}_playbook.txt": texts[place] for name, place in intermediate.items()},
        "best_playbook.txt": (folder / "contexts" / "best.txt").read_text(),
        "final_playbook.txt": texts[-1],
    }


def test_an_online_run_gives_steps_and_windows(tmp_path):
    folder = launch(tmp_path / "results", *SMALL, "mode=online", "mode.window=2").folder
    files = exported(folder, tmp_path / "out", "--every", "4")
    names = ("step_4", "window_1_final", "window_2_final", "window_3_final")
    assert {*files} == {f"intermediate_playbooks/{name}_playbook.txt" for name in names} | {"final_playbook.txt"}
    last = files["intermediate_playbooks/window_3_final_playbook.txt"]
    assert last == files["final_playbook.txt"] == (folder / "contexts" / "final.txt").read_text()


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [(("method=dc",), "only playbooks"), (("method=base",), "without adapting")],
    ids=["other contexts", "nothing learnt"],
)
def test_runs_without_playbooks_are_refused(tmp_path, capsys, overrides, reason):
    folder = launch(tmp_path, "task=finer", "task.source=sample", "limit=2", "mode.epochs=1", *overrides).folder
    assert start("playbooks", [str(folder), "--out", str(tmp_path / "out")]) == 2
    assert reason in capsys.readouterr().err
    assert start("playbooks", [str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert "not the folder of a finished run" in capsys.readouterr().err
