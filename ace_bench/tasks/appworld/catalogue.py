"""The tasks of a data root, as its files describe them, and those of them that a user chose."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import DataError, SettingError
from ace_bench.core.settings import Text
from ace_bench.tasks.data import sha256_of

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

    def select_ids(self, split: str, known: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of a split in the order given; raises ``SettingError`` for one that is not in ``known``."""
        given: Sequence[str] | str | None = getattr(self, split)
        if given is None:
            return tuple(known)
        place = f"ids.{split}"
        ids = tuple(_lines(given, place) if isinstance(given, str) else given)
        if not ids:
            raise SettingError(f"{place} holds no ids: give some, or null for the whole split")
        wrong = next((one for place, one in enumerate(ids) if one not in known or one in ids[:place]), None)
        if wrong is not None:
            problem = "twice" if wrong in known else "which is not a task of this split"
            raise SettingError(f"{place} holds {wrong}, {problem}; the split has {', '.join(known[:3])} and so on")
        return ids


def _lines(path: str, place: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{place}={path} cannot be read ({error}): give a list of ids or a file of them") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
