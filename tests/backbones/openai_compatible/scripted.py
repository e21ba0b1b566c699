"""A real HTTP server that plays a script: each request gets the next reply, the last one for ever."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ace_bench.ace.ablations import RewriterReply
from ace_bench.ace.replies import CuratorReply, ReflectorReply
from ace_bench.agents.single_turn import GeneratorReply
from ace_bench.backbones.openai_compatible.backbone import OpenAICompatible
from ace_bench.backbones.openai_compatible.settings import CacheHints, PriceCard, Retry, Sampling
from ace_bench.core.types import Completion, Message
from tests.backbones.serving import running

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}
PROMPT = (Message(role="system", content="Be brief."), Message(role="user", content="Reply with JSON."))

ROLES = (GeneratorReply, ReflectorReply, CuratorReply, RewriterReply)


def nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those of its parts."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema.get("items", {})] if schema.get("type") == "array" else []
    for part in inner:
        yield from nodes(part)


@dataclass(frozen=True)
class Reply:
    """One reply: status, body (a value sent as JSON, or bytes) and headers.

    ``does``: it is sent, dropped or cut; or the body's bytes are all that is sent, and the connection stays (``raw``,
    in small ``pieces``), is closed (``last``), stays silent (``hang``), gets a byte now and then (``drip``), or is
    closed before the request is read (``refuse``).
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    does: str = "send"

    @property
    def payload(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def answer(text: Any = "fine", *, usage: Any = USAGE, ended: str = "stop", **message: Any) -> Reply:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": ended}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice]}
    return Reply(body={**body, "usage": usage} if usage is not None else body)


def error(status: int, message: str, **more: Any) -> Reply:
    """An error in OpenAI's form."""
    return Reply(status=status, body={"error": {"message": message, **more}})


DROP = Reply(does="drop")
CUT = Reply(body=answer().body, does="cut")


class Server(ThreadingHTTPServer):
    """Remembers what it was asked in ``seen``: path, headers (lower case) and body; counts connections and their ends.

    With a ``context`` it encrypts, at once or behind a tunnel, whose request is ``tunnelled``.
    """

    daemon_threads = True
    request_queue_size = 256

    beside: Mapping[str, Any] = {}
    """Bodies of replies to GET requests beside the API, by path; there is nothing at others."""

    def __init__(self, replies: Sequence[Reply], models: Sequence[Any], context: ssl.SSLContext | None = None):
        self.replies = list(replies)
        self.models = models
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.lock = threading.Lock()
        self.context = context
        self.accepted = self.ended = 0
        self.tunnelled: dict[str, str] = {}
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.accepted += 1
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients are cut off on purpose."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def next(self, path: str, headers: dict[str, str], body: Any) -> Reply:
        with self.lock:
            self.seen.append((path, headers, body))
            if path == "/v1/models":
                listed = [one if isinstance(one, dict) else {"id": one} for one in self.models]
                return Reply(body={"object": "list", "data": listed})
            if body is None and self.replies[0].does != "refuse":
                found = self.beside.get(path)
                return Reply(body=found) if found is not None else error(404, "Not Found")
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def asked(self) -> list[Any]:
        """Bodies of all chat requests."""
        return [body for path, _, body in self.seen if path == "/v1/chat/completions"]


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        if self.server.context is not None and self.connection.recv(1, socket.MSG_PEEK) != b"C":
            self.encrypt()

    def encrypt(self) -> None:
        self.request = self.server.context.wrap_socket(self.connection, server_side=True)
        super().setup()

    def finish(self) -> None:
        super().finish()
        with self.server.lock:
            self.server.ended += 1
        self.request.close()  # encryption has put another in the place of the one that the server closes

    def do_CONNECT(self) -> None:
        self.server.tunnelled = {"path": self.path, **{name.lower(): value for name, value in self.headers.items()}}
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.encrypt()
        self.close_connection = False

    def do_GET(self) -> None:
        self._reply(None)

    def do_POST(self) -> None:
        refuses = self.server.replies[0].does == "refuse"
        self._reply(None if refuses else json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _reply(self, body: Any) -> None:
        reply = self.server.next(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        if reply.body == "ECHO":
            echoed = {"error": {"message": f"cannot do: {dict(self.headers.items())}"}}
            reply = Reply(status=reply.status, body=echoed)
        payload = reply.payload
        if reply.does in ("send", "cut"):
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(payload)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            payload = payload[: len(payload) // 2] if reply.does == "cut" else payload
        if reply.does == "pieces":
            for start in range(0, len(payload), 7):
                self.wfile.write(payload[start : start + 7])
                time.sleep(0.002)
        elif reply.does != "drop":
            self.wfile.write(payload)
        while reply.does == "drip":
            self.wfile.write(b" ")
            time.sleep(0.02)
        if reply.does == "hang":
            self.rfile.read(1)
        if reply.does not in ("send", "raw", "pieces"):
            self.close_connection = True
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def serving(
    *replies: Reply, models: Sequence[Any] = ("tiny", "large"), context: Any = None, beside: Mapping[str, Any] = {}
) -> Iterator[Server]:
    with running(Server(replies or (answer(),), models, context)) as server:
        server.beside = beside
        yield server


SETTINGS: dict[str, Any] = {
    "model": "tiny",
    "sampling": Sampling(),
    "retry": Retry(times=3, first_pause=0.001, longest_pause=0.002),
    "cache": CacheHints(),
    "prices": PriceCard(),
    "timeout": 10.0,
}


def client(url: str, **settings: Any) -> OpenAICompatible:
    """A client that needs no key and waits hardly at all between attempts."""
    return OpenAICompatible(base_url=url, **{**SETTINGS, **settings})


def complete(url: str, *, schema: Any = None, session: str = "s", **settings: Any) -> Completion:
    return client(url, **settings).complete(PROMPT, role="generator", session=session, schema=schema)
