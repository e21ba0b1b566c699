"""Stand-ins for the benchmark: a model that costs nothing, also as a server, and a task whose golds are shuffled.

``python -m benchmarks.scripted DELAY`` serves the model on a free port and prints its address.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ace_bench.core.task import Session, Task
from ace_bench.core.types import NO_USAGE, Completion, Message, Record, Sample
from benchmarks.measuring import serving

_WORDS = tuple("".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=7)) for number in range(3000))
_CITED = ("sai-00007", "sai-00011", "sai-00013")
_SECTION = "strategies_and_insights"


class InstantModel:
    """Replies to every role at once, always wrongly, so that each step takes all reflection rounds."""

    name = "instant"
    simulated = True

    def __init__(self) -> None:
        self.identity: Record = {"name": self.name}
        self.seconds = 0.0
        self.calls = 0

    def count(self, text: str) -> int:
        """Estimate tokens."""
        return len(text) // 4

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Return the role's canned reply; the time spent here is the model's, not the harness's."""
        del messages, session, schema
        started = time.perf_counter()
        text = json.dumps(self.reply(role))
        self.seconds += time.perf_counter() - started
        return Completion(text=text, usage=NO_USAGE, seconds=0.0)

    def reply(self, role: str) -> Mapping[str, Any]:
        """Return the next reply of a role."""
        self.calls += 1
        if role == "reflector":
            texts = {"error_identification": "e", "root_cause_analysis": "c", "correct_approach": "a"}
            tags = [{"id": bullet, "tag": "helpful"} for bullet in _CITED]
            return {"reasoning": "r" * 400, **texts, "key_insight": f"insight {self.calls}", "bullet_tags": tags}
        if role == "curator":
            content = " ".join(random.Random(self.calls).choices(_WORDS, k=25))
            return {"reasoning": "r" * 200, "operations": [{"type": "ADD", "section": _SECTION, "content": content}]}
        return {"reasoning": "r" * 400, "bullet_ids": _CITED, "final_answer": f"wrong {self.calls}"}


def large_playbook(size: int) -> Record:
    """Return the dump of a playbook with ``size`` distinct bullets of about 200 characters."""
    rng = random.Random(0)
    shared = {"section": _SECTION, "created": -1, "changed": -1, "tokens": 55}
    bullets = [
        {"id": f"sai-{number:05d}", "content": " ".join(rng.choices(_WORDS, k=25)), **shared}
        for number in range(1, size + 1)
    ]
    return {"kind": "playbook", "sections": [_SECTION, "others"], "next_number": size + 1, "bullets": bullets}


class ShuffledGolds:
    """A task whose training feedback shows the gold of another training sample; evaluation is correct."""

    def __init__(self, task: Task):
        self._task = task
        samples = task.samples("train")
        shuffled = [*samples]
        random.Random(0).shuffle(shuffled)
        self._other = {sample.id: partner for sample, partner in zip(samples, shuffled, strict=True)}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    @contextmanager
    def open(self, sample: Sample) -> Iterator[Session]:
        """Grade against the other sample's gold."""
        with self._task.open(self._other.get(sample.id, sample)) as session:
            yield session


def instant_server(delay_s: float = 0.0) -> AbstractContextManager[str]:
    """Yield the URL of a server that replies like ``InstantModel`` and reports the bytes of a request as its tokens."""
    return serving(sys.executable, "-m", __name__, str(delay_s))


async def _serve(delay_s: float) -> None:
    model = InstantModel()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.split(b":", 1) for line in request.lower().split(b"\r\n")[1:-2])
                body = await reader.readexactly(int(fields.get(b"content-length", 0)))
                head = body[:20_000]
                role = "curator" if b"operations" in head else "reflector" if b"bullet_tags" in head else "generator"
                message = {"role": "assistant", "content": json.dumps(model.reply(role))}
                response = {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 0,
                    "model": model.name,
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                    "usage": {"prompt_tokens": len(body), "completion_tokens": 1, "total_tokens": len(body) + 1},
                }
                payload = json.dumps(response).encode()
                await asyncio.sleep(delay_s)
                headers = f"Content-Type: application/json\r\nContent-Length: {len(payload)}"
                writer.write(f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n".encode() + payload)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=256, limit=1 << 26)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
