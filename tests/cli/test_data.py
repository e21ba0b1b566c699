"""Downloads against a real HTTP server that cuts, lies and forgets."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from ace_bench.cli import data
from ace_bench.cli.main import start
from ace_bench.core.errors import DataError
from ace_bench.tasks.data import RemoteFile
from ace_bench.tasks.finer import Finer

BODY = os.urandom(300_000)
FILE = RemoteFile(name="train.jsonl", url="unused", sha256=hashlib.sha256(BODY).hexdigest())


@pytest.fixture
def fetch(server, tmp_path):
    server.files["/f"] = BODY
    reports: list[tuple[int, int | None]] = []

    def once(file=FILE, path="/f"):
        return data.fetch(file, tmp_path, server.url + path, lambda done, total: reports.append((done, total)))

    once.reports = reports
    return once


def test_download_and_skip(fetch, server, tmp_path):
    assert fetch() is True
    assert (tmp_path / "train.jsonl").read_bytes() == BODY
    assert fetch.reports[0] == (0, len(BODY))
    assert fetch.reports[-1] == (len(BODY), len(BODY))
    assert fetch() is False
    assert len(server.seen) == 1, "what is there and right is not asked for again"
    assert [path.name for path in tmp_path.iterdir()] == ["train.jsonl"]


def test_cut_download_is_resumed(fetch, server, tmp_path):
    server.cut["/f"] = 100_000
    with pytest.raises(DataError, match="connection was cut; the same command again continues"):
        fetch()
    assert not (tmp_path / "train.jsonl").exists()
    assert (tmp_path / "train.jsonl.part").stat().st_size == 100_000
    assert fetch() is True
    assert server.seen[-1] == ("/f", "bytes=100000-")
    assert (tmp_path / "train.jsonl").read_bytes() == BODY


@pytest.mark.parametrize(("size", "ranges"), [(5_000, False), (len(BODY), True)])
def test_a_part_is_used_as_far_as_the_server_lets(size, ranges, fetch, server, tmp_path):
    server.ranges = ranges
    (tmp_path / "train.jsonl.part").write_bytes(BODY[:size])
    assert fetch() is True
    assert [asked for _, asked in server.seen] == [f"bytes={size}-"]
    assert (tmp_path / "train.jsonl").read_bytes() == BODY


def test_another_file_is_dropped_and_leaves_nothing_behind(fetch, server, tmp_path):
    (tmp_path / "train.jsonl.part").write_bytes(b"x" * (len(BODY) + 10))
    with pytest.raises(DataError, match="download was dropped"):
        fetch()
    server.files["/f"] = BODY[:-1] + b"?"
    with pytest.raises(DataError, match=r"not the published file: its SHA-256 is .* and should be"):
        fetch()
    assert list(tmp_path.iterdir()) == []


def test_wrong_file_in_place_is_not_overwritten(fetch, server, tmp_path):
    (tmp_path / "train.jsonl").write_bytes(b"my own")
    with pytest.raises(DataError, match="is not the published file; move it away"):
        fetch()
    assert server.seen == []


def test_a_page_or_a_server_that_is_not_there_is_named(fetch, tmp_path):
    with pytest.raises(DataError, match=r"/other: the server answered 404 Not Found"):
        fetch(path="/other")
    with pytest.raises(DataError, match=r"cannot be reached: .*; check the network or use --base-url"):
        data.fetch(FILE, tmp_path, "http://127.0.0.1:1/f", lambda *_: None)


def test_git_blob_checks_where_no_sha256_is_known(fetch, tmp_path):
    path = tmp_path / "body"
    path.write_bytes(BODY)
    by_git = subprocess.run(["git", "hash-object", path], capture_output=True, text=True, check=True).stdout.strip()
    assert data.git_blob_of(path) == by_git
    assert fetch(RemoteFile(name="a", url="", git_blob=by_git)) is True
    with pytest.raises(DataError, match="git blob id"):
        fetch(RemoteFile(name="b", url="", git_blob="0" * 40))


def test_command_downloads_all_files_of_a_task(server, tmp_path, monkeypatch, capsys):
    bodies = {name: name.encode() for name in ("train.jsonl", "val.jsonl", "test.jsonl")}
    files = tuple(
        RemoteFile(name=name, url=f"http://nowhere.invalid/a/{name}.gz", sha256=hashlib.sha256(body).hexdigest())
        for name, body in bodies.items()
    )
    monkeypatch.setattr(Finer, "downloads", files)
    server.files = {f"/mirror/{name}.gz": body for name, body in bodies.items()}
    arguments = ["finer", "--dir", str(tmp_path / "data"), "--base-url", f"{server.url}/mirror/"]
    assert start("data", arguments) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()} == bodies
    assert "downloaded and verified" in capsys.readouterr().err
    assert start("data", arguments) == 0
    assert capsys.readouterr().err.count("already there and right") == 3
    server.files.clear()
    (tmp_path / "data" / "val.jsonl").unlink()
    assert start("data", arguments) == 2
    assert "404" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope"], "there is no task nope; choose one of"),
        (["appworld"], "use `ace-bench appworld --data`"),
        (["finer", "--revision", "main"], "drop --revision"),
    ],
)
def test_a_task_or_option_that_does_not_fit_is_named(words, said, capsys):
    assert start("data", words) == 2
    assert said in capsys.readouterr().err


def test_without_the_library_the_extra_is_named_to_the_letter(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert start("data", ["ddxplus", "--dir", str(tmp_path)]) == 2
    assert "pip install 'ace-bench[data]'" in capsys.readouterr().err
