"""Records the inputs of tables and figures, so that they are made again only if an input has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.cli.reproducing.request import ReproduceRequest
from ace_bench.core.encoding import digest_of
from ace_bench.core.resources import config_folders, import_folder
from ace_bench.report.folders import run_folders
from ace_bench.store.files import write_files

FILE = "reproduced.json"
"""In the results folder: by request, a digest of the inputs, and digests of the files made."""

_READ = ("identity.json", "config.yaml", "metrics.json", "environment.json", "status.json")
_LARGE = ("journal.jsonl", "calls.jsonl")
_LIBRARIES = ("matplotlib", "numpy", "pandas")


class Manifest:
    """Checks whether all files of a request were made from the current runs by this version."""

    def __init__(self, request: ReproduceRequest) -> None:
        self._request = request
        self._file = request.results / FILE
        self._key = digest_of({**asdict(request), "results": str(request.results)})

    @property
    def holds(self) -> bool:
        """Whether all files exist unchanged, and their inputs have not changed."""
        entry = self._read_entries().get(self._key)
        if entry is None or any(
            _digest(self._request.results / file) != digest for file, digest in entry["files"].items()
        ):
            return False
        return bool(entry["inputs"] == self.inputs())

    def keep(self, inputs: str, files: Iterable[Path]) -> None:
        """Record that ``files`` were made from ``inputs``, with all runs finished."""
        digests = {str(file.relative_to(self._request.results)): _digest(file) for file in files}
        kept = {**self._read_entries(), self._key: {"inputs": inputs, "files": digests}}
        write_files({self._file: msgspec.json.format(msgspec.json.encode(kept))})

    def inputs(self) -> str:
        """Return a digest of the program, its configuration, and all runs in the results folder."""
        return digest_of(
            {
                "program": [[str(file), _digest(file)] for file in _program()],
                "libraries": {name: _version(name) for name in _LIBRARIES},
                "runs": {
                    str(folder.relative_to(self._request.results)): list(_stamps(folder))
                    for folder in run_folders(self._request.results)
                },
            }
        )

    def _read_entries(self) -> Mapping[str, Any]:
        try:
            entries = msgspec.json.decode(self._file.read_bytes(), type=dict[str, dict[str, Any]])
        except (OSError, msgspec.MsgspecError):
            return {}  # missing or damaged: everything is made again
        return {key: entry for key, entry in entries.items() if entry.keys() == {"inputs", "files"}}


def _version(library: str) -> str | None:
    with suppress(PackageNotFoundError):  # text tables need none of them
        return version(library)
    return None


def _program() -> Iterator[Path]:
    code = ((import_folder() / "ace_bench", pattern) for pattern in ("*.py", "*.yaml"))
    for folder, pattern in (*code, *((configs, "*.yaml") for configs in config_folders())):
        yield from sorted(folder.rglob(pattern))


def _stamps(folder: Path) -> Iterator[object]:
    """Detect changes of a run: small files by content, others by size and modification time."""
    for name in _READ:
        yield _digest(folder / name)
    for name in _LARGE:
        file = folder / name
        yield [file.stat().st_size, file.stat().st_mtime_ns] if file.is_file() else None


def _digest(file: Path) -> str | None:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
