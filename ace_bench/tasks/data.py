"""Finds and reads the files of a task, or loads data sets of the Hugging Face hub with the ``datasets`` library.

Every error names the file and, where possible, the line.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec

from ace_bench.core.errors import ConfigError, DataError, SettingError
from ace_bench.core.program import command_line
from ace_bench.core.settings import Text

T = TypeVar("T")
Source = Literal["auto", "real", "sample"]
SOURCES: tuple[Source, ...] = get_args(Source)
"""``auto`` takes real data if there is any, ``real`` insists on it, ``sample`` takes the small sample set."""

SPLITS = ("train", "val", "test")

DATA_ROOT_VARIABLE = "ACE_BENCH_DATA"

_IN_PACKAGE = "pkg://"
_DOWNLOADED = Path("data")


class RemoteFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a task as its publisher offers it, stored locally as ``name``.

    ``git_blob`` is the SHA-1 object id that git gives the file. Without it and without ``sha256`` the content cannot be
    verified.
    """

    name: str
    url: str
    sha256: str | None = None
    git_blob: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Where a task's data may come from.

    ``data_dir`` is a folder of the user's, ``sample_data`` the sample set as ``pkg://<package>/<folder>``; ``None``
    without one. ``sample_allowed`` is true where no real model answers: only then does ``source=auto`` fall
    back on the sample set.
    """

    data_dir: Text | None
    source: Source
    sample_data: Text | None
    sample_allowed: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a data file, at the place ``where``: its ``key``, unique in the file, and its text ``fields``."""

    key: str
    where: str
    fields: Mapping[str, str]


def download_folder(task: str) -> Path:
    """Return the folder in which ``ace-bench data`` puts a task's files: ``data/<task>`` of the current folder."""
    return (_DOWNLOADED / task).absolute()


def find_folder(task: str, settings: DataSettings) -> tuple[Path, str]:
    """Find the folder that holds a task's files, and whether it is ``real`` or ``sample`` data.

    The first folder that exists is used: ``data_dir``, ``$ACE_BENCH_DATA/<task>``, the download folder. The sample set
    is used only with ``source=sample``, or with ``source=auto`` without real data if ``sample_allowed`` is
    true.

    Raises ``ConfigError`` for settings that contradict each other or name no folder, ``DataError`` for missing data.
    """
    sample = settings.sample_data
    if settings.source == "sample":
        if settings.data_dir is not None:
            raise SettingError("source=sample reads the packaged sample set: set data_dir=null, or use source=real")
        if sample is None:
            raise SettingError(f"source=sample needs a sample set, and task {task} has none (sample_data=null)")
        return sample_folder(sample), "sample"
    folder = _real_folder(task, settings.data_dir)
    if folder is not None:
        return folder, "real"
    if settings.source == "auto" and settings.sample_allowed and sample is not None:
        return sample_folder(sample), "sample"
    raise DataError(
        f"no data for task {task}: run `{command_line('data')} {task}`, "
        f"or set task.data_dir, or use the small sample set with task.source=sample"
    )


def sample_folder(sample_data: str) -> Path:
    """Return the folder that ``pkg://<package>/<folder>`` names: a folder inside an installed Python package.

    Raises ``SettingError`` if the package or folder does not exist.
    """
    package, _, folder = sample_data.removeprefix(_IN_PACKAGE).partition("/")
    if not sample_data.startswith(_IN_PACKAGE) or not package:
        raise SettingError(f"sample_data={sample_data} must name a folder in a package: pkg://PACKAGE/FOLDER")
    try:
        path = files(package).joinpath(folder)
    except ImportError as error:
        raise SettingError(f"sample_data={sample_data}: package {package} cannot be imported: {error}") from error
    if not isinstance(path, Path) or not path.is_dir():
        raise SettingError(f"sample_data={sample_data}: package {package} has no folder {folder}; install it unzipped")
    return path


def _real_folder(task: str, data_dir: str | None) -> Path | None:
    if data_dir is not None:
        folder = Path(data_dir).expanduser()
        if not folder.is_dir():
            raise SettingError(f"data_dir={data_dir} is not a folder; name the one that holds the files of {task}")
        return folder
    candidates = [download_folder(task)]
    root = os.environ.get(DATA_ROOT_VARIABLE)
    if root:
        if not Path(root).expanduser().is_dir():
            raise ConfigError(f"{DATA_ROOT_VARIABLE}={root} is not a folder; correct the variable or unset it")
        candidates.insert(0, Path(root).expanduser() / task)
    return next((folder for folder in candidates if folder.is_dir()), None)


