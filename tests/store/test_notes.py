"""Tags and notes of runs: what a command gives, what lists show and filter, and files that hold anything else."""

import json
import os

import pytest

from ace_bench.cli.main import start
from ace_bench.report.records import read_run
from ace_bench.store.notes import FILE, Notes, read_notes

SMALL = ("task=finer", "task.source=sample", "method=base", "limit=2")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noted")
    for seed, words in enumerate((["tags=[june,draft]", "note='After the fix, on two cores'"], ["tags=[june]"], [])):
        assert start("run", [*SMALL, f"seed={seed}", f"results={folder}", *words]) == 0
    return folder


def run_of(results, seed):
    (folder,) = results.rglob(f"seed{seed}")
    return folder


def listed(capsys, *words):
    capsys.readouterr()
    status = start("ls", [*map(str, words)])
    return status, capsys.readouterr()


def seeds(capsys, *words):
    return [json.loads(line)["seed"] for line in listed(capsys, *words, "--json")[1].out.splitlines()]


def test_lists_show_tags_and_notes_and_find_runs_by_them(results, capsys):
    assert seeds(capsys, results, "--tag", "june") == [0, 1]
    assert seeds(capsys, results, "--tag", "june", "--tag", "draft") == [0]
    assert seeds(capsys, results, "--note", "THE FIX") == [0]
    assert seeds(capsys, results, "--sort", "tags") == [1, 0, 2]
    header, first, *_ = listed(capsys, results)[1].out.splitlines()
    assert header.split()[-3:] == ["tags", "note", "folder"]
    assert "june,draft  After the fix, on two cores" in first
    assert "tags" not in listed(capsys, results, "seed=2")[1].out.splitlines()[0]


def test_a_note_is_no_part_of_what_a_run_is_and_may_be_changed_afterwards(results, capsys):
    folder = run_of(results, 2)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    command = [*SMALL, "seed=2", f"results={results}"]
    assert start("run", [*command, "note=later"]) == 0
    assert start("run", [*command, "tags=[late]"]) == 0
    assert read_run(folder).notes == Notes(tags=("late",), note="later")
    assert start("run", command) == 0
    assert start("run", [*command, "tags=[]", "note=", "dry_run=true"]) == 0
    assert read_notes(folder) == Notes(tags=("late",), note="later")
    assert start("run", [*command, "tags=[]", "note="]) == 0
    assert read_notes(folder) == Notes()
    assert {path: path.read_bytes() for path in before} == before
    assert listed(capsys, results, "--state", "damaged")[1].out == ""


@pytest.mark.parametrize("words", ["tags=[a b]", "tags=['a,b']", "tags=june", f"note={'x' * 501}"])
def test_what_is_no_tag_or_note_is_refused_before_the_run(tmp_path, words, capsys):
    assert start("run", [*SMALL, f"results={tmp_path / 'results'}", words]) == 2
    assert "must be" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


HOSTILE = [
    b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"tags": "june"}', b'{"tags": ["a b"]}', b'{"note": 3}',
    b'{"tags": ["\\u202e"]}', b'{"tags": ["june\\n"]}',
    b'{"note": "' + b"x" * 501 + b'"}', b"[" * 70_000, b'{"note": "' + b"x" * 100_000 + b'"}',
]  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_file_that_holds_anything_else_is_no_note(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    assert read_notes(tmp_path) == Notes()


def test_a_pipe_and_a_folder_are_no_notes(tmp_path):
    os.mkfifo(tmp_path / FILE)
    assert read_notes(tmp_path) == Notes()
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    assert read_notes(tmp_path) == Notes()


def test_a_note_cannot_change_the_terminal(results, capsys):
    (run_of(results, 1) / FILE).write_text(json.dumps({"note": "\x1b[2J\u202eevil\r\n\x9b2J"}))
    assert not {"\x1b", "\u202e", "\r", "\x9b"} & {*listed(capsys, results)[1].out}
