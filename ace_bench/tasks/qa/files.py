"""Reads the rows of JSONL, JSON, CSV, TSV and Parquet files one by one; every error names the file and the line."""

from __future__ import annotations

import codecs
import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

from ace_bench.core.errors import ConfigError, DataError, SettingError
from ace_bench.tasks.data import object_of, parse_json

Records = Iterator[tuple[str, Mapping[str, object]]]
"""Place (file and line) and values by column of each row."""


@dataclass(frozen=True, kw_only=True)
class TextForm:
    """How text files are read: the name of their encoding, and what separates the columns of a CSV file."""

    encoding: str
    delimiter: str

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            raise SettingError(f"encoding={self.encoding} is not an encoding that Python knows; try utf-8") from error
        if len(self.delimiter) != 1 or self.delimiter in '\r\n"':
            raise SettingError(f"delimiter={self.delimiter!r} must be one character such as , or ;")


def read_file(path: Path, form: TextForm) -> Records:
    """Yield the rows of a file, whose format its suffix names. Raises ``ConfigError`` or ``DataError``."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"task.data: {path} must end in one of {', '.join(_READERS)}, which names its format")
    if not path.is_file():
        raise DataError(
            f"task.data: {path} is not a file; name one relative to the current folder, or by its full path"
        )
    empty = True
    for where, record in reader(path, form):
        empty = False
        yield where, record
    if empty:
        raise DataError(f"{path} holds no rows")


@contextmanager
def _open(path: Path, form: TextForm, newline: str) -> Iterator[IO[str]]:
    """Open a text file without its BOM; bytes that cannot be decoded become lone surrogates, which ``_check`` finds."""
    utf_8 = codecs.lookup(form.encoding).name == "utf-8"
    encoding = "utf-8-sig" if utf_8 else form.encoding
    try:
        with path.open(encoding=encoding, errors="surrogateescape", newline=newline) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeError as error:
        raise DataError(f"{path} is not {form.encoding}: {error}; set task.encoding") from error


def _check(line: str, where: str, form: TextForm) -> None:
    try:
        line.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where}: character {error.start + 1} is not {form.encoding}; set task.encoding, such as latin-1"
        ) from error


def _lines(path: Path, form: TextForm) -> Records:
    with _open(path, form, "\n") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            _check(line, where, form)
            yield where, object_of(parse_json(line, where), where)


def _read_whole(path: Path, form: TextForm) -> Records:
    with _open(path, form, "\n") as file:
        text = file.read()
    _check(text, str(path), form)
    rows = parse_json(text, str(path)) if text.strip() else []
    if not isinstance(rows, list):
        raise DataError(f"{path} must hold a JSON list of objects; name a file of one object a line .jsonl")
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        yield where, object_of(row, where)


def _table(path: Path, form: TextForm) -> Records:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else form.delimiter
    csv.field_size_limit(sys.maxsize)  # the library refuses cells above 128 KiB by default, for the whole process
    header: list[str] | None = None
    start = 1  # the line on which the next row starts
    with _open(path, form, "") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                where, start = f"{path}, line {start}", reader.line_num + 1
                if not any(cell.strip() for cell in cells):
                    continue
                _check("".join(cells), where, form)
                if header is None:
                    header = _header(cells, path)
                elif len(cells) != len(header):
                    raise DataError(
                        f"{where}: {len(cells)} cells under {len(header)} columns; "
                        f"quote cells that hold {delimiter!r} or a line break, or set task.delimiter"
                    )
                else:
                    yield where, dict(zip(header, cells, strict=True))
        except csv.Error as error:
            raise DataError(f"{path}, line {start}: broken CSV: {error}; a quote may be missing") from error


def _header(cells: list[str], path: Path) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: more than one column is named {', '.join(map(repr, twice))}; rename them")
    return names


def _parquet(path: Path, form: TextForm) -> Records:
    del form  # Parquet knows its own encoding
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ConfigError("Parquet files need pyarrow: run `pip install 'ace-bench[data]'`") from error
    try:
        with ParquetFile(path) as file:
            rows = chain.from_iterable(batch.to_pylist() for batch in file.iter_batches())
            yield from ((f"{path}, row {number}", row) for number, row in enumerate(rows, start=1))
    except (ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error


_READERS: Mapping[str, Callable[[Path, TextForm], Records]] = {
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".json": _read_whole,
    ".csv": _table,
    ".tsv": _table,
    ".parquet": _parquet,
}
