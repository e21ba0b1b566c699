"""``ace-bench doctor`` finds damage, rebuilds for free what the records allow, and never comes to another number."""

import os
import random
import shutil
import sys
import warnings
from collections import Counter
from contextlib import suppress

import pytest

from ace_bench import api
from ace_bench.cli.main import start
from ace_bench.core.errors import Stopped, StoreError
from ace_bench.report.frames import load_frames
from ace_bench.report.records import find_runs
from ace_bench.store.damage import examine, lasting_metrics
from ace_bench.store.results import CHECKSUMS, read_metrics
from tests.doubles import Recording
from tests.launching import Ran, launch
from tests.report.page.runs import changed

SMALL = ("task.source=sample", "limit={train: 3, val: 2, test: 3}")
RUNS = {
    "ace": ("task=finer", "method=ace", "mode.epochs=1"),
    "select": ("task=formula", "method=ace", "mode.epochs=1", "mode.select=best", "mode.eval_every=1"),
    "online": ("task=formula", "method=ace", "mode=online"),
    "gepa": ("task=finer", "method=gepa", "method.auto=null", "method.max_metric_calls=15"),
    "memory": ("task=ddxplus", "method=reasoning_bank", "mode=online", "labels=none"),
    "base": ("task=bird_sql", "method=base"),
}
CASES = int(os.environ.get("ACE_BENCH_DAMAGES", "150"))
QUICK_AND_ALL = [
    pytest.param(range(8), marks=pytest.mark.slow, id="some"),
    pytest.param(range(CASES), marks=pytest.mark.thorough, id="all"),
]


KINDS = (
    *("truncated", "bit_flipped", "not_utf8", "line_removed", "line_repeated", "replaced", "zeroed", "swapped"),
    *("gone", "a_folder"),
)
OTHER_TEXTS = ("", "[1, 2]\n", '{"task": {"name": 3}, "calls": [], "kind": "rollout", "state": 7}\n', "[" * 5000)


def damage(path, kind, rng, other=None):
    """Damage a file; ``swapped`` takes the same file of another run, or another file of this one."""
    data, beside = path.read_bytes(), [one for one in path.parent.iterdir() if one.is_file() and one.stat().st_size]
    lines = data.splitlines(keepends=True)
    place, line = rng.randrange(len(data)), rng.randrange(len(lines))
    source = other if other and other.is_file() and rng.random() < 0.7 else rng.choice(beside)
    contents = {
        "truncated": data[:place],
        "bit_flipped": data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :],
        "not_utf8": data[:place] + b"\xff\xfe" + data[place:],
        "line_removed": b"".join(lines[:line] + lines[line + 1 :]),
        "line_repeated": b"".join(lines[: line + 1] + lines[line:]),
        "replaced": rng.choice(OTHER_TEXTS).encode(),
        "zeroed": bytes(len(data)),
        "swapped": source.read_bytes(),
    }
    path.unlink()
    if kind == "a_folder":
        path.mkdir()
    elif kind != "gone":
        path.write_bytes(contents[kind])


LOGS = ("journal.jsonl", "calls.jsonl")
HARMLESS = ("processes.jsonl", "status.json", "checksums.jsonl", "journal.jsonl", "reservations.jsonl")
"""Files of which no number depends on what is gone: a last line, a reason, or what the run makes again by itself.

Reservations of another run count against a budget alone."""


