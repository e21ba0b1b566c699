"""The viewer's server: a page, its data, events, and changes of playbooks. Only browsers on this machine can use it.

A change needs the token of the address that the server printed, and must come from its own page.
"""

from __future__ import annotations

import hmac
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from ace_bench.core.errors import AceBenchError, DataError, StoreError
from ace_bench.core.types import Record
from ace_bench.report.page.content import TABLES, VIEWER, Content, tables_policy, viewer_page, viewer_policy
from ace_bench.report.page.editing import LARGEST, Editing
from ace_bench.report.page.results import Results

HOST = "127.0.0.1"
_OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.ASCII)
"""All names that a browser of this machine uses. The port is free: a tunnel has its own, and a page of another site can
choose the port but not the name."""
_SIZE = re.compile(r"[0-9]{1,9}", re.ASCII)
_SEALED = "default-src 'none'; frame-ancestors 'none'"
"""The policy of everything but the page: nothing in it may run or load anything."""
_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TOKEN_BYTES = 24
_CHANGES = "/playbook"
_PAUSE_S = 1.0
_IDLE_S = 60.0


class ViewerServer(ThreadingHTTPServer):
    """Serves the runs of a folder at ``http://127.0.0.1:PORT``. Port 0 picks a free one. Raises ``OSError``.

    ``make_tables`` returns the page of tables. It is called again once runs have changed. ``editing`` changes
    playbooks. Without it everything is read-only.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, results: Results, port: int, *, make_tables: Callable[[], str], editing: Editing | None = None):
        self.results = results
        self._make_tables = make_tables
        self._tables = (-1, "")
        self.editing = editing
        self.token = secrets.token_urlsafe(_TOKEN_BYTES) if editing else ""
        self._lock = threading.Lock()
        self.content = Content(results, live=True)
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        """Where a browser finds it, read-only."""
        return f"http://{HOST}:{self.server_port}/"

    @property
    def editing_address(self) -> str:
        """Where a browser finds it and may change playbooks, if the server allows that."""
        return f"{self.address}?token={self.token}" if self.token else self.address

    def tables(self) -> str:
        """Return the page of tables."""
        with self._lock:
            version = self.results.version()
            if self._tables[0] != version:
                self._tables = version, self._make_tables()
            return self._tables[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that went away. Anything else is reported as usual."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ViewerServer
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        """Answer with the page, a part of its data, or events. No path of a request is a path on the disk."""
        if not self._is_own_host():
            return
        address = urlsplit(self.path)
        if address.path in ("/", f"/{VIEWER}"):
            self._page(viewer_page(), viewer_policy())
        elif address.path == f"/{TABLES}":
            try:
                self._page(self._with_token(self.server.tables(), address.query), tables_policy())
            except AceBenchError as error:
                self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        elif address.path == "/events":
            self._events()
        elif address.path == _CHANGES and self.server.editing is not None:
            self._answer(partial(self.server.editing.state, dict(parse_qsl(address.query)).get("run", "")))
        else:
            self._data(address.path.removeprefix("/data/"), dict(parse_qsl(address.query)))

    def do_POST(self) -> None:
        """Change a bullet of a playbook. The request names a run by its key and never a file."""
        self.close_connection = True  # what a refused request still sends is not read
        editing, token = self.server.editing, self.headers.get("X-Token", "")
        if not self._is_own_host():
            return
        if editing is None:
            self._refuse(HTTPStatus.FORBIDDEN, "This viewer is read-only.")
        elif self._only("Origin") != f"http://{self._only('Host')}":
            self._refuse(HTTPStatus.FORBIDDEN, "Only the viewer's own page may change a playbook.")
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "Open the viewer by the address that it printed.")
        elif self.path != _CHANGES or self._only("Content-Type") != "application/json":
            self._refuse(HTTPStatus.NOT_FOUND, "Not found.")
        elif (body := self._body()) is not None:
            self._answer(partial(editing.change, body))

    def _answer(self, make: Callable[[], Record]) -> None:
        try:
            answer = make()
        except AceBenchError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        else:
            self._send(HTTPStatus.OK, msgspec.json.encode(answer), "application/json")

    def _body(self) -> bytes | None:
        """Return the body of a request of known and small size, or ``None`` once it is refused."""
        size = self._only("Content-Length")
        if self.headers.get("Transfer-Encoding") or not _SIZE.fullmatch(size) or int(size) > LARGEST:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A change holds at most {LARGEST:,} bytes.")
            return None
        body = self.rfile.read(int(size))
        if len(body) < int(size):
            self._refuse(HTTPStatus.BAD_REQUEST, "The request is not whole.")
            return None
        return body

    def _only(self, name: str) -> str:
        """Return a header, or "" unless it is there exactly once."""
        values = self.headers.get_all(name, [])
        return values[0] if len(values) == 1 else ""

    def _is_own_host(self) -> bool:
        """Refuse a page of another site whose name was made to point here. It must not read the runs."""
        own = bool(_OWN_HOST.fullmatch(self._only("Host")))
        if not own:
            self._refuse(HTTPStatus.FORBIDDEN, "Open the viewer by the address that it printed.")
        return own

    def _with_token(self, tables: str, query: str) -> str:
        """Lead from the tables back to the viewer with the token, if the request had it.

        Text of a run is escaped, so that none holds such a link.
        """
        token = dict(parse_qsl(query)).get("token", "")
        if not self.server.token or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return tables
        return tables.replace(f'href="{VIEWER}', f'href="{VIEWER}?token={self.server.token}')

    def _page(self, markup: str, policy: str) -> None:
        self._send(HTTPStatus.OK, markup.encode(), "text/html; charset=utf-8", f"{policy}; frame-ancestors 'none'")

    def _data(self, name: str, query: Mapping[str, str]) -> None:
        try:
            answer = self.server.content.read(name, query)
        except (StoreError, DataError) as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
            return
        if answer is None:
            self._refuse(HTTPStatus.NOT_FOUND, "There is no such run any more." if "-" in name else "Not found.")
        else:
            self._send(HTTPStatus.OK, answer, "application/octet-stream")

    def _events(self) -> None:
        """Send ``runs`` when the list is out of date, and ``progress`` of unfinished runs, until the browser leaves."""
        self.close_connection = True
        self._begin(HTTPStatus.OK, "text/event-stream")
        self.end_headers()
        version, sent = self.server.results.version(), dict[str, Record]()
        while True:
            now, progress = self.server.results.version(), self.server.results.progress()
            if now != version:
                self._event("runs", now)
            changed = {key: record for key, record in progress.items() if sent.get(key) != record}
            self._event("progress", changed)  # an empty one finds out that the browser went away
            version, sent = now, dict(progress)
            time.sleep(_PAUSE_S)

    def _event(self, name: str, value: object) -> None:
        self.wfile.write(f"event: {name}\ndata: {msgspec.json.encode(value).decode()}\n\n".encode())
        self.wfile.flush()

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._send(status, reason.encode(), "text/plain; charset=utf-8")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, policy: str = _SEALED) -> None:
        self._begin(status, kind, policy)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _begin(self, status: HTTPStatus, kind: str, policy: str = _SEALED) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", policy)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
