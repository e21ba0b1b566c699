"""Folders that hostile code filled are removed, in bounded time and without an exception."""

import os
import subprocess
from pathlib import Path

import pytest

from ace_bench.core.scratch import clear, scratch_folder


def nest(folder):
    here = os.open(folder, os.O_DIRECTORY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def name_oddly(folder):
    inner = os.fsencode(folder) + b"/\xff\n"
    os.mkdir(inner)
    Path(os.fsdecode(inner), "\x01 \udcfe").touch()


def lock(folder):
    (folder / "a" / "b" / "c").mkdir(parents=True)
    (folder / "a" / "file").touch()
    for inner in (folder / "a" / "b", folder / "a"):
        inner.chmod(0)


def fill(folder):
    for number in range(2000):
        (folder / str(number)).touch()
    for number in range(100):
        (folder / "a" / str(number) / "c").mkdir(parents=True)


def plant(folder):
    os.mkfifo(folder / "pipe")
    (folder / "dangling").symlink_to("nowhere")


@pytest.fixture
def target(tmp_path):
    """A folder that goes even if the test fails: pytest cannot remove one that is nested deep."""
    folder = tmp_path / "target"
    folder.mkdir()
    yield folder
    subprocess.run(["rm", "-rf", folder], check=False)


@pytest.mark.parametrize("make", [nest, name_oddly, lock, fill, plant])
def test_whatever_is_left_goes(target, make):
    make(target)
    if make is fill:
        assert not clear(target, seconds=0), "there is an end to it"
    assert clear(target)
    assert not target.exists()
    assert clear(target), "what is gone is gone"


def test_links_are_removed_and_not_followed(tmp_path):
    kept = tmp_path / "kept" / "file"
    kept.parent.mkdir()
    kept.touch()
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "link").symlink_to(kept.parent)
    assert clear(folder)
    (tmp_path / "link").symlink_to(kept.parent)
    assert not clear(tmp_path / "link")
    assert kept.exists()


def test_a_folder_of_ones_own_goes_in_the_end_whatever_happens():
    def fail():
        with scratch_folder("test") as folder:
            name_oddly(folder)
            raise KeyError(folder)

    with pytest.raises(KeyError) as caught:
        fail()
    assert not caught.value.args[0].exists()
