"""One connection of the server: reads requests, draws faults, sends replies whole or as a stream."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from ace_rehearsal.reader.chat import completion_body, error_body, model_body, models_body, read_request
from ace_rehearsal.reader.chat_stream import events
from ace_rehearsal.reader.embeddings import embeddings_body
from ace_rehearsal.reader.schema_values import BadRequest

if TYPE_CHECKING:
    from ace_rehearsal.reader.serve import ReaderServer

LARGEST_BODY, _LONGEST_LENGTH = 64 * 1024 * 1024, 20
_RETRY_AFTER_S = "0.05"
_IDLE_S = 60.0
_CHAT, _EMBEDDINGS, _MODELS = "/v1/chat/completions", "/v1/embeddings", "/v1/models"
_HINTS = {
    "/v1/responses": "; a client has a setting for that, such as use_responses_api=False or responses_api=False",
}


class Handler(BaseHTTPRequestHandler):
    """Answers requests to a ``ReaderServer``; every error has a body in OpenAI's format."""

    server: ReaderServer
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    # A reply is written in one piece; without this it could wait for the client's delayed acknowledgement.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: /stats counts requests."""

    def do_GET(self) -> None:
        """Answer what needs no model."""
        path, model = self._path(), self.server.backbone.name
        answers: Mapping[str, Callable[[], Mapping[str, Any]]] = {
            "/health": lambda: {"status": "ok"},
            "/stats": self.server.stats,
            _MODELS: lambda: models_body(model),
            f"{_MODELS}/{model}": lambda: model_body(model),
        }
        if path in answers:
            self._send(200, answers[path]())
        elif path in (_CHAT, _EMBEDDINGS):
            self.send_error(405, f"{path} takes POST requests.")
        else:
            self.send_error(404, f"There is nothing at {path}.")

    def do_POST(self) -> None:
        """Answer a request to the model, or fail on purpose."""
        try:
            body = self._body()
            path = self._path()
            if path not in (_CHAT, _EMBEDDINGS):
                hint = _HINTS.get(path, "")
                message = f"There is nothing at {path}; this server has {_CHAT} and {_EMBEDDINGS}{hint}."
                raise BadRequest(404, "not_found", message)
            number = self.server.count("requests")
            time.sleep(self.server.latency_s)
            fault = self.server.faults.draw()
            if fault is not None:
                self.server.count(f"fault_{fault}")
            if fault in {"drop", "http_500", "http_429"}:
                self._fail(fault)
            elif path == _EMBEDDINGS:
                self._send(200, embeddings_body(body, self.server.backbone.name), cut=fault == "truncate")
            else:
                self._complete(body, number, fault)
        except BadRequest as problem:
            self.server.count("bad_requests")
            self._error(problem.status, problem.code, str(problem))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Report a request that cannot be served, such as one of an unknown method."""
        del explain
        self.close_connection = self.close_connection or code not in (404, 405)
        self._error(code, {404: "not_found", 405: "method_not_allowed"}.get(code, "bad_request"), message or "")

    def _path(self) -> str:
        return self.path.split("?", 1)[0].rstrip("/") or "/"

    def _complete(self, body: bytes, number: int, fault: str | None) -> None:
        request = read_request(body, self.server.backbone.name)
        completion = self.server.backbone.complete(request.messages, role="", session="", schema=request.offer)
        answer = completion_body(completion, request, number=number, created=int(time.time()))
        if fault in {"empty", "no_code"}:
            for choice in answer["choices"]:
                said = choice["message"]["content"] or ""
                kept = said.partition("\n\n```python\n")[0] if fault == "no_code" else ""
                choice["message"] = {"role": "assistant", "content": kept}
        self.server.count("completions")
        if request.stream:
            self._stream(list(events(answer, include_usage=request.include_usage)), cut=fault == "truncate")
        else:
            self._send(200, answer, cut=fault == "truncate")

    def _fail(self, fault: str | None) -> None:
        if fault == "drop":
            self._hang_up()
        elif fault == "http_429":
            self._error(429, "rate_limit_exceeded", "Too many requests (a fault on purpose).")
        else:
            self._error(500, "internal_error", "The server failed (a fault on purpose).")

    def _body(self) -> bytes:
        """The request's body; raises ``BadRequest`` for a length that is absent, wrong or too large."""
        lengths = self.headers.get_all("Content-Length", [])
        plain = len(lengths) == 1 and lengths[0].strip().isdecimal() and "Transfer-Encoding" not in self.headers
        try:
            if not plain:
                status = 400 if lengths else 411
                raise BadRequest(status, "bad_length", "Send the body with one Content-Length, a whole number.")
            length = int(lengths[0][:_LONGEST_LENGTH])
            if length > LARGEST_BODY:
                raise BadRequest(413, "too_large", f"The body is larger than {LARGEST_BODY} bytes.")
            body = self.rfile.read(length)
            if len(body) < length:
                raise BadRequest(400, "short_body", f"The body ended {length - len(body)} bytes too early.")
        except BadRequest:
            self.close_connection = True  # the start of the next request is unknown
            raise
        return body

    def _error(self, status: int, code: str, message: str) -> None:
        self._send(status, error_body(status, code, message))

    def _send(self, status: int, content: Mapping[str, Any], *, cut: bool = False) -> None:
        payload = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if status == 429:
            self.send_header("Retry-After", _RETRY_AFTER_S)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(payload[: len(payload) // 2] if cut else payload)
        if cut:
            self._hang_up()

    def _stream(self, pieces: list[bytes], *, cut: bool) -> None:
        """Send server-sent events, each as a chunk of HTTP/1.1, so that the connection can be used again."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._write_chunks(pieces[: len(pieces) // 2] if cut else [*pieces, b""])
        if cut:
            self._hang_up()

    def _write_chunks(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
