"""Serve the embedded backbone over HTTP as an OpenAI-compatible server, for clients and tests.

    ace-bench serve --port 8000

Latency and faults can be injected to test clients.
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

from ace_rehearsal.reader.backbone import EmbeddedBackbone
from ace_rehearsal.reader.bad_request import BadRequest
from ace_rehearsal.reader.chat import completion_body, error_body, models_body, read_request
from ace_rehearsal.reader.embeddings import embeddings_body
from ace_rehearsal.reader.faults import Faults, parse_chances

_RETRY_AFTER_S = "0.05"
_IDLE_S = 60.0
LARGEST_BODY, _LONGEST_LENGTH = 64 * 1024 * 1024, 20


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
        super().__init__((host, port), _Handler)

    @property
    def address(self) -> str:
        """Base URL that a client is pointed at."""
        host, port = self.server_address[:2]
        shown = host.decode() if isinstance(host, bytes) else str(host)
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/v1"

    def count(self, what: str) -> int:
        """Count one event of a kind; return how many there were."""
        with self._lock:
            self._counts[what] += 1
            return self._counts[what]

    def stats(self) -> Mapping[str, int]:
        """Events counted so far: requests, completions, errors and faults by kind."""
        with self._lock:
            return {"requests": 0, "completions": 0, **self._counts}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that went away; anything else is reported as usual."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ReaderServer
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    # A reply is written in one piece; without this it could wait for the client's delayed acknowledgement.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: /stats counts requests."""

    def do_GET(self) -> None:
        path = self.path.split("?", 1)[0].rstrip("/")
        if path == "/health":
            self._send(200, {"status": "ok"})
        elif path == "/stats":
            self._send(200, self.server.stats())
        elif path == "/v1/models":
            self._send(200, models_body(self.server.backbone.name))
        else:
            self._error(404, "not_found", f"There is nothing at {path or '/'}.")

    def do_POST(self) -> None:
        try:
            body = self._body()
            path = self.path.split("?", 1)[0].rstrip("/")
            if path not in ("/v1/chat/completions", "/v1/embeddings"):
                raise BadRequest(404, "not_found", f"There is nothing at {self.path}.")
            number = self.server.count("requests")
            time.sleep(self.server.latency_s)
            fault = self.server.faults.draw()
            if fault is not None:
                self.server.count(f"fault_{fault}")
            if fault in {"drop", "http_500", "http_429"}:
                self._fail(fault)
            elif path == "/v1/embeddings":
                self._send(200, embeddings_body(body, self.server.backbone.name), cut=fault == "truncate")
            else:
                self._complete(body, number, fault)
        except BadRequest as problem:
            self.server.count("bad_requests")
            self._error(problem.status, problem.code, str(problem))

    def _complete(self, body: bytes, number: int, fault: str | None) -> None:
        messages, offered = read_request(body, self.server.backbone.name)
        completion = self.server.backbone.complete(messages, role="", session="", schema=offered)
        created, tools = int(time.time()), offered is not None
        answer = dict(completion_body(completion, number=number, created=created, tools=tools))
        if fault in {"empty", "no_code"}:
            said = answer["choices"][0]["message"]["content"] or ""
            kept = said.partition("\n\n```python\n")[0] if fault == "no_code" else ""
            answer["choices"][0]["message"] = {"role": "assistant", "content": kept}
        self.server.count("completions")
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

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)


def _arguments(arguments: Sequence[str] | None) -> tuple[ReaderServer, str]:
    parser = argparse.ArgumentParser(prog="ace-bench serve", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, required=True, help="port to listen on; 0 picks a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="time every reply waits (default: none)")
    parser.add_argument("--faults", default="", help='chances of faults, such as "http_500=0.1,drop=0.05"')
    parser.add_argument("--fault-seed", type=int, default=0, help="seed of the faults (default: %(default)s)")
    said = "a careful and forgetful agent, which recalls the look-ups of its newest N steps alone (default: off)"
    parser.add_argument("--attention", type=int, metavar="N", help=said)
    options = parser.parse_args(arguments)
    if options.latency_ms < 0:
        parser.error("--latency-ms must not be negative")
    if options.attention is not None and options.attention < 0:
        parser.error("--attention must not be negative")
    try:
        faults = Faults(chances=parse_chances(options.faults), seed=options.fault_seed)
        server = ReaderServer(
            host=options.host,
            port=options.port,
            latency_s=options.latency_ms / 1000,
            faults=faults,
            attention=options.attention,
        )
    except (OSError, OverflowError, ValueError) as error:
        parser.error(str(error))
    return server, server.address


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the first line on standard output is the address."""
    server, address = _arguments(arguments)

    def stop(signum: int, frame: object) -> None:
        del signum, frame
        # shutdown() waits for serve_forever(), which runs in this thread.
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    sys.stdout.write(f"The embedded backbone listens at {address}\n")
    sys.stdout.flush()
    with server:
        server.serve_forever(poll_interval=0.1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
