"""Data roots: the user's download or the mini-world built on this machine, the part that agents may see, the tasks.

A root holds ``data/`` in the engine's layout. Environment servers get a copy without ``ground_truth``. The full root is
made unreadable for other users, so that a server that runs as another user cannot read it by its path.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
from filelock import FileLock

from ace_bench.core.confine import is_open_to_others
from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import ConfigError, DataError, SettingError
from ace_bench.core.program import command_line
from ace_bench.core.settings import Text
from ace_bench.store.files import cache_folder
from ace_bench.tasks.appworld.engine import VERSION, Engine
from ace_bench.tasks.data import DataSettings, find_folder, sha256_of

FORBIDDEN_WORD = "memory"
"""The engine takes a path with this word in it for an in-memory database, and breaks."""

UNUSED_S = timedelta(weeks=1).total_seconds()
"""A version of the mini-world that was not used for so long is removed; no run takes as long."""

_VERSION = re.compile(r"[0-9a-f]{16}(\.part)?")
_VISIBLE = ("api_docs", "base_dbs", "version.txt")
_VISIBLE_OF_TASK = ("dbs", "specs.json")

_log = logging.getLogger(__name__)


def find_data(settings: DataSettings) -> tuple[Path, str]:
    """Find a data root (``real``), or the package that builds one (``sample``); return its folder and which it is.

    Raises ``ConfigError`` or ``DataError`` with the fix.
    """
    try:
        folder, source = find_folder("appworld", settings)
    except DataError as error:
        raise DataError(
            f"no AppWorld data: run `{command_line('appworld')} --data`, set task.data_dir to a folder "
            "that holds data/ as `appworld download data` leaves it, or use the mini-world with task.source=sample"
        ) from error
    return folder.resolve(), source


def check_path(path: Path) -> None:
    """Raise ``ConfigError`` for a path that the engine cannot work in."""
    if FORBIDDEN_WORD in str(path):
        raise ConfigError(
            f"AppWorld's engine breaks in folders with {FORBIDDEN_WORD!r} in their path: move {path} elsewhere"
        )


def builder_digest(builder: Path) -> str:
    """Return the digest of what decides a mini-world: its builder's source and data, and the engine's release."""
    digest = hashlib.sha256(VERSION.encode())
    for path in sorted(path for ending in ("py", "toml") for path in builder.rglob(f"*.{ending}")):
        digest.update(path.relative_to(builder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def sample_root(engine: Engine, builder: Path) -> Path:
    """Return the data root of a mini-world, built once per machine and version of ``builder``, a package's folder.

    Processes that want it at the same time wait for the one that builds it.
    """
    root = cache_folder("appworld").resolve() / builder_digest(builder)[:16]
    check_path(root)
    if not root.is_dir():
        root.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{root}.lock"):
            if not root.is_dir():
                _build(engine, builder, root)
                _remove_unused(root.parent)
    with suppress(OSError):  # it may belong to another user
        os.utime(root)  # the time of the last use
    return root


def _build(engine: Engine, builder: Path, root: Path) -> None:
    _log.warning("building the AppWorld mini-world in %s, which takes about half a minute and happens once", root)
    part = root.with_name(f"{root.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # left by a build that was killed
    command = engine.command("build", str(builder), str(part))
    environment = engine.environment(part, part.parent)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DataError(f"the AppWorld mini-world cannot be built: {(done.stderr or done.stdout)[-2000:]}")
        part.chmod(0o700)
        part.rename(root)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _remove_unused(folder: Path) -> None:
    """Remove versions of the mini-world that were not used for a week; a folder's time is its last use."""
    for root in folder.iterdir():
        if _VERSION.fullmatch(root.name) and root.is_dir() and time.time() - root.stat().st_mtime > UNUSED_S:
            part = root if root.suffix else root.rename(f"{root}.part")  # a folder without the suffix is complete
            shutil.rmtree(part, ignore_errors=True)


def copy_visible(root: Path, target: Path) -> None:
    """Copy to ``target`` what agents may see of a root: everything but ground truth and the lists of tasks.

    These are copies and not links, because a server that runs as the harness's own user could write through links.
    """
    source, data = root / "data", target / "data"
    data.mkdir(parents=True)
    for name in _VISIBLE:
        _copy(source / name, data / name)
    for task in sorted((source / "tasks").iterdir()):
        for name in _VISIBLE_OF_TASK:
            _copy(task / name, data / "tasks" / task.name / name)
    for folder, _, files in os.walk(target):
        os.chmod(folder, 0o755)
        for file in files:
            os.chmod(os.path.join(folder, file), 0o644)
    (data / "tasks").chmod(0o711)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def close_to_others(root: Path) -> None:
    """Make a root unreadable for other users, unless a folder above it already is. Raises ``ConfigError``."""
    if root.stat().st_mode & 0o077 and is_open_to_others(root.parent):
        try:
            root.chmod(0o700)
        except OSError as error:
            raise ConfigError(
                f"{root} holds the right answers and all users can read it: run `chmod 700` on it, or copy it to a "
                "folder of your own"
            ) from error


