"""The embedded reader's server with OpenAI's /v1/files and /v1/batches."""

from __future__ import annotations

import email
import json
import threading
import urllib.parse
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from ace_rehearsal.server.replies import completion_body, error_body
from ace_rehearsal.server.requests import BadRequest, read_request
from ace_rehearsal.server.serve import Handler, ReaderServer
from tests.backbones.serving import running

MODEL = "embedded"
_LIMIT = 50_000

Change = Callable[[list[str]], tuple[str, list[str]]]
"""Makes of all lines of a batch the state in which it ends, and the lines that it ends with."""


def complete(lines: list[str]) -> tuple[str, list[str]]:
    return "completed", lines


class BatchHandler(Handler):
    """Adds files and batches to what the reader's server has."""

    server: BatchServer

    def parse_request(self) -> bool:
        """Answer requests for files and batches; leave all others to the reader's server."""
        return super().parse_request() and not self._route()

    def _route(self) -> bool:
        parts = urllib.parse.urlsplit(self.path).path.strip("/").split("/")
        if parts[1:2] not in (["files"], ["batches"]):
            return False
        body = self._read_body() if self.command == "POST" else b""
        if self.server.looks_left == 0:
            self._hang_up()
            return True
        self.server.looks_left -= 1
        if self.server.broken is not None:
            self._send_bytes(*self.server.broken)
            return True
        try:
            found = self.server.answer(self.command, parts[1:], body, self.headers.get("Content-Type", ""))
        except KeyError:
            found = 404, error_body(404, "not_found", f"There is no {self.path}.")
        self._send_bytes(found[0], found[1] if isinstance(found[1], bytes) else json.dumps(found[1]).encode())
        return True

    def _send_bytes(self, status: int, payload: bytes) -> None:
        headers = {"Content-Type": "application/json", "Content-Length": str(len(payload))}
        self._write(status, headers, [payload], cut=False)


class BatchServer(ReaderServer):
    """``batches`` holds what was sent, in order; each waits for ``release`` before it ends by the next of ``changes``.

    After ``looks_left`` requests, unless negative, the interface hangs up. ``broken`` is the status and body of all its
    replies.
    """

    def __init__(self, port: int = 0, changes: tuple[Change, ...] = ()):
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.answered: list[str] = []
        self.changes = list(changes)
        self.release = threading.Event()
        self.release.set()
        self.broken: tuple[int, bytes] | None = None
        self.looks_left = -1
        self.drop_created = False
        super().__init__(host="127.0.0.1", port=port)
        self.RequestHandlerClass = BatchHandler

    def answer(self, method: str, parts: list[str], body: bytes, kind: str) -> tuple[int, Any]:
        match (method, *parts):
            case ("POST", "files"):
                return 200, {"id": self._keep(_uploaded(body, kind)), "object": "file", "purpose": "batch"}
            case ("GET", "files", name, "content"):
                return 200, self.files[name]
            case ("POST", "batches"):
                return self._begin(json.loads(body))
            case ("GET", "batches"):
                return 200, {"object": "list", "data": [*reversed(self.batches.values())], "has_more": False}
            case ("GET", "batches", name):
                return 200, self._look(self.batches[name])
        raise KeyError

    def sizes(self) -> list[int]:
        """How many calls each batch had."""
        return [len(self.files[one["input_file_id"]].splitlines()) for one in self.batches.values()]

    def _keep(self, content: bytes) -> str:
        self.files[name := f"file-{len(self.files)}"] = content
        return name

    def _begin(self, asked: dict[str, Any]) -> tuple[int, Any]:
        assert asked["endpoint"] == "/v1/chat/completions"
        name = f"batch_{len(self.batches)}"
        self.batches[name] = {"id": name, "object": "batch", "status": "validating", "created_at": 0, **asked}
        if self.drop_created:  # begun, but the client does not hear of it
            self.drop_created = False
            return 500, error_body(500, "internal_error", "lost")
        return 200, self.batches[name]

    def _look(self, batch: dict[str, Any]) -> dict[str, Any]:
        if batch["status"] in ("validating", "in_progress"):
            batch["status"] = "in_progress"
            if self.release.is_set():
                self._end(batch)
        return batch

    def _end(self, batch: dict[str, Any]) -> None:
        lines = [self._line(line) for line in self.files[batch["input_file_id"]].splitlines()]
        batch["status"], lines = (self.changes.pop(0) if self.changes else complete)(lines)
        if batch["status"] == "failed":
            batch["errors"] = {"data": [{"code": "too_large_task", "message": lines[0]}]}
            return
        errors = [line for line in lines if '"status_code": 200' not in line]
        self.answered += [json.loads(line)["custom_id"] for line in lines if line not in errors]
        batch["output_file_id"] = self._keep("\n".join(line for line in lines if line not in errors).encode())
        batch["error_file_id"] = self._keep("\n".join(errors).encode()) if errors else None

    def _line(self, line: bytes) -> str:
        asked = json.loads(line)
        number = self.count("completions")
        try:
            request = read_request(json.dumps(asked["body"]).encode(), MODEL)
            completion = self.backbone.complete(request.messages, role="", session="", schema=request.offer)
            status, body = 200, completion_body(completion, request, number=number, created=0)
        except BadRequest as problem:
            status, body = problem.status, error_body(problem.status, problem.code, str(problem))
        response = {"status_code": status, "request_id": f"r{number}", "body": body}
        return json.dumps({"id": f"l{number}", "custom_id": asked["custom_id"], "response": response, "error": None})


def _uploaded(body: bytes, kind: str) -> bytes:
    message = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    (found,) = [
        part for part in message.get_payload() if part.get_param("name", header="content-disposition") == "file"
    ]
    content: bytes = found.get_payload(decode=True)
    assert len(content.splitlines()) <= _LIMIT
    return content


@contextmanager
def batch_server(*changes: Change, port: int = 0):
    with running(BatchServer(port, changes)) as server:
        yield server
