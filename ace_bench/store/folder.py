"""The run folder: all files of a run, and the samples in it, without reference answers."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from ace_bench.core.encoding import convert
from ace_bench.core.errors import DataError, FolderUnwritable, StoreError
from ace_bench.core.types import Record, Sample
from ace_bench.store.call_log import FILE as CALLS
from ace_bench.store.call_log import CallLog
from ace_bench.store.files import DRAFT, PRIVATE, make_folders, replace_files, sync, sync_folders
from ace_bench.store.journal import Journal
from ace_bench.store.lines import DiskGuard
from ace_bench.store.processes import FILE as PROCESSES
from ace_bench.store.processes import ProcessLog
from ace_bench.store.reservations import FILE as RESERVATIONS
from ace_bench.store.reservations import ReservationLog
from ace_bench.store.results import Checksums

STATUS, SAMPLES, LOCK = "status.json", "samples.json", ".lock"
ENDPOINTS, LONGEST = "endpoints.json", "longest_reply"
"""What probes found by backbone, and the field of the longest reply to one."""
_LARGE = 1 << 22
"""Bytes of a file that is written apart."""
_log = logging.getLogger(__name__)
_ATTEMPT = re.compile(r"^seed(?P<seed>\d+)(?:-(?P<attempt>\d+))?$")


def choose_folder(parent: Path, seed: int, *, resume: bool) -> Path:
    """Return the folder of a seed under ``parent``: the latest one to continue, or a new one.

    Folders are ``seed0``, then ``seed0-2``, ``seed0-3`` ... for repetitions with ``resume=false``. Raises
    ``StoreError`` if ``parent`` cannot be read.
    """
    try:
        names = os.listdir(parent)
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise StoreError(f"{parent} cannot be read ({error.strerror}); choose another folder with results=") from error
    attempts = [
        int(match["attempt"] or 1) for name in names if (match := _ATTEMPT.match(name)) and int(match["seed"]) == seed
    ]
    latest = max(attempts, default=0)
    number = latest if resume and latest else latest + 1
    return parent / (f"seed{seed}" if number == 1 else f"seed{seed}-{number}")


class FolderInUse(StoreError):
    """Another process works on a run folder."""


class RunFolder:
    """One run on disk, locked by one process at a time.

    Files: ``config.yaml``, ``identity.json``, ``environment.json``, ``endpoints.json`` (of served models),
    ``status.json``, ``samples.json``, ``prompts/``, ``journal.jsonl``, ``calls.jsonl``, ``reservations.jsonl`` (with a
    budget), ``processes.jsonl``, ``contexts/``, ``metrics.json``, ``summary.txt`` and ``checksums.jsonl``. All
    methods that write raise ``FolderUnwritable`` if that fails; from then on only the status is written.
    """

    def __init__(self, path: Path, mode: int = PRIVATE):
        """Open or create the folder and lock it; raises ``FolderInUse`` if another process holds the lock.

        ``mode`` applies to new folders, less what the umask takes.
        """
        self.path = path
        self.guard = DiskGuard()
        self._lock = FileLock(path / LOCK)
        with contextlib.ExitStack() as opened, self.guard.writing(path):
            self._made = make_folders(path, mode)
            sync_folders(folder.parent for folder in self._made)
            try:
                self._lock.acquire(timeout=0)
            except Timeout as error:
                raise FolderInUse(
                    f"{path} is in use by another process; wait for it or stop it, or pass resume=false for a new one"
                ) from error
            opened.callback(self._lock.release)
            for draft in path.rglob(f"*{DRAFT}"):  # left by a killed process
                draft.unlink()
            self._checksums = opened.enter_context(closing(Checksums(path, self.guard)))
            self.calls = opened.enter_context(closing(CallLog(path / CALLS, self.guard)))
            self.journal = opened.enter_context(closing(Journal(path / "journal.jsonl", self.calls, self.guard)))
            self.reservations = opened.enter_context(closing(ReservationLog(path / RESERVATIONS, self.guard)))
            self.processes = opened.enter_context(closing(ProcessLog(path / PROCESSES, self.guard)))
            self.calls.repair()  # after the journal, which needs to know the missing lines
            sync(path)
            self._opened = opened.pop_all()

    def write_json(self, name: str, value: Record) -> None:
        """Write a JSON file atomically."""
        self.write({name: format_json(value)})

    def write(self, contents: Mapping[str, str | bytes]) -> None:
        """Write text files atomically and add their checksums; on return they are synced to disk."""
        encoded = {name: text.encode() if isinstance(text, str) else text for name, text in contents.items()}
        self._checksums.add({name: content for name, content in encoded.items() if name != STATUS})
        with self.guard.writing(self.path):
            replace_files({self.path / name: content for name, content in encoded.items()})

    def write_in_parts(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Write files by name as ``write`` does, large ones apart: memory need not hold all of them."""
        part: dict[str, str | bytes] = {}
        for name, content in files:
            part[name] = content
            if len(content) > _LARGE:
                self.write(part)
                part = {}
            del content  # before the next one is made
        if part:
            self.write(part)

    def write_missing(self, name: str, content: bytes) -> None:
        """Write a file, unless the folder has it with this content."""
        if not self.holds(name, content):
            self.write({name: content})

    def holds(self, name: str, content: bytes) -> bool:
        """Whether a file has this content."""
        try:
            return (self.path / name).read_bytes() == content
        except OSError:  # missing or unreadable: it is to be written
            return False

    def set_status(self, state: str) -> None:
        """Write the state of the run: ``running`` or ``finished``."""
        self.write_json(STATUS, {"state": state, "reason": ""})

    def try_set_status(self, state: str, reason: str) -> None:
        """Write why the run ended early, ``stopped`` or ``failed``, if the disk allows it; never raises."""
        path, text = self.path / STATUS, format_json({"state": state, "reason": reason}).encode()
        try:
            replace_files({path: text})
        except OSError:
            with contextlib.suppress(OSError), path.open("r+b") as file:  # works on a full disk
                file.write(text)
                file.truncate()

    def discard(self) -> bool:
        """Remove the folder if this process made it and nothing was called or rolled out; return whether it did.

        A mistake that is found before the first call then leaves nothing behind.
        """
        called = self.calls.made or self.journal.steps or self.journal.rollouts
        if called or self.path not in self._made:
            return False
        shutil.rmtree(self.path, ignore_errors=True)
        for parent in self._made[1:]:
            with contextlib.suppress(OSError):  # another run may have begun in it
                parent.rmdir()
        return True

    def close(self) -> None:
        """Sync everything and unlock the folder; a failed write is logged."""
        with self._opened:
            try:
                if not self.guard.has_failed:
                    self.journal.end()
            except FolderUnwritable as error:
                _log.warning("%s", error)


