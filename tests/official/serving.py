"""A chat-completions server whose reply is a function of the prompt."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ace_bench.backbones.openai_compatible.probing import PROMPT
from tests.backbones.serving import running

MODEL = "scripted"


@dataclass(frozen=True)
class Reply:
    """A text (``None`` is the null of a provider that answers nothing) and why it ended."""

    text: str | None
    ended: str = "stop"


class Refusal(Exception):
    """Is raised by a script in place of a reply: the server refuses the request, as a content filter does."""


CHECKS = ("Reply with this JSON object", PROMPT[0].content)
"""How the prompts of our checks before the first call begin."""

Script = Callable[[Sequence[dict[str, str]]], Reply]
"""From the messages of a request to its reply."""


def spoken(messages: Sequence[Mapping[str, str]]) -> str:
    """Return messages as one text, the roles before them; of a single one, its content."""
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)


def role_of(openings: Mapping[str, str], prompt: str) -> str:
    """Return the role whose prompts begin so; raises ``ValueError`` where none does."""
    for role, start in openings.items():
        if prompt.startswith(start):
            return role
    raise ValueError(f"a prompt that begins as none of the authors' prompts: {prompt[:200]!r}")


def draw_by(messages: Sequence[Mapping[str, str]], seed: str = "") -> random.Random:
    """Return numbers that depend on the messages and the seed alone."""
    return random.Random(hashlib.sha256(f"{seed}{spoken(messages)}".encode()).digest())


class Server(ThreadingHTTPServer):
    """Answers ``POST /v1/chat/completions`` by a script, and lists its one model."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, script: Script):
        self.script = script
        self.failures: list[Exception] = []
        self._settings: set[str] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def note(self, body: Mapping[str, Any]) -> None:
        self._settings.add(json.dumps({**body, "messages": None, "model": None}, sort_keys=True))

    def take_settings(self) -> set[str]:
        """Return what the requests since the last time held beside messages and model, without our check's."""
        taken, self._settings = self._settings, set()
        return taken


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": MODEL}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            probed = body["messages"][-1]["content"].startswith(CHECKS)
            if not probed:
                self.server.note(body)
            reply = Reply('{"ready": true}') if probed else self.server.script(body["messages"])
        except Refusal:
            self._send(400, {"error": {"code": "content_filter", "message": "the prompt was filtered"}})
            return
        except Exception as error:  # the test shows it; both sides would only see a server that fails
            self.server.failures.append(error)
            self._send(400, {"error": {"message": f"the script failed: {error!r}"}})
            return
        message = {"role": "assistant", "content": reply.text}
        choice = {"index": 0, "message": message, "finish_reason": reply.ended}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        about = {"id": "1", "object": "chat.completion", "created": 1, "model": MODEL}
        self._send(200, {**about, "choices": [choice], "usage": usage})

    def _send(self, status: int, body: Any) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


@contextmanager
def serving(script: Script) -> Iterator[Server]:
    """Serve a script; raises its first failure at the end."""
    server = Server(script)
    try:
        with running(server):
            yield server
    finally:
        if server.failures:
            raise server.failures[0]
