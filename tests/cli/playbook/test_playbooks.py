"""The playbooks of a run as files, named as the authors' code names them."""

from __future__ import annotations

import csv
from datetime import datetime

import pytest

from ace_bench.api import load_runs
from ace_bench.cli.main import start
from ace_bench.contexts.loading import official_text
from ace_bench.report.histories import bullet_history, history
from tests.launching import launch
from tests.outcomes import outcomes

SMALL = ("task=finer", "task.source=sample", "limit=5", "mode.before=false")


def exported(folder, out, *options):
    assert start("playbook", ["export", str(folder), "--out", str(out), *options]) == 0
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


def test_runs_without_playbooks_are_refused(tmp_path, capsys):
    reasons = {tmp_path / "none": "not the folder of a run"}
    for method, reason in (("dc", "only playbooks"), ("base", "without adapting")):
        reasons[launch(tmp_path, *SMALL[:2], "limit=2", "mode.epochs=1", f"method={method}").folder] = reason
    for folder, reason in reasons.items():
        assert start("playbook", ["export", str(folder), "--out", str(tmp_path / "out")]) == 2
        assert reason in capsys.readouterr().err


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A run whose bullets repeat training samples, as those of the embedded reader do."""
    return launch(tmp_path_factory.mktemp("results"), *SMALL, "mode.epochs=1").folder


def test_the_history_of_the_bullets_is_exported_if_it_is_asked_for(ran, tmp_path):
    exported(ran, tmp_path / "plain")
    assert not (tmp_path / "plain" / "bullet_history.csv").exists()
    exported(ran, tmp_path / "out", "--history")
    with (tmp_path / "out" / "bullet_history.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = bullet_history(ran)
    assert [(row["id"], row["content"], row["changed"], row["last_used"]) for row in rows] == [
        (one.id, one.content, str(one.changed), "" if one.last_used is None else str(one.last_used)) for one in found
    ]
    assert [datetime.fromisoformat(row["created_at"]) for row in rows] == [one.created_at for one in found]


WRONG = {"notes.txt": "just prose\n", "broken.json": "{", "other.json": '{"kind": "cheatsheet", "text": ""}'}
THEIRS = """## STRATEGIES
[str-00001] helpful=5 harmful=1 :: Read the whole table first.
[str-00004] helpful=1 harmful=2 :: Use the cached value of the rate [x].

## OTHERS
[oth-00002] helpful=0 harmful=0 :: read  the whole table first
[oth-00003] helpful=2 harmful=0 :: Never read the whole table first.
"""
OURS = """## STRATEGIES
[str-00001] helpful=6 harmful=1 :: Read the whole table first.
[str-00004] helpful=1 harmful=2 :: Use the newest value of the rate.
[str-00009] helpful=0 harmful=0 :: Round to two decimals.
"""


COMMANDS = [
    "playbook show THEIRS",
    "playbook show THEIRS --sort helpful --limit 2",
    "playbook show THEIRS --sort tokens",
    "playbook show THEIRS --section Others",
    "playbook show THEIRS --section none",
    "playbook show RUN --limit 1",
    "playbook diff THEIRS THEIRS",
    "playbook diff THEIRS OURS",
    "playbook diff OURS RUN",
    "playbook feedback THEIRS",
    "playbook forget THEIRS --source none --dry-run",
    "playbook forget THEIRS --bullet str-00001",
    "playbook feedback THEIRS --bullet str-00001 --harmful",
    "playbook feedback THEIRS --bullet str-00001 --helpful --out LEFT.txt",
    "playbook feedback RUN --bullet fac-00001 --helpful --out LEFT",
    "playbook",
    "playbook --help",
    "playbook unknown",
    "playbook show FOLDER/notes.txt",
    "playbook show FOLDER/broken.json",
    "playbook show FOLDER/other.json",
    "playbook show FOLDER/",
    "playbook show FOLDER/gone.json",
]


def test_what_the_commands_print(snapshot, ran, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "p"
    names = {"RUN": ran, **{name: folder / f"{name.lower()}.txt" for name in ("THEIRS", "OURS")}}
    names["LEFT"] = folder / "left.json"
    folder.mkdir()
    for name, text in WRONG.items():
        (folder / name).write_text(text)
    names["THEIRS"].write_text(THEIRS)
    names["OURS"].write_text(OURS)

    def answer(command):
        words = [str(names.get(word, word)).replace("LEFT.txt", f"{folder}/left.txt") for word in command.split()]
        try:
            status = start(words[0], [word.replace("FOLDER", str(folder)) for word in words[1:]])
        except SystemExit as end:
            status = end.code
        said = "".join(capsys.readouterr())
        for name, path in names.items():
            said = said.replace(str(path), name)
        return f"{said.replace(str(folder), 'FOLDER')}({status})"

    assert outcomes(answer, COMMANDS) == snapshot
    assert not (folder / "none.json").exists()


def test_a_stopped_run_shows_the_playbook_that_it_has_so_far(tmp_path, capsys):
    stopped = launch(tmp_path, *SMALL, "budget.calls=12")
    assert stopped.status == 3
    (run,) = load_runs(tmp_path)
    *_, last = run.steps()
    steps = sum(1 for _ in run.steps()) - 1
    assert steps > 0
    assert run.playbook == last
    capsys.readouterr()
    assert start("playbook", ["show", str(run.folder)]) == 0
    shown = capsys.readouterr()
    assert f"{last.size} of {last.size} bullets" in shown.out
    assert shown.err == f"{run.folder} has not finished: this is its playbook after step {steps}\n"