def is_in_use(path: Path) -> bool:
    """Whether a process works on a run folder; writes nothing."""
    try:
        lock = os.open(path / LOCK, os.O_RDONLY)
    except OSError:  # a copy, or the run of another user
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks, on which no run can have begun
        return False
    finally:
        os.close(lock)
    return False


def format_json(value: Record) -> str:
    """Return a value as the text of a JSON file."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


class _StoredSample(msgspec.Struct):
    split: str
    inputs: dict[str, int]


class _Samples(msgspec.Struct):
    texts: list[str]
    samples: dict[str, _StoredSample]


def pack_samples(samples: Iterable[Sample]) -> Record:
    """Return samples as a JSON object in which each text is stored once, since samples often share long texts."""
    texts: dict[str, int] = {}
    stored = {
        sample.id: {
            "split": sample.split,
            "inputs": {name: texts.setdefault(text, len(texts)) for name, text in sample.inputs.items()},
        }
        for sample in samples
    }
    return {"texts": list(texts), "samples": stored}


def unpack_samples(record: Record) -> Mapping[str, Sample]:
    """Return samples by id from what ``pack_samples`` gave; raises ``DataError``."""
    try:
        file: _Samples = convert(record, _Samples)
        return {
            name: Sample(
                id=name, split=sample.split, inputs={key: file.texts[index] for key, index in sample.inputs.items()}
            )
            for name, sample in file.samples.items()
        }
    except (msgspec.ValidationError, IndexError) as error:
        raise DataError(f"{SAMPLES} is damaged: {error}; restore it, or repeat the run") from error
