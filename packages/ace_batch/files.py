"""The files of batches in a run folder, and the lines in them.

A batch has three: ``0001.json`` (its id and state), ``0001.requests.jsonl`` and, once it has ended,
``0001.replies.jsonl``. The first is written before the batch is sent, so that a killed run finds it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from ace_bench.backbones.openai_compatible.problems import Problem, from_status
from ace_bench.backbones.openai_compatible.replies import Answer, read_answer
from ace_bench.core.errors import FileUnwritable, FolderUnwritable, StoreError
from ace_bench.store.files import write_files

URL: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_REQUESTS, _REPLIES = ".requests.jsonl", ".replies.jsonl"
_TIMED_OUT = ("batch_expired", "batch_cancelled")
_OK = 200


class Batch(msgspec.Struct, kw_only=True):
    """A batch of a run: ``token`` marks it at the provider, ``batch`` is its id there, ``state`` how it ended."""

    token: str
    calls: int
    batch: str | None = None
    state: str | None = None


class BatchFiles:
    """The batches of one backbone in a folder, in the order in which they were sent."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.batches = {path.stem: self._read(path) for path in sorted(folder.glob("[0-9]*.json"))}

    @property
    def open(self) -> Sequence[str]:
        """The names of the batches that have not ended."""
        return [name for name, one in self.batches.items() if one.state is None]

    def add(self, lines: Mapping[str, bytes], token: str) -> str:
        """Keep a batch that is sent next, and return its name."""
        name = f"{int(max(self.batches, default=0)) + 1:04}"
        self._write(name, Batch(token=token, calls=len(lines)), {_REQUESTS: b"".join(lines.values())})
        return name

    def set_id(self, name: str, batch: str) -> None:
        """Keep the provider's id of a batch."""
        self._write(name, msgspec.structs.replace(self.batches[name], batch=batch))

    def end(self, name: str, state: str, replies: bytes = b"") -> None:
        """Keep how a batch ended, and its replies."""
        self._write(name, msgspec.structs.replace(self.batches[name], state=state), {_REPLIES: replies})

    def requests(self, name: str) -> Path:
        """Return the file of a batch's calls."""
        return self._folder / f"{name}{_REQUESTS}"

    def lines(self, name: str) -> dict[str, bytes]:
        """Return the lines of a batch's calls by their ids."""
        lines = self._content(self.requests(name)).splitlines(keepends=True)
        return {msgspec.json.decode(line, type=_Line).custom_id: line for line in lines}

    def answers(self) -> dict[str, Answer | Problem]:
        """Return what was answered in all ended batches, by id; errors are left out, to be asked again."""
        found: dict[str, Answer | Problem] = {}
        for name, one in self.batches.items():
            if one.state is not None:
                found.update(read_lines(self._content(self._folder / f"{name}{_REPLIES}")))
        return {name: result for name, result in found.items() if isinstance(result, Answer)}

    def _write(self, name: str, batch: Batch, contents: Mapping[str, bytes] = {}) -> None:
        written = {self._folder / f"{name}{suffix}": content for suffix, content in contents.items()}
        try:
            write_files({**written, self._folder / f"{name}.json": msgspec.json.encode(batch)})
        except FileUnwritable as error:  # the same command goes on
            raise FolderUnwritable(str(error)) from error
        self.batches[name] = batch

    def _read(self, path: Path) -> Batch:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Batch)
        except (OSError, msgspec.DecodeError) as error:
            raise StoreError(f"{path} is damaged ({error}): restore it, or remove it to pay its calls again") from error

    def _content(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise StoreError(f"{path} cannot be read ({error.strerror}): restore it") from error


def request_line(name: str, body: bytes) -> bytes:
    """Return the line of a call in OpenAI's form."""
    line = {"custom_id": name, "method": "POST", "url": URL, "body": msgspec.Raw(body)}
    return msgspec.json.encode(line) + b"\n"


class _Response(msgspec.Struct):
    status_code: int = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


def read_lines(content: bytes) -> Iterator[tuple[str, Answer | Problem]]:
    """Yield the ids and results of the lines that can be read."""
    for line in content.splitlines():
        try:
            found = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        yield found.custom_id, _result(found)


def _result(line: _Line) -> Answer | Problem:
    response, error = line.response or _Response(), line.error
    if response.status_code == _OK:
        return read_answer(bytes(response.body))
    if isinstance(error, Mapping) and error.get("code") in _TIMED_OUT:
        return Problem(kind="timeout", message=str(error.get("message") or error["code"]))
    try:
        body = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        body = None
    return from_status(response.status_code or 500, body or error)
