"""Databases out of BIRD's archives, from a local web server; questions from a local data set."""

from __future__ import annotations

import io
import json
import sys
import types
import zipfile
from collections.abc import Iterator

import pytest

from ace_bench.cli.main import start
from ace_bench.core.errors import DataError
from ace_bench.tasks.bird_sql.databases import Archive
from ace_bench.tasks.data import RemoteFile
from tests.cli.serving import FileServer
from tests.tasks.bird_sql.conftest import SCRIPT, build


@pytest.fixture
def publisher(sqlite) -> Iterator[FileServer]:
    """Run a web server that offers both archives."""
    running = FileServer()
    running.files = {
        "/dev.zip": official("people", sqlite),
        "/train.zip": official("places", sqlite, "train_databases"),
    }
    yield running
    running.stop()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split, name in (("test", "people"), ("train", "places")):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row(split, n, name)) + "\n" for n in range(3)))
    return folder


def row(split, number, database):
    return {"question": f"{split} {number}?", "SQL": "SELECT 1", "db_id": database, "evidence": "", "difficulty": ""}


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


ARCHIVE = Archive(file=RemoteFile(name="dev.zip", url="http://nowhere.invalid/x/dev.zip"), split="test")


@pytest.mark.parametrize("nested", [True, False])
def test_what_is_lacking_is_unpacked_and_nothing_else(nested, folder, tmp_path, sqlite):
    plain = zipped({"people/people.sqlite": sqlite, "x/../../../people/people.sqlite.exe": b"", "other.sqlite": b""})
    (tmp_path / "dev.zip").write_bytes(official("people", sqlite) if nested else plain)
    assert ARCHIVE.lacking(folder) == {"people"}
    ARCHIVE.unpack(tmp_path / "dev.zip", folder)
    assert ARCHIVE.lacking(folder) == set()
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == ["databases/people/people.sqlite", "test.jsonl", "train.jsonl"]
    assert (folder / "databases" / "people" / "people.sqlite").read_bytes() == sqlite


def test_broken_and_wrong_archives(folder, tmp_path, sqlite):
    path = tmp_path / "dev.zip"
    whole = official("people", sqlite)
    for content in (b"", b"no zip", whole[:-40], zipped({"dev_databases.zip": b"no zip"})):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a complete zip archive"):
            ARCHIVE.unpack(path, folder)
    path.write_bytes(official("else", sqlite))
    with pytest.raises(DataError, match=r"lacks the databases people; is it dev.zip"):
        ARCHIVE.unpack(path, folder)
    assert not list(folder.rglob("*.sqlite"))
    assert not list(folder.rglob("*.inner"))


def test_the_command_brings_questions_and_databases(publisher, tmp_path, make, monkeypatch, capsys):
    offer_data(
        monkeypatch,
        {
            "train": Rows([row("train", n, "places") for n in range(30)]),
            "test": Rows([{**row("test", n, "people"), "difficulty": "simple"} for n in range(4)]),
        },
    )
    folder = tmp_path / "here"
    command = ["bird_sql", "--dir", str(folder), "--base-url", publisher.url]
    publisher.cut["/dev.zip"] = 100
    assert start("data", command) == 2
    assert "the same command again continues" in capsys.readouterr().err
    assert start("data", command) == 0
    assert "no checksum is published" in capsys.readouterr().err
    assert start("data", command) == 0
    assert capsys.readouterr().err.count("all its files exist") == 2
    assert [path for path, _ in publisher.seen] == ["/dev.zip", "/dev.zip", "/train.zip"]
    assert not list(folder.glob("*.zip*"))
    task = make(data_dir=str(folder), stream_bench={"train": 10, "val": 5, "seed": 42})
    assert [len(task.samples(split)) for split in task.splits] == [10, 5, 4]
    with task.open(task.samples("test")[0]) as session:
        assert session.grade("SELECT 1").correct


def test_an_unreachable_hub_and_publisher_are_said(tmp_path, monkeypatch, capsys):
    offer_data(monkeypatch, ConnectionError("no route"))
    assert start("data", ["bird_sql", "--dir", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "cannot be loaded from the hub: no route; check the network" in error
    assert "Traceback" not in error


def offer_data(monkeypatch, offered):
    """Stand in for the data set library, which asks the hub: give a data set, or raise an error."""

    def load_dataset(*_, **__):
        if isinstance(offered, Exception):
            raise offered
        return offered

    library = types.ModuleType("datasets")
    library.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", library)


class Rows(list):
    """What the data set library's splits offer, as far as it is used."""

    @property
    def column_names(self):
        return list(self[0])

    def select_columns(self, names):
        return Rows([{name: row[name] for name in names} for row in self])
