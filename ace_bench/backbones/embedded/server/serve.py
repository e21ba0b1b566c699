"""Serve the embedded backbone over HTTP as an OpenAI-compatible server.

    ace-bench serve --port 8000

For clients and tests: latency and faults can be injected.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ace_bench.backbones.embedded.backbone import EmbeddedBackbone
from ace_bench.backbones.embedded.server.faults import Faults, parse_chances
from ace_bench.backbones.embedded.server.replies import (
    completion_body,
    embeddings_body,
    error_body,
    model_body,
    stream_events,
)
from ace_bench.backbones.embedded.server.requests import BadRequest, ChatRequest, read_request

_INTERRUPTED = 130
LARGEST_BODY, _LONGEST_LENGTH = 64 * 1024 * 1024, 20
_RETRY_AFTER_S = "0.05"
_CHAT, _EMBEDDINGS, _MODELS = "/v1/chat/completions", "/v1/embeddings", "/v1/models"
_ERRORS = {
    "http_429": (429, "rate_limit_exceeded", "Too many requests (a fault on purpose)."),
    "http_500": (500, "internal_error", "The server failed (a fault on purpose)."),
}
_WITHOUT_REPLY = ("drop", *_ERRORS)
_HINTS = {
    "/v1/responses": "; a client has a setting for that, such as use_responses_api=False or responses_api=False",
}


class Handler(BaseHTTPRequestHandler):
    """One connection to a ``ReaderServer``; every error has a body in OpenAI's format."""

    server: ReaderServer
    protocol_version = "HTTP/1.1"
    timeout = 60.0
    # A reply is written in one piece; without this it could wait for the client's delayed acknowledgement.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: /stats counts requests."""

    def do_GET(self) -> None:
        """Answer what needs no model."""
        path, model = self._path(), model_body(self.server.backbone.name)
        answers = {
            "/health": {"status": "ok"},
            "/stats": self.server.stats(),
            _MODELS: {"object": "list", "data": [model]},
            f"{_MODELS}/{model['id']}": model,
        }
        if path in answers:
            self._send(200, answers[path])
        elif path in (_CHAT, _EMBEDDINGS):
            self.send_error(405, f"{path} takes POST requests.")
        else:
            self.send_error(404, f"There is nothing at {path}.")

    def do_POST(self) -> None:
        """Answer a request to the model, or fail on purpose."""
        try:
            body, path = self._read_body(), self._path()
            if path not in (_CHAT, _EMBEDDINGS):
                hint = _HINTS.get(path, "")
                message = f"There is nothing at {path}; this server has {_CHAT} and {_EMBEDDINGS}{hint}."
                raise BadRequest(404, "not_found", message)
            number, began = self.server.count("requests"), time.monotonic()
            fault = self.server.faults.draw() or ""
            answer = self._answer(body, number, fault) if path == _CHAT and fault not in _WITHOUT_REPLY else None
            time.sleep(max(0.0, began + self.server.latency_s - time.monotonic()))
            if fault:
                self.server.count(f"fault_{fault}")
            if answer is not None:
                self.server.count("completions")
                self._reply(*answer, cut=fault == "truncate")
            elif fault == "drop":
                self._hang_up()
            elif fault in _ERRORS:
                raise BadRequest(*_ERRORS[fault])
            else:
                self._send(200, embeddings_body(body, self.server.backbone.name), cut=fault == "truncate")
        except BadRequest as problem:
            if problem.status not in (429, 500):
                self.server.count("bad_requests")
            self._error(problem.status, problem.code, str(problem))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Report a request that cannot be served, such as one of an unknown method."""
        del explain
        self.close_connection = self.close_connection or code not in (404, 405)
        kind = {404: "not_found", 405: "method_not_allowed"}.get(code, "bad_request")
        self._error(code, kind, message or "")

    def _error(self, status: int, code: str, message: str) -> None:
        self._send(status, error_body(status, code, message))

    def _path(self) -> str:
        return self.path.split("?", 1)[0].rstrip("/") or "/"

    def _answer(self, body: bytes, number: int, fault: str) -> tuple[ChatRequest, Mapping[str, Any]]:
        request = read_request(body, self.server.backbone.name)
        completion = self.server.backbone.complete(request.messages, role="", session="", schema=request.offer)
        answer = completion_body(completion, request, number=number, created=int(time.time()))
        if fault in {"empty", "no_code"}:
            for choice in answer["choices"]:
                content = choice["message"]["content"] or ""
                kept = content.partition("\n\n```python\n")[0] if fault == "no_code" else ""
                choice["message"] = {"role": "assistant", "content": kept}
        return request, answer

    def _reply(self, request: ChatRequest, answer: Mapping[str, Any], *, cut: bool) -> None:
        if request.stream:
            self._stream(list(stream_events(answer, include_usage=request.include_usage)), cut=cut)
        else:
            self._send(200, answer, cut=cut)

    def _read_body(self) -> bytes:
        """The request's body; raises ``BadRequest`` for a length that is absent, wrong or too large."""
        keeps_open, self.close_connection = self.close_connection, True  # the start of the next request is unknown
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) != 1 or not lengths[0].strip().isdecimal() or "Transfer-Encoding" in self.headers:
            status = 400 if lengths else 411
            raise BadRequest(status, "bad_length", "Send the body with one Content-Length, a whole number.")
        length = int(lengths[0][:_LONGEST_LENGTH])
        if length > LARGEST_BODY:
            raise BadRequest(413, "too_large", f"The body is larger than {LARGEST_BODY} bytes.")
        body = self.rfile.read(length)
        if len(body) < length:
            raise BadRequest(400, "short_body", f"The body ended {length - len(body)} bytes too early.")
        self.close_connection = keeps_open
        return body

    def _send(self, status: int, content: Mapping[str, Any], *, cut: bool = False) -> None:
        payload = json.dumps(content).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(payload))}
        if status == 429:
            headers["Retry-After"] = _RETRY_AFTER_S
        if self.close_connection:
            headers["Connection"] = "close"
        self._write(status, headers, [payload[: len(payload) // 2] if cut else payload], cut=cut)

    def _stream(self, events: list[bytes], *, cut: bool) -> None:
        """Send server-sent events, each as a chunk of HTTP/1.1, so that the connection can be used again."""
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Transfer-Encoding": "chunked"}
        sent = events[: len(events) // 2] if cut else [*events, b""]
        self._write(200, headers, [b"%x\r\n%b\r\n" % (len(event), event) for event in sent], cut=cut)

    def _write(self, status: int, headers: Mapping[str, str], pieces: Sequence[bytes], *, cut: bool) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)
        if cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)


class ReaderServer(ThreadingHTTPServer):
    """One backbone behind HTTP/1.1 with keep-alive, a thread a connection. Port 0 picks a free port."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(
        self,
        *,
        host: str,
        port: int,
        latency_s: float = 0.0,
        faults: Faults | None = None,
        attention: int | None = None,
    ):
        self.backbone = EmbeddedBackbone(attention=attention)
        self.latency_s = latency_s
        self.faults = faults or Faults(chances={})
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        super().__init__((host, port), Handler)

    @property
    def address(self) -> str:
        """Base URL that a client is pointed at."""
        host, port = map(str, self.server_address[:2])
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"

    def count(self, event: str) -> int:
        """Count one event of a kind; return how many there were."""
        with self._lock:
            self._counts[event] += 1
            return self._counts[event]

    def stats(self) -> Mapping[str, int]:
        """Return the counts of requests, completions, faults and bad requests."""
        with self._lock:
            return {"requests": 0, "completions": 0, **self._counts}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnected. Other errors are reported as usual."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def _read_arguments(arguments: Sequence[str] | None) -> ReaderServer:
    parser = argparse.ArgumentParser(prog="ace-bench serve", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, required=True, help="port to listen on; 0 picks a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="time every reply takes at least (default: none)")
    parser.add_argument("--faults", default="", help='chances of faults, such as "http_500=0.1,drop=0.05"')
    parser.add_argument("--fault-seed", type=int, default=0, help="seed of the faults (default: %(default)s)")
    help_text = "a careful and forgetful agent, which recalls the look-ups of its newest N steps alone (default: off)"
    parser.add_argument("--attention", type=int, metavar="N", help=help_text)
    options = parser.parse_args(arguments)
    for name, value in (("--latency-ms", options.latency_ms), ("--attention", options.attention or 0)):
        if value < 0:
            parser.error(f"{name} must not be negative")
    try:
        faults = Faults(chances=parse_chances(options.faults), seed=options.fault_seed)
        where = {"host": options.host, "port": options.port, "attention": options.attention}
        return ReaderServer(**where, latency_s=options.latency_ms / 1000, faults=faults)
    except (OSError, OverflowError, ValueError) as error:
        parser.error(str(error))


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM (exit status 0) or Ctrl-C (130); the first line on standard output is the address."""
    server = _read_arguments(arguments)
    stopped_by: list[int] = []

    def stop(signum: int, frame: object) -> None:
        del frame
        stopped_by.append(signum)
        # shutdown() waits for serve_forever(), which runs in this thread.
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    sys.stdout.write(f"The embedded backbone listens at {server.address}\n")
    sys.stdout.flush()
    with server:
        server.serve_forever(poll_interval=0.1)
    if stopped_by[0] != signal.SIGINT:
        return 0
    sys.stderr.write("Interrupted; the server has stopped.\n")
    return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
