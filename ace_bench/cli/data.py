"""Fetch a task's official data, check it and put it where the task looks for it.

    ace-bench data finer
    ace-bench data bird_sql
    ace-bench data ddxplus

Data comes as files with known checksums, or as a data set of the Hugging Face hub at a fixed revision, which is
converted into the files of the task. The next call resumes an interrupted download. A file gets its final name after
its checksum matched. Complete files are skipped.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from rich.progress import DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from ace_bench.cli.arguments import Parser
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.core.program import command_line
from ace_bench.store.files import write_files, writing
from ace_bench.tasks.catalog import task_class, task_names
from ace_bench.tasks.data import HubDataset, RemoteFile, download_folder, load_from_hub, sha256_of

CHUNK = 1 << 16
TIMEOUT = 60.0
"""Seconds without data after which a connection counts as lost."""

Made = Iterable[tuple[str, Sequence[Mapping[str, str]]]]
"""Files of a task by name, each with its rows."""


class Archive(Protocol):
    """An archive that a task needs in part; ``unpack`` takes the archive and the target folder."""

    file: RemoteFile

    def find_missing(self, folder: Path) -> Collection[str]: ...  # noqa: D102
    def unpack(self, archive: Path, folder: Path) -> None: ...  # noqa: D102


Report = Callable[[int, int | None], None]
"""Called with the bytes received so far and the file's size, ``None`` if the server does not say it."""


def files_of(task: str) -> Sequence[RemoteFile]:
    """Return the ``downloads`` of a task's class."""
    files: Sequence[RemoteFile] = getattr(task_class(task), "downloads", ())
    if not files:
        hint = f"; use `{command_line('appworld')} --data`" if task == "appworld" else ""
        raise ConfigError(f"task {task} has no files to download here{hint}")
    return files


