"""Finds the attempts in files of traces; every error names the file and the line.

Files of lines are read twice, a line at a time: once to find the attempts, once when an attempt's turn comes. Only
questions and places stay in memory. A .json file that is one JSON value is in memory as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from glob import glob
from pathlib import Path
from typing import Any

from ace_bench.core.errors import DataError, SettingError
from ace_traces import otel
from ace_traces.inspect_logs import read_log
from ace_traces.messages import read_chat
from ace_traces.trace import Reading, Trace

SUFFIXES = (".eval", ".json", ".jsonl", ".ndjson")
_LINES_KEPT = 8
"""Parsed lines that are kept: one export of spans holds many conversations."""

Load = Callable[[], Trace]
_Row = tuple[str, Callable[[], Any], bool]
"""The place of a row, what reads it, and whether it is an export of OpenTelemetry."""


def find_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that paths, folders and patterns name, each once; raises ``SettingError``."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = Path(pattern).expanduser()
        files = [path] if path.is_file() else map(Path, sorted(glob(str(path), recursive=True)))
        if path.is_dir():
            files = sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES)
        named = dict.fromkeys(files)
        wrong = next((one for one in named if one.suffix not in SUFFIXES), None)
        if wrong is not None or not named:
            problem = f"there are no traces at {pattern}" if wrong is None else f"{wrong} is not a file of traces"
            raise SettingError(f"files: {problem}; name files of {', '.join(SUFFIXES)}, or folders of them")
        found.update(named)
    return [*found]


def find_traces(path: Path, reading: Reading) -> Iterator[tuple[str, Load]]:
    """Yield the place of each attempt in a file and what loads it, which raises ``DataError`` for a broken one."""
    value = _read_whole(path) if path.suffix == ".json" else None
    if path.suffix == ".eval" or (isinstance(value, dict) and "eval" in value):
        yield from read_log(path, reading)
        return
    exports = dict[str, Callable[[], Any]]()
    for where, read, is_export in _lines(path) if value is None else _values(path, value):
        if is_export:
            exports[where] = read
        else:
            yield where, lambda read=read, where=where: read_chat(read(), reading, where)  # type: ignore[misc]
    yield from _conversations(exports, reading)


def _read_whole(path: Path) -> Any:
    """Return the one JSON value of a file, ``None`` if it has none: collectors write lines to files named .json."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None


def _values(path: Path, value: Any) -> Iterator[_Row]:
    for number, row in enumerate(value if isinstance(value, list) else [value], 1):
        is_export = isinstance(row, dict) and any(key in row for key in otel.CONTENTS)
        yield f"{path}, row {number}", lambda row=row: row, is_export  # type: ignore[misc]


def _lines(path: Path) -> Iterator[_Row]:
    with path.open("rb") as file:
        offset = 0
        for number, line in enumerate(file, 1):
            where, start = f"{path}, line {number}", line[:200]
            if line.strip():
                read = partial(_read, path, offset, len(line), where)
                yield where, read, any(f'"{key}"'.encode() in start for key in otel.CONTENTS)
            offset += len(line)


def _read(path: Path, offset: int, length: int, where: str) -> Any:
    with path.open("rb") as file:
        file.seek(offset)
        try:
            return json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: broken JSON: {error}") from error


def _conversations(exports: Mapping[str, Callable[[], Any]], reading: Reading) -> Iterator[tuple[str, Load]]:
    """Yield the conversations of exports, which are read again when the turn of one comes."""

    @lru_cache(maxsize=_LINES_KEPT)
    def entries(where: str) -> Sequence[otel.Entry]:
        return [*otel.read_entries(exports[where](), where)]

    named: dict[str, set[str]] = {}
    held: dict[tuple[str, str | None], dict[str, None]] = {}
    for where in exports:
        try:
            for entry in entries(where):
                named.setdefault(entry.trace, set()).update(filter(None, [entry.conversation]))
                held.setdefault((entry.trace, entry.conversation), {})[where] = None
        except DataError:
            yield where, partial(entries, where)  # type: ignore[misc]  # which raises it again

    def key_of(trace: str, conversation: str | None) -> str:
        """Return the conversation; where an entry names none, the only one of its trace, or else the trace."""
        return conversation or (next(iter(named[trace])) if len(named[trace]) == 1 else trace)

    def load(key: str, places: Iterable[str], name: str) -> Trace:
        own = [one for where in places for one in entries(where) if key_of(one.trace, one.conversation) == key]
        return otel.read_conversation(key, own, reading, name)

    places: dict[str, dict[str, None]] = {}
    for (trace, conversation), found in held.items():
        places.setdefault(key_of(trace, conversation), {}).update(found)
    for key, found in places.items():
        name = f"{next(iter(found))}, conversation {key}"
        yield name, partial(load, key, found, name)
