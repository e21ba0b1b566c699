"""Serve the embedded backbone over HTTP as an OpenAI-compatible server, for clients and tests.

    ace-bench serve --port 8000

Latency and faults can be injected to test clients.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from http.server import ThreadingHTTPServer
from typing import Any

from ace_rehearsal.reader.backbone import EmbeddedBackbone
from ace_rehearsal.reader.faults import Faults, parse_chances
from ace_rehearsal.reader.handler import Handler

_INTERRUPTED = 130


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
    """Serve until SIGTERM (exit status 0) or Ctrl-C (130); the first line on standard output is the address."""
    server, address = _arguments(arguments)
    stopped_by: list[int] = []

    def stop(signum: int, frame: object) -> None:
        del frame
        stopped_by.append(signum)
        # shutdown() waits for serve_forever(), which runs in this thread.
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    sys.stdout.write(f"The embedded backbone listens at {address}\n")
    sys.stdout.flush()
    with server:
        server.serve_forever(poll_interval=0.1)
    if stopped_by[0] != signal.SIGINT:
        return 0
    sys.stderr.write("Interrupted; the server has stopped.\n")
    return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
