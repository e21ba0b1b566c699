"""Disks that fill up, refuse or are read-only: the run stops with one sentence, and goes on where it was."""

import errno
import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from ace_bench.report.records import find_runs
from tests.backbones.serving import over_http
from tests.launching import launch

SMALL = ("task=formula", "task.source=sample", "limit={train: 6, test: 4}", "mode.epochs=1", "mode.before=false")
ROOMY = 64


class Disk:
    """A file system of its own, so many kilobytes large."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={ROOMY}m", "tmpfs", path], capture_output=True, text=True, check=False
        )
        if made.returncode:
            pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")

    def remount(self, options):
        subprocess.run(["mount", "-o", f"remount,{options}", self.path], check=True, capture_output=True)

    def resize(self, kilobytes):
        self.remount(f"size={kilobytes}k")

    @property
    def used(self):
        found = os.statvfs(self.path)
        return (found.f_blocks - found.f_bfree) * found.f_bsize // 1024


@pytest.fixture
def disk(tmp_path):
    """A disk that tests may fill."""
    made = Disk(tmp_path / "disk")
    yield made
    subprocess.run(["umount", made.path], check=True)


def served(reader, *overrides):
    """Overrides of a run over HTTP whose dollars have many digits and do not depend on what a cache held."""
    prices = "backbone.prices={input: 0.27, cached_input: 0.27, output: 1.1}"
    return (*SMALL, *over_http(reader.address), "estimate=false", prices, *overrides)


def status_of(folder):
    return json.loads((folder / "status.json").read_text())


def ids(ran):
    return sorted(line["id"] for line in ran.lines("calls"))


def paid(reader):
    return reader.stats()["completions"]


@pytest.fixture
def sentence(capsys):
    """What a run that stopped said about it; it must be one line."""

    def read():
        output = capsys.readouterr()
        assert "Traceback" not in output.out + output.err
        lines = [line for line in (output.out + output.err).splitlines() if "cannot be" in line]
        assert len(lines) == 1, lines
        return lines[0]

    capsys.readouterr()
    return read


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_disk_that_fills_again_and_again_costs_nothing_but_calls_in_flight(  # noqa: PLR0917
    concurrency, reader, disk, tmp_path, sentence, capsys
):
    command = served(reader, f"concurrency={concurrency}")
    whole = launch(tmp_path / "whole", *served(reader, f"concurrency={9 - concurrency}"))
    before, stops, noted, size = paid(reader), 0, 0, 80
    while True:
        disk.resize(size)
        capsys.readouterr()
        ran = launch(disk.path, *command)
        if ran.status == 0:
            break
        assert ran.status == 3
        assert "cannot be written (No space left on device); free some space. Run the same command" in sentence()
        stops += 1
        if (ran.folder / "calls.jsonl").exists() and (ran.folder / "status.json").exists():
            assert status_of(ran.folder)["state"] == "stopped"
            assert "No space left on device" in status_of(ran.folder)["reason"]
            noted += 1
        find_runs(disk.path)
        size = max(size, disk.used) + 16
    assert noted > 3
    assert ran.lasting() == whole.lasting()
    assert whole.metrics["usd"]["total"] > 0
    assert ids(ran) == ids(whole)
    probes = stops + 1
    assert paid(reader) - before <= len(ids(whole)) + probes + stops * concurrency
    assert status_of(ran.folder)["state"] == "finished"
    assert not list(ran.folder.rglob("*.damaged"))


def test_a_read_only_disk_shows_a_finished_run_and_refuses_to_continue_another(disk, sentence, capsys):
    finished = launch(disk.path, *SMALL)
    begun = launch(disk.path, *SMALL, "seed=1", "budget.calls=9")
    disk.remount("ro")
    capsys.readouterr()
    assert launch(disk.path, *SMALL).status == 0
    assert "This run is finished" in capsys.readouterr().out
    for seed in (1, 2):
        assert launch(disk.path, *SMALL, f"seed={seed}").status == 3
        said = sentence()
        assert "(Read-only file system); make it writable, or choose another folder with results=" in said
        capsys.readouterr()
    disk.remount("rw")
    assert launch(disk.path, *SMALL, "seed=1").status == 0
    assert (begun.folder / "metrics.json").exists()
    assert len(find_runs(disk.path).runs) == 2
    assert finished.metrics


@pytest.fixture
def limited():
    """Sets how large a file may grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_limit_on_the_size_of_files_stops_the_run_and_a_higher_one_continues_it(limited, tmp_path, sentence, capsys):
    whole = launch(tmp_path / "whole", *SMALL)
    for size, begun in ((2_000, False), (9_000, True), (10_000, True), (13_000, True)):
        capsys.readouterr()
        limited(size)
        ran = launch(tmp_path / "cut", *SMALL)
        limited(resource.RLIM_INFINITY)
        assert ran.status == 3
        assert "cannot be written (File too large); raise the limit on the size of files (ulimit -f)" in sentence()
        assert ran.folder.exists() == begun  # before the first call nothing is worth keeping
        assert not begun or status_of(ran.folder)["state"] == "stopped"
    ran = launch(tmp_path / "cut", *SMALL)
    assert (ran.status, ran.lasting(), ids(ran)) == (0, whole.lasting(), ids(whole))


def test_a_disk_that_does_not_sync_stops_the_run_and_what_was_written_stays(tmp_path, sentence, capsys, monkeypatch):
    whole = launch(tmp_path / "whole", *SMALL)
    capsys.readouterr()
    fsync = os.fsync

    def failing(handle):
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if path.name == "calls.jsonl" and path.read_bytes().count(b"\n") > 5:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", failing)
    ran = launch(tmp_path / "cut", *SMALL)
    monkeypatch.undo()
    assert ran.status == 3
    assert "cannot be written (Input/output error); check its disk" in sentence()
    written = ids(ran)
    assert written
    ran = launch(tmp_path / "cut", *SMALL)
    assert (ran.lasting(), ids(ran)) == (whole.lasting(), ids(whole))
