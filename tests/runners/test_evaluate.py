"""Evaluation of saved contexts of every kind, without the method that made them."""

import pytest

from tests.doubles import Recording
from tests.launching import launch
from tests.playbook.making import playbook

SMALL = ("task=finer", "task.source=sample", "limit={train: 6, val: 4, test: 6}")


@pytest.mark.parametrize(
    ("settings", "split", "asked"),
    [
        ("mode=offline method.context={}", "test", 6),
        ("mode=online method.context={}", "test", 6),
        ("mode=evaluate mode.context={} mode.split=val", "val", 4),
    ],
)
def test_every_mode_evaluates_the_given_context_and_nothing_else(settings, split, asked, tmp_path):
    text = tmp_path / "playbook.txt"
    text.write_text(playbook("one", "two").official_text())
    made = []
    ran = launch(
        tmp_path,
        *SMALL,
        "method=frozen",
        *settings.format(text).split(),
        backbone=lambda inner: Recording(inner, made),
    )
    assert ran.status == 0
    assert len(made) == asked, "each sample once"
    assert all("\n[others-00001] (others) one\n" in call[-1] for call in made)
    assert list(ran.metrics["splits"]) == [split]
    assert ran.metrics["context"]["items"] == 2
    assert ran.metrics["calls"]["adapt"] == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("method.context={0}/cut.json",), "cut.json: line 1: broken JSON"),
        (("method.context={0}/wrong.json",), "wrong.json: "),
        (("method.context={0}/a.txt", "mode=evaluate", "mode.context={0}/b.txt"), "b.txt and method.context="),
    ],
)
def test_a_run_without_one_whole_context_is_refused_before_it_starts(settings, message, tmp_path, capsys):
    (tmp_path / "cut.json").write_text('{"kind": "playbook", "bullets": [')
    (tmp_path / "wrong.json").write_text('{"kind": "playbook", "bullets": [{"id": 7}]}')
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(playbook("one").official_text())
    results = tmp_path / "results"
    ran = launch(results, *SMALL, "method=frozen", *(setting.format(tmp_path) for setting in settings))
    assert ran.status == 2
    assert message in capsys.readouterr().err
    assert not list(results.rglob("calls.jsonl"))


def test_before_is_the_same_prompt_without_the_context(tmp_path):
    made = launch(tmp_path, *SMALL, "method=ace", "mode.epochs=1")
    saved = made.folder / "contexts" / "final.json"
    frozen = launch(tmp_path, *SMALL, "method=frozen", "mode=evaluate", f"mode.context={saved}", "mode.before=true")
    assert {k: frozen.metrics["headline"][k] for k in ("before", "after")} == {
        k: made.metrics["headline"][k] for k in ("before", "after")
    }
