"""Every command that writes, where it cannot: one sentence, exit 2 or 3, no traceback, no cut file."""

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from ace_bench.cli.data import files_of
from ace_bench.cli.main import all_commands, main
from ace_bench.cli.playbook.command import all_commands as commands_of_playbooks
from tests.cli.prompts import stand_ins
from tests.cli.serving import FileServer
from tests.launching import launch

SMALL = ("task=formula", "task.source=sample", "limit={train: 4, test: 4}", "mode.before=false")
_TINY = "task=formula task.source=sample limit=2 mode.epochs=1 mode.before=false"
_FILLER = "filler"
APPENDING = ("run", "run, as a sweep", "run, with a response cache", "reproduce", "data", "appworld")
"""Commands whose files grow line by line, or that continue or remake what was cut."""

COMMANDS = Path(__file__).with_name("writing_commands.txt").read_text().splitlines()
WRITING = dict(line.split(": ", 1) for line in COMMANDS)
"""Commands by what they are; ``TINY`` stands for the settings of a tiny run."""
NOT_WRITING = ("check", "ls", "serve", "view", "playbook show", "playbook diff")
REPAIRING = ("doctor",)


def test_each_command_that_writes_is_listed():
    known = {*all_commands(), *(f"playbook {name}" for name in commands_of_playbooks())} - {"playbook"}
    assert known == {name.partition(",")[0] for name in WRITING} | {*NOT_WRITING, *REPAIRING}


@dataclass(frozen=True)
class Place:
    """Where a command is to write."""

    to: Path
    watched: Path | None = None
    """The folder in which no cut file may remain."""


def _full(at: Path) -> Iterator[Place]:
    disk = at / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with contextlib.suppress(OSError), (disk / _FILLER).open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        yield Place(to=disk / "to", watched=disk)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def _file(at: Path) -> Iterator[Place]:
    (at / "file").write_text("kept")
    yield Place(to=at / "file")
    assert (at / "file").read_text() == "kept"


def _nowhere(at: Path) -> Iterator[Place]:
    del at
    yield Place(to=Path("/proc/nowhere"))


def _too_long(at: Path) -> Iterator[Place]:
    yield Place(to=at / ("x" * 300))


def _loop(at: Path) -> Iterator[Place]:
    (at / "loop").symlink_to(at / "loop")
    yield Place(to=at / "loop")


PLACES = {
    "a full disk": _full,
    "a file in the place of a folder": _file,
    "a folder that cannot be made": _nowhere,
    "a name that is too long": _too_long,
    "a link to itself": _loop,
}


def _child(arguments: Sequence[str], folder: Path, place: Place, output: Connection) -> None:
    """Run a command; its output goes to a pipe, which no limit on files concerns."""
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    os.chdir(folder)
    os.environ.update(ACE_BENCH_DATA="", ACE_BENCH_APPWORLD=str(place.to / "engine"))
    sys.argv = ["run.py"]
    sys.exit(main(arguments))


def run_apart(arguments: Sequence[str], folder: Path, place: Place) -> tuple[int, str]:
    """Run a command in a process that does not import all modules again; return its status and output."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "ace_bench.runners.run", "ace_bench.cli.experiment"])
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(arguments, folder, place, writer))
    process.start()
    writer.close()
    with os.fdopen(os.dup(reader.fileno()), encoding="utf-8") as output:
        text = output.read()
    process.join()
    return process.exitcode or 0, text


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """What the commands read: finished runs, a checkout, an address."""
    folder = tmp_path_factory.mktemp("given")
    runs = folder / "runs"
    ran = [launch(runs, *SMALL, "method=ace", f"mode.epochs={epochs}") for epochs in (1, 2)]
    assert [run.status for run in ran] == [0, 0]
    launch(runs, *SMALL, "method=base")
    bullet = json.loads((ran[0].folder / "contexts" / "tested.json").read_text())["bullets"][0]
    appworld = folder / "appworld"
    appworld.mkdir()
    (appworld / "metrics.json").write_text(json.dumps({"task": "appworld", "mode": "online"}))
    (appworld / "config.yaml").write_text("task: {test_split: test_normal}\n")
    (appworld / "journal.jsonl").touch()
    stand_ins.finance(folder / "checkout")
    server = FileServer()
    server.files |= {f"/{split}.jsonl": b"x" * 5000 for split in ("train", "val", "test")}
    server.files |= {f"/{Path(file.url).name}": b"x" * 5000 for file in files_of("formula")}
    assert main(["playbook", "export", str(ran[0].folder), "--as", "agents", "--out", str(folder / "AGENTS.md")]) == 0
    yield {
        "runs": runs,
        "run": ran[0].folder,
        "bullet": bullet["id"],
        "sample": bullet["sources"][0],
        "appworld": appworld,
        "agents": folder / "AGENTS.md",
        "checkout": folder / "checkout",
        "server": server.url,
    }
    server.stop()


def test_a_full_disk_behind_the_standard_output_is_one_sentence(given):
    command = [sys.executable, "-m", "ace_bench", "tables", given["runs"], "--rows", "method"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    said = "error: the output cannot be written (No space left on device); free some space\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.slow) for kind in PLACES])
@pytest.mark.parametrize("name", WRITING)
def test_a_place_that_cannot_be_written_is_one_sentence(name, kind, given, tmp_path):
    with contextlib.contextmanager(PLACES[kind])(tmp_path) as place:
        before = _content(place)
        command = WRITING[name].replace("TINY", _TINY).split()
        words = [word.format(to=place.to, at=tmp_path, **given) for word in command]
        status, output = run_apart(words, tmp_path, place)
        left = _content(place)
    said = [line for line in output.splitlines() if "cannot be" in line or "error:" in line]
    assert "Traceback" not in output
    assert status in {2, 3}, output
    assert len(said) == 1 or name == "reproduce", output
    assert {path: left.get(path) for path in before} == before
    assert name in APPENDING or not [path for path in left if path not in before], output


def _content(place: Place) -> dict[Path, bytes]:
    """Return the files of a place."""
    folder = place.watched
    return {} if folder is None else {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
