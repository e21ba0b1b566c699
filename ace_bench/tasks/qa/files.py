"""Reads the rows of JSONL, JSON, CSV and TSV files one by one; every error names the file and the line."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ace_bench.core.errors import ConfigError, DataError, SettingError
from ace_bench.core.words import visible
from ace_bench.tasks.data import object_of, parse_json
from ace_bench.tasks.qa.encodings import decode, refuse_controls

Records = Iterator[tuple[str, Mapping[str, object]]]
"""Place (file and line) and values by column of each row."""

_DELIMITERS = (",", ";", "\t", "|")


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


def _read(path: Path, form: TextForm) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    return decode(content, form.encoding, path)


def _lines(path: Path, form: TextForm) -> Records:
    lines = re.split("\r\n|[\r\n]", _read(path, form))  # further line breaks of Unicode may stand in JSON texts
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, _record(parse_json(line, where), where)


def _read_whole(path: Path, form: TextForm) -> Records:
    text = _read(path, form)
    rows = parse_json(text, str(path)) if text.strip() else []
    if not isinstance(rows, list):
        raise DataError(f"{path} must hold a JSON list of objects; name a file of one object a line .jsonl")
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        yield where, _record(row, where)


def _record(value: object, where: str) -> Mapping[str, object]:
    refuse_controls(json.dumps(value, ensure_ascii=False), where)  # which may be written as escapes
    return object_of(value, where)


def _table(path: Path, form: TextForm) -> Records:
    text, delimiter = _find_delimiter(_read(path, form), "\t" if path.suffix.lower() == ".tsv" else form.delimiter)
    csv.field_size_limit(sys.maxsize)  # the library refuses cells above 128 KiB by default, for the whole process
    header: list[str] | None = None
    start = 1  # the line on which the next row starts
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            where, start = f"{path}, line {start}", reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            refuse_controls(delimiter.join(cells), where)
            if header is None:
                header = _header(cells, path)
            elif len(cells) != len(header):
                raise DataError(
                    f"{where}: {len(cells)} cells under {len(header)} columns; quote cells that hold {delimiter!r} or "
                    f"a line break, or set task.delimiter{suggest_delimiter(header)}"
                )
            else:
                yield where, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise DataError(f"{path}, line {start}: broken CSV: {error}; a quote may be missing") from error


def _find_delimiter(text: str, usual: str) -> tuple[str, str]:
    """Return the text without Excel's line ``sep=;``, and what parts its columns.

    That is what the line says, else ``usual``, unless the header is one column, which no table can be, and another
    delimiter parts it.
    """
    match = re.match("sep=(.)(?=[\r\n])", text)
    if match:
        return text[match.end() :], match[1]  # the line break stays, so that lines keep their numbers
    first = next((line for line in re.split("[\r\n]", text) if line.strip()), "")
    count = {delimiter: len(next(csv.reader([first], delimiter=delimiter), [])) for delimiter in (usual, *_DELIMITERS)}
    return text, usual if count[usual] > 1 else max(count, key=lambda delimiter: count[delimiter])


def suggest_delimiter(names: Sequence[str]) -> str:
    """Say how to set the delimiter where names of columns hold another one, "" if none does."""
    delimiter = next((candidate for candidate in _DELIMITERS if any(candidate in name for name in names)), None)
    return "" if delimiter is None else f""", such as 'task.delimiter="{delimiter}"\'"""


def _header(cells: list[str], path: Path) -> list[str]:
    names = [visible(cell).strip() for cell in cells]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}: more than one column is named {', '.join(map(repr, repeated))}; rename them")
    return names


_READERS: Mapping[str, Callable[[Path, TextForm], Records]] = {
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".json": _read_whole,
    ".csv": _table,
    ".tsv": _table,
}
SUFFIXES = tuple(_READERS)
"""Of the files that can be read."""
