"""Stand-ins for the benchmark: a model that costs nothing, and a task whose golds are shuffled."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ace_bench.core.task import Session, Task
from ace_bench.core.types import NO_USAGE, Completion, Message, Record, Sample


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
        self.calls += 1
        text = json.dumps(self._reply(role))
        self.seconds += time.perf_counter() - started
        return Completion(text=text, usage=NO_USAGE, seconds=0.0)

    def _reply(self, role: str) -> Mapping[str, Any]:
        if role == "reflector":
            tags = [{"id": f"sai-{number:05d}", "tag": "helpful"} for number in (7, 11, 13)]
            return {"reasoning": "r" * 400, "key_insight": f"insight {self.calls}", "bullet_tags": tags}
        if role == "curator":
            words = " ".join(random.Random(self.calls).choices(_WORDS, k=25))
            operation = {"type": "ADD", "section": "strategies_and_insights", "content": words}
            return {"reasoning": "r" * 200, "operations": [operation]}
        cited = ["sai-00007", "sai-00011", "sai-00013"]
        return {"reasoning": "r" * 400, "bullet_ids": cited, "final_answer": f"wrong {self.calls}"}


_WORDS = tuple("".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=7)) for number in range(3000))


def large_playbook(size: int) -> Record:
    """Return the dump of a playbook with ``size`` distinct bullets of about 200 characters."""
    rng = random.Random(0)
    section = "strategies_and_insights"
    bullets = [
        {
            "id": f"sai-{number:05d}",
            "section": section,
            "content": " ".join(rng.choices(_WORDS, k=25)),
            "created": -1,
            "changed": -1,
            "tokens": 55,
        }
        for number in range(1, size + 1)
    ]
    return {"kind": "playbook", "sections": [section, "others"], "next_number": size + 1, "bullets": bullets}


class ShuffledGolds:
    """A task whose training feedback shows the gold of another training sample; evaluation is correct."""

    def __init__(self, task: Task, train: int):
        self._task = task
        ids = [sample.id for sample in task.samples("train")][:train]
        others = ids[:]
        random.Random(0).shuffle(others)
        by_id = {sample.id: sample for sample in task.samples("train")}
        self._other = {one: by_id[other] for one, other in zip(ids, others, strict=True)}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    @contextmanager
    def open(self, sample: Sample) -> Iterator[Session]:
        """Grade against the other sample's gold."""
        with self._task.open(self._other.get(sample.id, sample)) as session:
            yield session


_SERVER = """
import asyncio, json, random, sys
delay = float(sys.argv[1])
WORDS = ["".join(random.Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=7)) for n in range(3000)]
made = 0
def reply(body):
    head = body[:20000]
    if b'operations' in head:
        words = " ".join(random.Random(made).choices(WORDS, k=25))
        operation = {"type": "ADD", "section": "strategies_and_insights", "content": words}
        return {"reasoning": "r" * 200, "operations": [operation]}
    if b'bullet_tags' in head:
        tags = [{"id": f"sai-{n:05d}", "tag": "helpful"} for n in (7, 11, 13)]
        return {"reasoning": "r" * 400, "error_identification": "e", "root_cause_analysis": "c",
                "correct_approach": "a", "key_insight": f"insight {made}", "bullet_tags": tags}
    cited = ["sai-00007", "sai-00011", "sai-00013"]
    return {"reasoning": "r" * 400, "bullet_ids": cited, "final_answer": f"wrong {made}"}
async def serve(reader, writer):
    global made
    try:
        while True:
            request = await reader.readuntil(b"\\r\\n\\r\\n")
            fields = dict(line.split(b":", 1) for line in request.lower().split(b"\\r\\n")[1:-2])
            body = await reader.readexactly(int(fields.get(b"content-length", 0)))
            made += 1
            choice = {"index": 0, "finish_reason": "stop",
                      "message": {"role": "assistant", "content": json.dumps(reply(body))}}
            usage = {"prompt_tokens": len(body), "completion_tokens": 1, "total_tokens": len(body) + 1}
            said = json.dumps({"id": "x", "object": "chat.completion", "created": 0, "model": "instant",
                               "choices": [choice], "usage": usage}).encode()
            head = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n"
            await asyncio.sleep(delay)
            writer.write(head % len(said) + said)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256, limit=1 << 26)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@contextmanager
def instant_server(delay_s: float = 0.0) -> Iterator[str]:
    """Yield the URL of a server that replies like ``InstantModel`` and reports the bytes of a request as its tokens."""
    with subprocess.Popen([sys.executable, "-c", _SERVER, str(delay_s)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()
