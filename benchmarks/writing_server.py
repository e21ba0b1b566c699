"""A scripted server that writes each reply at a given speed, whatever its load, and answers 200 connections.

``python -m benchmarks.writing_server SECONDS [--replies FILE] [--runs N]`` serves on a free port and prints its
address. Every token of a reply takes ``SECONDS``. ``FILE`` holds a JSON object: the text and the number of tokens of
the reply, by ``digest_of_prompt``. A prompt that is not there gets a short reply. The server writes ``N`` replies at a
time, and others wait for their turn in order of arrival; without ``--runs`` none waits. ``/metrics`` says how many
requests run and wait, as vLLM does.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measuring import serving

_UNKNOWN = ("ok", 8)
_METRICS = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0"}} {running}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0"}} {waiting}
"""


def digest_of_prompt(contents: Iterable[str]) -> str:
    """Return the key of a reply: a digest of the contents of a prompt's messages."""
    return hashlib.blake2b("\n".join(contents).encode(), digest_size=8).hexdigest()


def writing_server(
    token_s: float, replies: Path | None = None, *, runs: int | None = None
) -> AbstractContextManager[str]:
    """Yield the URL of a server, a process of its own."""
    from_file = ["--replies", str(replies)] if replies else []
    return serving(sys.executable, "-m", __name__, str(token_s), *from_file, *(["--runs", str(runs)] if runs else []))


class _Server:
    """Writes the replies, and counts the requests that run and wait."""

    def __init__(self, token_s: float, replies: Mapping[str, tuple[str, int]], runs: int | None):
        self._token_s = token_s
        self._replies = replies
        self._turn = None if runs is None else asyncio.Semaphore(runs)
        self._running = self._waiting = 0

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                fields = dict(line.split(b":", 1) for line in head.split(b"\r\n")[1:-2])
                body = await reader.readexactly(int(fields.get(b"content-length", 0)))
                if head.startswith(b"get /metrics"):
                    payload = _METRICS.format(running=self._running, waiting=self._waiting).encode()
                else:
                    reply = await self._write(msgspec.json.decode(body)) if body else {"data": [{"id": "m"}]}
                    payload = msgspec.json.encode(reply)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(payload)
                    + payload
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _write(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        key = digest_of_prompt(message["content"] for message in body["messages"])
        text, tokens = self._replies.get(key, _UNKNOWN)
        if self._turn is not None:
            self._waiting += 1
            await self._turn.acquire()
            self._waiting -= 1
        self._running += 1
        try:
            await asyncio.sleep(self._token_s * tokens)
        finally:
            self._running -= 1
            if self._turn is not None:
                self._turn.release()
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": len(body["messages"]), "completion_tokens": tokens}
        return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


async def _serve(options: argparse.Namespace) -> None:
    replies = json.loads(options.replies.read_text()) if options.replies else {}
    state = _Server(options.token_s, replies, options.runs)
    server = await asyncio.start_server(state.converse, "127.0.0.1", 0, backlog=512, limit=1 << 26)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("token_s", type=float)
    parser.add_argument("--replies", type=Path)
    parser.add_argument("--runs", type=int)
    asyncio.run(_serve(parser.parse_args()))