T = TypeVar("T")

_TASK_ID = re.compile(r"[0-9A-Za-z]+_[0-9]+")
_CANARY = re.compile(r"^# Canary String: .*\n", re.MULTILINE)
_SOLUTIONS = ("compiled_solution.py", "solution.py")


class Supervisor(msgspec.Struct, frozen=True):
    """The invented person for whom the agent works."""

    first_name: str
    last_name: str
    email: str
    phone_number: str


class Specs(msgspec.Struct, frozen=True):
    """What an agent may know of a task."""

    instruction: str
    supervisor: Supervisor
    datetime: str


class _Metadata(msgspec.Struct):
    difficulty: int


class _Test(msgspec.Struct):
    requirement: str


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What agents must not see: difficulty (1 to 3), number of unit tests, reference solution ("" if unpublished)."""

    difficulty: int
    tests: int
    solution: str


class Catalogue:
    """Reads the tasks of a data root. Methods raise ``DataError`` with the name of a missing or broken file."""

    def __init__(self, root: Path):
        self._data = root / "data"

    def ids(self, dataset: str) -> tuple[str, ...]:
        """Return the task ids of a dataset (``train``, ``dev``, ``test_normal``, ``test_challenge``) in file order."""
        path = self._data / "datasets" / f"{dataset}.txt"
        # The engine allows a tag after a colon.
        ids = [line.split(":")[0].strip() for line in _text(path).splitlines() if line.strip()]
        bad = next((name for name in ids if not _TASK_ID.fullmatch(name)), None)
        if bad is not None:
            raise DataError(f"{path}: {bad!r} is not a task id such as 82e2fac_1")
        if not ids or len(set(ids)) < len(ids):
            raise DataError(f"{path}: {'a task id occurs twice' if ids else 'no task ids'}")
        return tuple(ids)

    def specs(self, task: str) -> Specs:
        """Return what an agent may know of a task."""
        return _read(self._data / "tasks" / task / "specs.json", Specs)

    def truth(self, task: str) -> Truth:
        """Return what only graders know of a task."""
        folder = self._data / "tasks" / task / "ground_truth"
        solution = next((folder / name for name in _SOLUTIONS if (folder / name).is_file()), None)
        return Truth(
            difficulty=_read(folder / "metadata.json", _Metadata).difficulty,
            tests=len(_read(folder / "test_data.json", list[_Test])),
            solution="" if solution is None else _CANARY.sub("", _text(solution)).strip(),
        )

    def checksums(self, datasets: Sequence[str]) -> dict[str, str]:
        """Return digests of what decides results: lists of tasks, their texts and evaluations, base databases."""
        sums = {f"{name}.txt": sha256_of(self._data / "datasets" / f"{name}.txt") for name in datasets}
        tasks = [self._data / "tasks" / task for name in datasets for task in self.ids(name)]
        sums["tasks"] = _digest(
            path for task in tasks for path in (task / "specs.json", task / "ground_truth" / "evaluation.py")
        )
        sums["base_dbs"] = _digest(sorted((self._data / "base_dbs").glob("*.db")))
        return sums


def _digest(paths: Iterable[Path]) -> str:
    return hashlib.sha256("".join(map(sha256_of, paths)).encode()).hexdigest()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; download the AppWorld data again") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8") from error


def _read(path: Path, kind: type[T]) -> T:
    try:
        value: T = decoder_of(kind).decode(_text(path).encode())
    except msgspec.DecodeError as error:
        raise DataError(f"{path}: {error}") from error
    return value


@dataclass(frozen=True, kw_only=True)
class ChosenTasks:
    """Ids by split: a list, or a file with one id a line; ``None`` for the whole split."""

    train: Sequence[Text] | Text | None
    val: Sequence[Text] | Text | None
    test: Sequence[Text] | Text | None

    def select_ids(self, split: str, known_ids: Sequence[str]) -> tuple[str, ...]:
        """Return the chosen ids of a split in their order.

        Raises ``SettingError`` for an id that is not in ``known_ids``, or comes twice.
        """
        chosen: Sequence[str] | str | None = getattr(self, split)
        if chosen is None:
            return tuple(known_ids)
        setting = f"ids.{split}"
        ids = tuple(_lines(chosen, setting) if isinstance(chosen, str) else chosen)
        if not ids:
            raise SettingError(f"{setting} holds no ids: give some, or null for the whole split")
        wrong = next(
            (task_id for index, task_id in enumerate(ids) if task_id not in known_ids or task_id in ids[:index]),
            None,
        )
        if wrong is not None:
            problem = "twice" if wrong in known_ids else "which is not a task of this split"
            raise SettingError(
                f"{setting} holds {wrong}, {problem}; the split has {', '.join(known_ids[:3])} and so on"
            )
        return ids


def _lines(path: str, setting: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(
            f"{setting}={path} cannot be read ({error}): give a list of ids or a file of them"
        ) from error
    return [line.strip() for line in text.splitlines() if line.strip()]
