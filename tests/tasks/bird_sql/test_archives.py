"""Databases out of BIRD's archives, from a local web server; questions from a local data set."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace

import pytest

from ace_bench.cli.main import start
from ace_bench.core.errors import DataError
from ace_bench.tasks.bird_sql.databases import Archive
from ace_bench.tasks.bird_sql.task import BirdSql
from ace_bench.tasks.data import RemoteFile
from tests.cli.serving import FileServer
from tests.tasks.bird_sql.conftest import SCRIPT, build

ARCHIVE = Archive(file=RemoteFile(name="dev.zip", url="http://nowhere.invalid/x/dev.zip"), split="test")
CARD = """---
configs:
- config_name: bird
  data_files: [{split: train, path: train.jsonl}, {split: test, path: test.jsonl}]
---
"""


def write_questions(folder, train, test):
    folder.mkdir()
    for split, count, name in (("train", train, "places"), ("test", test, "people")):
        shared = {"SQL": "SELECT 1", "db_id": name, "evidence": "", "difficulty": "simple"}
        rows = [{"question": f"{split} {number}?", **shared} for number in range(count)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def sqlite(tmp_path):
    return build(tmp_path / "some" / "some.sqlite", SCRIPT).read_bytes()


def zipped(files):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        for name, content in files.items():
            writer.writestr(name, content)
    return archive.getvalue()


def official(name, sqlite, inner="dev_databases"):
    """As the publisher packs it: an archive within an archive, with leftovers of a Mac."""
    databases = zipped(
        {
            f"{inner}/{name}/{name}.sqlite": sqlite,
            f"{inner}/{name}/database_description/a.csv": b"x",
            f"{inner}/unasked/unasked.sqlite": b"y",
            f"__MACOSX/{inner}/{name}/._{name}.sqlite": b"z",
        }
    )
    return zipped({"dev_20240627/dev.json": b"[]", f"dev_20240627/{inner}.zip": databases, "__MACOSX/._x": b""})


@pytest.mark.parametrize("nested", [True, False])
def test_what_is_lacking_is_unpacked_and_nothing_else(nested, tmp_path, sqlite):
    folder = write_questions(tmp_path / "data", 3, 3)
    plain = zipped({"people/people.sqlite": sqlite, "x/../../../people/people.sqlite.exe": b"", "other.sqlite": b""})
    (tmp_path / "dev.zip").write_bytes(official("people", sqlite) if nested else plain)
    assert ARCHIVE.find_missing(folder) == {"people"}
    ARCHIVE.unpack(tmp_path / "dev.zip", folder)
    assert ARCHIVE.find_missing(folder) == set()
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == ["databases/people/people.sqlite", "test.jsonl", "train.jsonl"]
    assert (folder / "databases" / "people" / "people.sqlite").read_bytes() == sqlite


def test_broken_and_wrong_archives(tmp_path, sqlite):
    folder, path = write_questions(tmp_path / "data", 3, 3), tmp_path / "dev.zip"
    for content in (b"", b"no zip", official("people", sqlite)[:-40], zipped({"dev_databases.zip": b"no zip"})):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a complete zip archive"):
            ARCHIVE.unpack(path, folder)
    path.write_bytes(official("else", sqlite))
    with pytest.raises(DataError, match=r"lacks the databases people; is it dev.zip"):
        ARCHIVE.unpack(path, folder)
    assert sorted(one.name for one in folder.iterdir()) == ["test.jsonl", "train.jsonl"]


def test_the_command_brings_questions_and_databases(sqlite, tmp_path, make, monkeypatch, capsys):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hub-cache"))
    datasets.disable_progress_bars()
    hub = write_questions(tmp_path / "hub", 30, 4)
    (hub / "README.md").write_text(CARD)
    monkeypatch.setattr(BirdSql, "hub", replace(BirdSql.hub, path=str(hub)))
    publisher, folder = FileServer(), tmp_path / "here"
    publisher.files["/dev.zip"] = official("people", sqlite)
    publisher.files["/train.zip"] = official("places", sqlite, "train_databases")
    publisher.cut["/dev.zip"] = 100
    command = ["bird_sql", "--dir", str(folder), "--base-url", publisher.url]
    try:
        assert start("data", command) == 2
        assert "the same command again continues" in capsys.readouterr().err
        assert start("data", command) == 0
        assert "no checksum is published" in capsys.readouterr().err
        assert start("data", command) == 0
        assert capsys.readouterr().err.count("all its files exist") == 2
    finally:
        publisher.stop()
    assert [path for path, _ in publisher.seen] == ["/dev.zip", "/dev.zip", "/train.zip"]
    assert not list(folder.glob("*.zip*"))
    task = make(data_dir=str(folder), stream_bench={"train": 10, "val": 5, "seed": 42})
    assert [len(task.samples(split)) for split in task.splits] == [10, 5, 4]
    with task.open(task.samples("test")[0]) as session:
        assert session.grade("SELECT 1").correct
