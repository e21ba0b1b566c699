"""BIRD's own archives with the databases for StreamBench's questions."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from ace_bench.core.errors import DataError
from ace_bench.store.files import replacing
from ace_bench.tasks.bird_sql.databases import FOLDERS
from ace_bench.tasks.data import RemoteFile, read_records, text_of


@dataclass(frozen=True, kw_only=True)
class Archive:
    """The archive with the databases of a split's questions.

    The publisher gives no checksum; the archive's internal checksums show whether it is complete.
    """

    file: RemoteFile
    split: str

    def lacking(self, folder: Path) -> set[str]:
        """Return the databases that the split's questions need and that are missing in a data folder."""
        records = read_records(folder / f"{self.split}.jsonl")
        needed = {text_of(record, "db_id", where) for _, where, record in records}
        return {name for name in needed if not any((folder / at / name / f"{name}.sqlite").is_file() for at in FOLDERS)}

    def unpack(self, archive: Path, folder: Path) -> None:
        """Write the missing databases to ``databases/<name>/<name>.sqlite``, and nothing else.

        The databases may lie in an archive within the archive. Raises ``DataError`` for a broken or wrong archive.
        """
        wanted = self.lacking(folder)
        try:
            with _innermost(archive, folder) as zipped:
                for entry in zipped.infolist():
                    place = PurePosixPath(entry.filename)
                    if place.suffix == ".sqlite" and place.stem in wanted and place.parent.name == place.stem:
                        with zipped.open(entry) as source:
                            _place(source, folder / FOLDERS[0] / place.stem / place.name)
        except (zipfile.BadZipFile, EOFError) as error:
            raise DataError(
                f"{archive} is not a complete zip archive: {error}; remove it and fetch it again"
            ) from error
        missing = self.lacking(folder)
        if missing:
            raise DataError(f"{archive} lacks the databases {', '.join(sorted(missing))}; is it {self.file.name}?")


@contextmanager
def _innermost(archive: Path, folder: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive, or the one inside it whose name ends in ``databases.zip``, which is unpacked temporarily."""
    with zipfile.ZipFile(archive) as outer:
        inner = next((e for e in outer.infolist() if PurePosixPath(e.filename).name.endswith("databases.zip")), None)
        if inner is None:
            yield outer
            return
        scratch = folder / f"{archive.name}.inner"
        try:
            with outer.open(inner) as source:
                _place(source, scratch)
            with zipfile.ZipFile(scratch) as zipped:
                yield zipped
        finally:
            scratch.unlink(missing_ok=True)


def _place(source: IO[bytes], path: Path) -> None:
    with replacing(path) as target:
        shutil.copyfileobj(source, target, 1 << 20)