def made(results, *overrides):
    """Run an experiment that knows its command, as one from the command line does; returns its folder."""
    with suppress(Stopped):
        api.run(results=results, overrides=overrides, progress=False)
    (status,) = results.rglob("status.json")
    return status.parent


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Make a run, finished or stopped, once, and copy it; returns its copy, and the whole run."""
    known = {}

    def original(name, finished):
        if (name, finished) not in known:
            overrides = (*RUNS[name], *SMALL)
            if not finished:
                calls = len(Ran(status=0, folder=original(name, finished=True)).lines("calls"))
                overrides += (f"budget.calls={calls // 2}",)
            known[name, finished] = made(tmp_path_factory.mktemp("runs"), *overrides)
        return known[name, finished]

    def copied(name, finished, target):
        folder = original(name, finished)
        shutil.copytree(folder.parents[3], target, dirs_exist_ok=True)
        return target / folder.relative_to(folder.parents[3]), Ran(status=0, folder=original(name, finished=True))

    copied.original = original
    return copied


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def repeated(results, *overrides):
    """The command again, with the number of calls that it makes."""
    backbones = []
    ran = launch(results, *overrides, backbone=lambda inner: backbones.append(Recording(inner)) or backbones[-1])
    return ran, sum(len(one.asked) for one in backbones)


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


def chosen(folder, rng):
    """A file of a run, more often one that costs money."""
    files = sorted(one for one in folder.rglob("*") if one.is_file() and one.name != ".lock")
    prompts = [one for one in files if "prompts" in one.parts]
    return rng.choice([*(one for one in files if one not in prompts), prompts[0], *(folder / log for log in LOGS * 3)])


def damage_and_repair(runs, doctor, results, rng):
    """Damage one file, let the doctor look and repair, and repeat the command; returns what became of it."""
    name, finished, kind = rng.choice([*RUNS]), rng.random() < 0.6, rng.choice(KINDS)
    folder, whole = runs(name, finished, results)
    path = chosen(folder, rng)
    other = runs.original(rng.choice([one for one in RUNS if one != name]), rng.random() < 0.5)
    what = f"{name} {'finished' if finished else 'stopped'}: {path.relative_to(folder)} {kind}"
    before = contents(folder)
    damage(path, kind, rng, other / path.relative_to(folder))
    damaged = contents(folder)
    if damaged == before:
        return "unchanged"
    assert start("report", [str(folder), "--out", str(results / "page.html")]) in (0, 2), what
    look(folder)
    found, said = doctor(results)
    assert contents(folder) == damaged, f"{what}: something is written without --repair"
    left, said = doctor(results, "--repair")
    assert found or path.name in HARMLESS, what
    if left:
        assert all(one["note"] for one in said["damaged"]), what
    else:
        assert doctor(results)[0] == 0, what
    if finished:
        with suppress(StoreError):
            metrics = read_metrics(folder)
            assert (metrics is None and left) or lasting_metrics(metrics) == lasting_metrics(whole.metrics), what
        if path.name != "metrics.json":
            assert (folder / "metrics.json").read_bytes() == before[folder / "metrics.json"], what
    ran, asked = repeated(results, *RUNS[name], *SMALL)
    if ran.status:  # of a file that belongs to another run only its owner knows where the right one is
        assert left == 1, what
        assert kind in ("swapped", "a_folder"), what
        return "refused"
    assert ran.lasting() == whole.lasting(), what
    assert start("report", [str(ran.folder), "--out", str(results / "page.html")]) == 0, what
    recorded = before[folder / "calls.jsonl"].count(b"\n")
    assert asked <= len(whole.lines("calls")) - (0 if path.name == "calls.jsonl" and not finished else recorded), what
    return "left" if left else "repaired" if found else "harmless"


@pytest.mark.parametrize("cases", QUICK_AND_ALL)
def test_random_damage_never_ends_in_another_number(cases, runs, doctor, tmp_path, capsys):
    counts = Counter()
    for case in cases:
        results = tmp_path / str(case)
        counts[damage_and_repair(runs, doctor, results, random.Random(case))] += 1
        shutil.rmtree(results)
    with capsys.disabled():
        sys.stdout.write(f" {dict(counts)} ")
    assert counts["repaired"]


ACE = (*RUNS["ace"], *SMALL)


def lose_calls(folder, number):
    """Take the last calls from a run's records."""
    lines = (folder / "calls.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "calls.jsonl").write_bytes(b"".join(lines[:-number]))


def test_a_flipped_bit_in_a_finished_journal_is_repaired_by_the_command_again_and_by_the_doctor(
    runs, doctor, tmp_path, capsys
):
    for place in ("command", "doctor"):
        folder, whole = runs("ace", True, tmp_path / place)
        damage(folder / "journal.jsonl", "bit_flipped", random.Random(3))
        assert "journal.jsonl: line" in doctor(tmp_path / place)[1]["damaged"][0]["problems"][0]
        if place == "doctor":
            assert doctor(tmp_path / place, "--repair")[0] == 0
        else:
            ran, asked = repeated(tmp_path / place, *ACE)
            assert (ran.status, asked) == (0, 0)
            assert "This was repaired from the recorded calls" in capsys.readouterr().out
        assert examine(folder).problems == ()
        assert (folder / "metrics.json").read_bytes() == (whole.folder / "metrics.json").read_bytes()
        assert api.load_run(folder).points("accuracy")


def test_the_command_makes_lost_settings_again_and_the_doctor_only_shows_it(runs, doctor, tmp_path):
    folder, _ = runs("ace", True, tmp_path)
    before = (folder / "config.yaml").read_text().splitlines()
    (folder / "config.yaml").write_text("[")
    spoil = f" ; touch {tmp_path}/x"
    changed(folder, "processes.jsonl", lambda line: "command" in line and line.update(command=line["command"] + spoil))
    status, said = doctor(tmp_path, "--repair")
    assert status == 1
    assert "Read it before you repeat it: ace-bench run task=finer" in said["damaged"][0]["note"]
    assert f"';' touch {tmp_path}/x" in said["damaged"][0]["note"]
    assert repeated(tmp_path, *ACE)[1] == 0
    after = (folder / "config.yaml").read_text().splitlines()
    assert [line for line in after if line not in before] == [f"results: {tmp_path}"]
    assert doctor(tmp_path)[0] == 0


def test_lost_calls_are_counted_and_a_finished_result_is_not_paid_for_again(runs, doctor, tmp_path, capsys):
    folder, whole = runs("ace", True, tmp_path)
    lose_calls(folder, 2)
    status, said = doctor(tmp_path, "--repair")
    lost = [call["usage"] for call in whole.lines("calls")[-2:]]
    spent = {"in": sum(one["prompt"] for one in lost), "out": sum(one["completion"] for one in lost)}
    assert (status, said["damaged"][0]["lost"]) == (1, {"calls": 2, **spent, "usd": 0.0})
    assert repeated(tmp_path, *ACE)[1] == 0
    said = capsys.readouterr().out
    assert "lacks 2 of" in said
    assert "cannot be repaired for free" in said
    (folder / "metrics.json").unlink()
    assert doctor(tmp_path)[1]["damaged"][0]["lost"] == {"calls": 2, "in": None, "out": None, "usd": None}
    ran, asked = repeated(tmp_path, *ACE)
    assert (asked, ran.lasting()) == (2, whole.lasting())


def test_calls_lost_after_a_stop_are_named_before_they_are_paid_for_again(runs, doctor, tmp_path, capsys, caplog):
    folder, _ = runs("ace", False, tmp_path)
    lose_calls(folder, 3)
    assert doctor(tmp_path)[1]["damaged"][0]["lost"]["calls"] == 3
    repeated(tmp_path, *ACE)
    assert "3 calls that were recorded are gone from its end, made again and paid for again" in caplog.text


def test_a_run_is_not_continued_with_the_calls_of_another_one(runs, doctor, tmp_path, capsys):
    folder, _ = runs("ace", False, tmp_path)
    right = (folder / "calls.jsonl").read_bytes()
    shutil.copyfile(runs.original("online", True) / "calls.jsonl", folder / "calls.jsonl")
    status, said = doctor(tmp_path, "--repair")
    assert (status, "of different runs" in said["damaged"][0]["problems"][0]) == (1, True)
    assert launch(tmp_path, *ACE).status == 2
    assert "put the right file back" in capsys.readouterr().err
    (folder / "calls.jsonl").write_bytes(right)
    assert doctor(tmp_path)[0] == 0


def lose_a_line(folder):
    damage(folder / "journal.jsonl", "line_removed", random.Random(0))
    return folder


def move_away(folder):
    return shutil.move(folder.parent, folder.parent.with_name("0123456789ab")) / folder.name


def edit_code(folder):
    changed(folder, "processes.jsonl", lambda line: line.get("code", {}).update({"ace_bench.ace.ace": "0"}))
    return folder


@pytest.mark.parametrize(
    ("spoil", "note"),
    [
        (lose_a_line, "both journal.jsonl and metrics.json are damaged"),
        (move_away, "settings, data or the version of ace-bench have changed"),
        (edit_code, "code that decides its result has changed"),
    ],
)
def test_what_nothing_vouches_for_is_not_made_up(spoil, note, runs, doctor, tmp_path):
    folder, _ = runs("ace", True, tmp_path)
    (folder / "metrics.json").unlink()
    folder = spoil(folder)
    status, said = doctor(tmp_path, "--repair")
    assert (status, note in said["damaged"][0]["note"]) == (1, True)
    assert not (folder / "metrics.json").exists()


@pytest.mark.slow
def test_folders_of_a_version_without_checksums_go_on_and_are_read(runs, tmp_path):
    for finished in (True, False):
        folder, whole = runs("ace", finished, results := tmp_path / str(finished))
        for name in LOGS:
            changed(folder, name)
        (folder / CHECKSUMS).unlink()
        look(folder)
        ran, _ = repeated(results, *ACE)
        assert (ran.status, ran.folder, ran.lasting()) == (0, folder, whole.lasting())
        assert len(ran.lines("calls")) == len(whole.lines("calls"))
        assert start("report", [str(folder), "--out", str(tmp_path / "page.html")]) == 0
