"""Each file of a run folder, damaged in each way: one sentence, no traceback, and nothing is paid twice."""

import shutil
import warnings

import pytest

from ace_bench.cli.main import start
from ace_bench.core.errors import StoreError
from ace_bench.report.frames import load_frames
from ace_bench.report.records import find_runs, read_run
from ace_bench.store.calls import read_calls
from ace_bench.store.results import CHECKSUMS
from tests.doubles import Recording
from tests.launching import launch
from tests.packages.report.page.runs import changed

COMMAND = ("task=finer", "task.source=sample", "limit={train: 3, test: 2}", "mode.epochs=1", "mode.before=false")
FINISHED, STOPPED = (), ("budget.calls=9",)


def emptied(path, *_):
    path.write_bytes(b"")


def zeroed(path, *_):
    path.write_bytes(bytes(path.stat().st_size))


def halved(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def not_utf8(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + b"\xff\xfe" + data[len(data) // 2 :])


def one_byte_changed(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


def a_list(path):
    path.write_text("[1, 2]\n")


def another_object(path):
    path.write_text('{"task": {"name": 3}, "calls": [], "kind": "rollout", "state": 7}\n')


def gone(path, *_):
    path.unlink()


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_line_lost(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))


def a_line_twice(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], *lines[3:]]))


def deeply_nested(path):
    path.write_text("[" * 5000 + "\n")


KINDS = (
    *(emptied, zeroed, halved, not_utf8, one_byte_changed, a_list, another_object, gone, a_folder, a_line_lost),
    *(a_line_twice, deeply_nested),
)
FILES = (
    *("config.yaml", "environment.json", "status.json", "samples.json", "journal.jsonl", "calls.jsonl"),
    *("checksums.jsonl", "prompts/qa/generator.j2", "contexts/initial.json", "contexts/final.json"),
    *("contexts/tested.txt", "metrics.json", "summary.txt"),
)
LOGS = ("journal.jsonl", "calls.jsonl")
QUICK = {
    *((not_utf8, name) for name in FILES),
    *((emptied, name) for name in ("prompts/qa/generator.j2", "contexts/final.json")),  # as a power failure leaves them
    *((damage, name) for damage in (another_object, a_line_lost, halved) for name in LOGS),
    (another_object, "metrics.json"),
}
CASES = [
    pytest.param(damage, name, marks=() if (damage, name) in QUICK else pytest.mark.thorough)
    for damage in KINDS
    for name in FILES
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run and one that was stopped, by how they were made, and what the run comes to."""
    made = {settings: tmp_path_factory.mktemp("runs") for settings in (FINISHED, STOPPED)}
    ran = {settings: launch(results, *COMMAND, *settings) for settings, results in made.items()}
    assert [one.status for one in ran.values()] == [0, 3]
    return made, ran[FINISHED].lasting(), len(ran[FINISHED].lines("calls"))


@pytest.fixture
def report(capsys, tmp_path):
    """Call ``ace-bench report``; returns its exit status and what it printed."""

    def call(folder):
        capsys.readouterr()
        status = start("report", [str(folder), "--out", str(tmp_path / "page.html")])
        output = capsys.readouterr()
        return status, output.out + output.err

    return call


def look(folder):
    """Ask for all that tables, figures and notebooks ask for; what cannot be had names the folder."""
    (run,) = find_runs(folder).runs or (None,)
    asked = [lambda: load_frames(folder)]
    if run is not None:
        metrics = ("accuracy", "spent.adapt.all.all.in", "fall.before.tokens")
        asked += [lambda metric=metric: run.value(metric) for metric in metrics]
        asked += [lambda: run.settings, lambda: run.finished and run.points("accuracy")]
    for ask in asked:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                ask()
            except StoreError as error:
                warned.append(error)
        assert all(str(folder) in str(one) for one in warned)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [FINISHED, STOPPED], ids=["finished", "stopped"])
@pytest.mark.parametrize(("damage", "name"), CASES)
def test_a_damaged_file_is_told_and_the_run_goes_on(damage, name, settings, runs, report, tmp_path, capsys):  # noqa: PLR0917
    made, whole, total = runs
    results = tmp_path / "results"
    shutil.copytree(made[settings], results)
    (folder,) = (path.parent for path in results.rglob("journal.jsonl"))
    path = folder / name
    if not path.exists():
        pytest.skip("an unfinished run has no such file")
    damage(path)

    status, said = report(folder)
    assert status in (0, 2)
    assert status == 0 or len(said.splitlines()) <= 2, said
    look(folder)

    backbones = []
    ran = launch(results, *COMMAND, backbone=lambda inner: backbones.append(Recording(inner)) or backbones[-1])
    said = capsys.readouterr()
    if damage is a_folder and ran.status:
        assert str(path) in said.err + said.out
        return
    assert (ran.status, ran.folder, ran.lasting()) == (0, folder, whole)
    asked = sum(len(backbone.asked) for backbone in backbones)
    before = 0 if name == "calls.jsonl" else total if settings == FINISHED else 9
    assert asked <= total - before
    capsys.readouterr()
    assert launch(results, *COMMAND).lasting() == whole
    assert "This run is finished" in capsys.readouterr().out
    if settings == STOPPED or name not in LOGS:  # those of a finished run are not written any more
        assert read_run(folder).state == "finished"
        assert all(call.request.messages for call in read_calls(folder))
        look(folder)
        assert report(folder)[0] == 0


def test_folders_of_a_version_without_checksums_go_on_and_are_read(runs, report, tmp_path):
    made, whole, total = runs
    for settings, results in made.items():
        shutil.copytree(results, tmp_path / str(len(settings)))
        (folder,) = (path.parent for path in (tmp_path / str(len(settings))).rglob("journal.jsonl"))
        for name in LOGS:
            changed(folder, name)
        (folder / CHECKSUMS).unlink()
        assert report(folder)[0] == 0
        look(folder)
        ran = launch(tmp_path / str(len(settings)), *COMMAND)
        assert (ran.status, ran.folder, ran.lasting(), len(ran.lines("calls"))) == (0, folder, whole, total)
        assert report(folder)[0] == 0
