"""What a list says of a run besides its settings: its gain and its date."""

from datetime import UTC, datetime

import pytest

from ace_bench.report.listing import ListedGain, began, gains
from ace_bench.report.records import read_run
from tests.launching import launch

SMALL = ("task=finer", "task.source=sample", "limit=4", "mode.epochs=1")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("listed")
    settings = {
        "base": ("method=base",),
        "again": ("method=base", "seed=1"),
        "before": (),
        "without": ("mode.before=false",),
        "little": ("mode.before=false", "limit={train: 2, val: 2, test: 4}"),
    }
    others = {
        "other": ("mode.before=false", "limit=3"),
        "another form of reply": ("mode.before=false", "agent.scaffold=answer_alone"),
    }
    return {name: launch(root, *SMALL, *more).folder for name, more in {**settings, **others}.items()}


def test_a_gain_is_over_the_score_before_or_over_base_runs_of_the_same_samples(folders):
    runs = {name: read_run(folder) for name, folder in folders.items()}
    found = gains(runs.values())
    scores = {name: run.metrics["headline"]["after"] for name, run in runs.items()}
    before = runs["before"].metrics["headline"]["before"]
    base = (scores["base"] + scores["again"]) / 2
    assert found == {
        folders["before"]: ListedGain(points=scores["before"] - before, over="its own score before"),
        folders["without"]: ListedGain(
            points=scores["without"] - base, over="method=base on the same samples, mean of 2 runs"
        ),
        folders["little"]: ListedGain(
            points=scores["little"] - base, over="method=base on the same samples, mean of 2 runs"
        ),
    }


def test_a_run_began_when_its_first_process_did_or_when_its_settings_were_written(folders, tmp_path):
    (run,) = read_run(folders["base"]).processes
    assert began(folders["base"]) == run.at.timestamp()
    assert abs(datetime.now(UTC).timestamp() - run.at.timestamp()) < 3600
    (tmp_path / "identity.json").write_text("{}")
    for text in ("", "{", '{"at": "yesterday"}', "\x00"):
        (tmp_path / "processes.jsonl").write_text(text)
        assert began(tmp_path) == (tmp_path / "identity.json").stat().st_mtime
    assert began(tmp_path / "gone") == 0.0