def git_blob_of(path: Path) -> str:
    """Return the object id (SHA-1, hex) that git gives a file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def difference(path: Path, file: RemoteFile) -> str:
    """Return "" if a local file has the published content, else a text that says what differs."""
    for kind, wanted, digest in (("SHA-256", file.sha256, sha256_of), ("git blob id", file.git_blob, git_blob_of)):
        if wanted is not None:
            actual = digest(path)
            return "" if actual == wanted else f"its {kind} is {actual} and should be {wanted}"
    return ""


def fetch(file: RemoteFile, folder: Path, url: str, report: Report) -> bool:
    """Download one file into ``folder``. Return False if it was already there and complete.

    Raises ``DataError`` and ``FileUnwritable`` with one sentence for every failure. A partial download stays in
    ``<name>.part``.
    """
    final, part = folder / file.name, folder / f"{file.name}.part"
    with writing(part):
        if final.is_file():
            if not difference(final, file):
                return False
            raise DataError(f"{final} is not the published file; move it away to download the published one")
        folder.mkdir(parents=True, exist_ok=True)
        _transfer(url, part, report)
        problem = difference(part, file)
        if problem:
            part.unlink()
            raise DataError(f"{url} is not the published file: {problem}; the download was dropped")
        part.replace(final)
    return True


def _transfer(url: str, part: Path, report: Report) -> None:
    """Download to ``part``, from where it ends. Raises ``DataError`` for a failure of network or server."""
    size = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={size}-"} if size else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            # A server without support for ranges answers 200 and sends the file from its start.
            size = size if response.status == http.client.PARTIAL_CONTENT else 0
            length = response.headers.get("Content-Length")
            total = size + int(length) if length is not None and length.isdigit() else None
            with part.open("ab" if size else "wb") as stream:
                report(size, total)
                while chunk := response.read(CHUNK):
                    stream.write(chunk)
                    size += len(chunk)
                    report(size, total)
        if total is not None and size < total:
            raise ConnectionError(f"received {size} of {total} bytes")
    except urllib.error.HTTPError as error:
        error.close()
        # Status 416 means that nothing is left to send. The checksum shows whether the file is complete.
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE or not size:
            raise DataError(f"{url}: the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise DataError(f"{url} cannot be reached: {error.reason}; check the network or use --base-url") from error
    except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
        raise DataError(f"{url}: the connection was cut; the same command again continues from there") from error


def hub_rows(dataset: HubDataset) -> Made:
    """Yield the name of each file of the task with its rows, in the order of the hub's split.

    Raises ``ConfigError`` without the library, ``DataError`` where the data cannot be loaded or has another form.
    """
    where = f"{dataset.path} ({dataset.config}) at {dataset.revision}"
    fix = "check the network, or name another --revision"
    loaded = load_from_hub(dataset.path, dataset.config, dataset.revision, called=where, fix=fix)
    for source, split in dataset.splits.items():
        if source not in loaded:
            raise DataError(f"{where} has no split {source}, only {', '.join(map(str, loaded))}; check --revision")
        missing = [name for name in dataset.fields if name not in loaded[source].column_names]
        if missing:
            raise DataError(f"{where}, split {source}: no field {', '.join(missing)}; check --revision")
        rows = loaded[source].select_columns(list(dataset.fields))
        texts = [{name: "" if row[name] is None else str(row[name]) for name in dataset.fields} for row in rows]
        yield f"{split}.jsonl", texts


def convert(options: argparse.Namespace) -> Made | None:
    """Return the files to make from a data set of the hub; ``None`` if the files are downloaded unchanged.

    Raises ``ConfigError`` for options that do not apply to the task.
    """
    hub: HubDataset | None = getattr(task_class(options.task), "hub", None)
    if hub is None and options.revision is not None:
        raise ConfigError(f"task {options.task} does not come from the hub; drop --revision")
    return None if hub is None else hub_rows(replace(hub, revision=options.revision or hub.revision))


def write(files: Made, folder: Path, console: Console) -> None:
    """Write files of rows. An existing file with other contents is an error and stays unchanged."""
    # All rows are read before the first file is written, so that a bad one leaves nothing half done.
    for name, rows in list(files):
        final = folder / name
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        exists = final.is_file()
        if exists and final.read_bytes() != content:
            raise DataError(f"{final} exists and differs; move it away to make it again")
        if not exists:
            write_files({final: content})
        state = "already there and the same" if exists else "written"
        console.print(f"{final}: {len(rows)} rows, {state}")


def main(arguments: Sequence[str]) -> int:
    """Download a task's files. Return the exit code."""
    parser = Parser("data", __doc__)
    parser.add_argument("task", help=f"one of: {', '.join(task_names())}")
    parser.add_argument("--dir", type=Path, help="where to put the files (default: data/<task> in the current folder)")
    parser.add_argument("--base-url", help="a mirror: the files' own names are looked up under this address")
    parser.add_argument("--revision", help="another revision of a data set of the hub than the pinned one")
    options = parser.parse_args(arguments)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        folder = options.dir or download_folder(options.task)
        files = convert(options)
        if files is not None:
            write(files, folder, console)
        else:
            for file in files_of(options.task):
                _fetch_with_progress(file, folder, options.base_url, console)
        for archive in getattr(task_class(options.task), "archives", ()):
            add_archive(archive, folder, options.base_url, console)
    except KeyboardInterrupt:
        console.print("Stopped; the same command again continues.")
        return 130
    return 0


def add_archive(archive: Archive, folder: Path, base_url: str | None, console: Console) -> None:
    """Download an archive, unpack the files that are missing in the folder, and remove it."""
    if not archive.find_missing(folder):
        console.print(f"{archive.file.name}: all its files exist")
        return
    _fetch_with_progress(archive.file, folder, base_url, console)
    with writing(folder):
        archive.unpack(folder / archive.file.name, folder)
        (folder / archive.file.name).unlink()
    console.print(f"{archive.file.name}: unpacked into {folder} and removed")


def _fetch_with_progress(file: RemoteFile, folder: Path, base_url: str | None, console: Console) -> None:
    name = os.path.basename(urlsplit(file.url).path)
    url = f"{base_url.rstrip('/')}/{name}" if base_url else file.url
    columns = (*Progress.get_default_columns()[:2], DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        row = progress.add_task(file.name, total=None)
        fetched = fetch(file, folder, url, lambda done, total: progress.update(row, completed=done, total=total))
    verified = "downloaded and verified" if file.sha256 or file.git_blob else "downloaded; no checksum is published"
    state = verified if fetched else "already there and right"
    console.print(f"{folder / file.name}: {state}")
