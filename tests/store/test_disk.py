"""Writes that fail are one sentence with the fix, and leave what was there before; what is cut off is found."""

import errno
import os
from pathlib import Path

import pytest

from ace_bench.core.errors import FileUnwritable, FolderDamaged
from ace_bench.store.files import cache_folder, new_folder, read_sealed, replacing, write_files, write_sealed, writing
from ace_bench.store.folder import RunFolder
from ace_bench.store.results import CheckedFiles


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EFBIG, "ulimit"),
        (errno.EROFS, "make it writable, or name another place"),
        (errno.ENAMETOOLONG, "name another place"),
        (errno.EIO, "check its disk"),
    ],
)
def test_a_write_that_fails_names_the_fix_and_leaves_what_was_there(number, fix, tmp_path, monkeypatch):
    kept, new = tmp_path / "kept.md", tmp_path / "new" / "more.md"
    write_files({kept: "before", tmp_path / "new" / "one.md": b"1"})

    def fail(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FileUnwritable, match=rf"{kept} cannot be written \(.*\); .*{fix}"):
        write_files({kept: "after", new: "2"})
    with pytest.raises(OSError, match=os.strerror(number)), replacing(kept) as file:
        file.write(b"after")
    with pytest.raises(FileUnwritable), new_folder(tmp_path / "made") as _:
        fail(None)
    assert {path.name for path in tmp_path.rglob("*")} == {"kept.md", "new", "one.md"}
    assert kept.read_text() == "before"


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_every_error_of_the_system_is_a_sentence_with_its_cause_and_a_fix(number, tmp_path):
    """Some numbers are classes of their own, such as ``FileNotFoundError``."""
    with pytest.raises(FileUnwritable) as raised, writing(tmp_path / "x", elsewhere="name another place"):
        raise OSError(number, os.strerror(number))
    said = str(raised.value)
    assert said.startswith(f"{tmp_path / 'x'} cannot be written ({os.strerror(number)}); ")
    assert "\n" not in said
    assert not said.endswith("; ")


def test_an_error_without_a_number_is_a_sentence(tmp_path):
    with (
        pytest.raises(FileUnwritable, match=r"x cannot be written \(read only\); name another place"),
        writing(Path("x")),
    ):
        raise OSError("read only")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"ACE_BENCH_CACHE": "/own", "XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/own/x"),
        ({"ACE_BENCH_CACHE": "~/own", "HOME": "/home/me"}, "/home/me/own/x"),
        ({"ACE_BENCH_CACHE": "", "XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/ace-bench/x"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/ace-bench/x"),
    ],
)
def test_caches_go_where_the_user_says(variables, expected, monkeypatch):
    for name in ("ACE_BENCH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder("x") == Path(expected)


def test_a_damaged_cache_is_as_good_as_none(monkeypatch, tmp_path):
    monkeypatch.setenv("ACE_BENCH_CACHE", str(tmp_path))
    path = cache_folder("x") / "file"
    assert read_sealed(path) is None
    write_sealed(path, b"content")
    assert read_sealed(path) == b"content"
    for damaged in (path.read_bytes()[:-1], b"\x00" + path.read_bytes()[1:], path.read_bytes()[:32]):
        path.write_bytes(damaged)
        assert read_sealed(path) is None


def test_a_file_that_is_not_as_it_was_written_is_damaged_and_an_earlier_version_is_not(tmp_path):
    folder, path = RunFolder(tmp_path), tmp_path / "a.json"
    for content in ("one", "two"):
        folder.write({"a.json": content})
    folder.close()
    for content in ("one", "two"):
        path.write_text(content)
        assert CheckedFiles(tmp_path).read("a.json") == content.encode()
    path.write_text("tWo")
    with pytest.raises(FolderDamaged, match="its checksum does not fit"):
        CheckedFiles(tmp_path).read("a.json")