def files_in(folder: Path, names: Sequence[str], *, task: str) -> Mapping[str, Path]:
    """Return the files ``names`` of a task's folder; raises ``DataError`` if one is missing."""
    files = {name: folder / name for name in names}
    missing = [name for name, path in files.items() if not path.is_file()]
    if missing:
        raise DataError(
            f"{folder} lacks {', '.join(missing)}; run `{command_line('data')} {task}` "
            f"or point task.data_dir at a folder that holds {', '.join(names)}"
        )
    return files


def sha256_of(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def read_rows(path: Path, fields: Sequence[str]) -> tuple[Row, ...]:
    """Read a JSON-lines file whose objects have the text ``fields``; blank lines are skipped.

    A row's key is its ``id`` where it has one, else its line number (1-based, four digits). Equal rows
    are allowed (the official FiNER data holds some); equal ids are not. Raises ``DataError``.
    """
    return tuple(
        Row(key=key, where=where, fields={name: text_of(record, name, where) for name in fields})
        for key, where, record in read_records(path)
    )


def read_records(path: Path) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Yield key (see ``read_rows``), place and object of each line of a JSON-lines file; a BOM is skipped."""
    places: dict[str, int] = {}
    try:
        lines = path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{where}: not UTF-8 (byte {error.start + 1} of the line)") from error
        record = object_of(parse_json(text, where), where)
        key = _key(record, number, where)
        if key in places:
            raise DataError(f"{where}: id {key} was already used (line {places[key]})")
        places[key] = number
        yield key, where, record
    if not places:
        raise DataError(f"{path} holds no rows")


def parse_json(text: str, where: str) -> object:
    """Parse JSON; raises ``DataError`` that names the place ``where``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: broken JSON: {error}") from error


def object_of(value: object, where: str) -> dict[str, object]:
    """Return a JSON value that must be an object; raises ``DataError``."""
    if not isinstance(value, dict):
        raise DataError(f"{where}: a JSON object was expected, found {type(value).__name__}")
    return value


def _key(record: Mapping[str, object], number: int, where: str) -> str:
    if "id" not in record:
        return f"{number:04d}"
    key = record["id"]
    if isinstance(key, bool) or not isinstance(key, str | int) or not str(key).strip():
        raise DataError(f"{where}: field id must be a text or a whole number")
    return str(key).strip()


def text_of(record: Mapping[str, object], name: str, where: str) -> str:
    """Return a field that must be a text and not blank; raises ``DataError``."""
    if name not in record:
        raise DataError(f"{where}: field {name} is missing")
    value = record[name]
    if not isinstance(value, str):
        raise DataError(f"{where}: field {name} must be a text, found {type(value).__name__}")
    if not value.strip():
        raise DataError(f"{where}: field {name} is empty")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: field {name} holds half a surrogate pair, which is no text") from error
    return value


@dataclass(frozen=True, kw_only=True)
class HubDataset:
    """A data set at a fixed ``revision`` (commit). ``splits`` maps its splits to the task's; ``fields`` are kept.

    The defaults are StreamBench, at the last commit that we know of; its files could not be fetched to be checked.
    """

    path: str = "appier-ai-research/StreamBench"
    config: str
    revision: str = "be2e58c9fefdd33cb0d931a87eef4eac006eb78f"
    splits: Mapping[str, str]
    fields: tuple[str, ...]


def shuffle(items: Sequence[T], seed: int) -> list[T]:
    """Return the items in the order that ``datasets.Dataset.shuffle(seed=...)`` gives them, which StreamBench uses."""
    import numpy as np  # here, as most tasks start without it

    return [items[index] for index in np.random.default_rng(seed).permutation(len(items))]


def load_from_hub(path: str, config: str | None, revision: str | None, *, called: str, fix: str) -> Mapping[str, Any]:
    """Return the splits of a data set; errors name it as ``called`` and end with ``fix``.

    Raises ``ConfigError`` without the library, ``DataError`` where the data cannot be loaded.
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise ConfigError(f"{called} needs the datasets library: run `pip install 'ace-bench[data]'`") from error
    try:
        loaded: Mapping[str, Any] = load_dataset(path, config, revision=revision)
    except Exception as error:  # the library and the hub's client raise errors of many kinds
        raise DataError(f"{called} cannot be loaded from the hub: {error}; {fix}") from error
    return loaded
