"""Tokens per second that a server writes for the harness and for a bare client: the harness must not slow it down.

Both send the same bodies, those of a recorded run, in the same order, so many at a time. The harness sends them as a
run does, through the gateway with its call log and journal; the bare client is asyncio over sockets, and reads and
decodes every reply. They take turns, because a noisy machine slows whoever is measured: a round compares two passes
that follow each other.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from ace_bench.backbones.openai_compatible.backbone import OpenAICompatible
from ace_bench.backbones.openai_compatible.endpoint import Endpoint
from ace_bench.backbones.openai_compatible.requests import Dialect, Question, RequestBuilder
from ace_bench.backbones.openai_compatible.settings import (
    Address,
    CacheHints,
    ChatSettings,
    PriceCard,
    Retry,
    Sampling,
)
from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Stage
from ace_bench.runners.call_slots import Slots
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.store.call_log import CallLog
from ace_bench.store.calls import CallRecord, read_calls
from ace_bench.store.journal import Journal
from benchmarks.measuring import Figure, Setting
from benchmarks.network import rollout_of
from benchmarks.writing_server import digest_of_prompt, writing_server

IN_FLIGHT = (1, 64, 200)
TOKEN_S = 0.005
"""Seconds a token: an H100 takes twice as long for each of 64 calls of a model of 1.5 billion parameters."""
_ROUNDS = 5
_EACH = 8
"""Requests in a pass, for each call in flight; a pass also holds at least ``_FEWEST``."""
_FEWEST, _LONGEST = 8, 300
"""Fewest requests in a pass, and most tokens of a reply whose request is sent: longer ones only take longer."""


@dataclass(frozen=True, kw_only=True)
class _Pass:
    """One way of sending all requests: generated tokens, and seconds."""

    tokens: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


def throughput(setting: Setting) -> list[Figure]:
    """tokens per second through the harness and by a bare client, to one server, in turns"""
    calls = _recorded(setting)
    with _server(setting, calls) as url:
        model = _served_model(url)
        return [_compare(setting, url, model, calls, in_flight) for in_flight in setting.slots or IN_FLIGHT]


def _compare(setting: Setting, url: str, model: str, calls: Sequence[CallRecord], in_flight: int) -> Figure:
    todo = list(islice(cycle(calls), max(_EACH * in_flight, _FEWEST)))
    harness, bare = _Harness(url, model, setting.scratch / str(in_flight)), _Bare(url, model, todo)
    ratios, rates = [], list[tuple[float, float]]()
    with closing(harness):
        harness.send(todo, in_flight), bare.send(in_flight)  # fills the server's cache of prompts
        for round_ in range(_ROUNDS):
            setting.say(f"throughput: {in_flight} in flight, round {round_ + 1} of {_ROUNDS}")
            if round_ % 2:
                second, first = bare.send(in_flight), harness.send(todo, in_flight)
            else:
                first, second = harness.send(todo, in_flight), bare.send(in_flight)
            ratios.append(first.rate / second.rate)
            rates.append((first.rate, second.rate))
    harness_rate, bare_rate = (statistics.median(way) for way in zip(*rates, strict=True))
    measured = (
        f"median {statistics.median(ratios):.3f}, least {min(ratios):.3f} of {harness_rate:,.0f} / {bare_rate:,.0f}"
    )
    return Figure(f"{in_flight} in flight: harness / bare client, tokens per second", measured, ">= 0.95")


def _recorded(setting: Setting) -> list[CallRecord]:
    """Return the calls of the run that ``--results`` names, or of a small one; raises ``ConfigError``."""
    folder = setting.recorded or setting.run(
        "task=finer", setting.source("finer"), "mode.epochs=1", "mode.before=false", "limit={train: 20, test: 20}"
    )
    records = [
        call
        for call in read_calls(folder)
        if call.request is not None and 0 < (call.completion.usage.completion or 0) <= _LONGEST
    ]
    if not records:
        raise ConfigError(f"{folder} holds no calls with reported tokens; --results names the folder of one run")
    return records


@contextmanager
def _server(setting: Setting, calls: Sequence[CallRecord]) -> Iterator[str]:
    """Yield the address of the server: the one that ``--url`` names, or one that writes what was recorded."""
    if setting.url is not None:
        yield setting.url
        return
    replies = {
        digest_of_prompt(message.content for message in call.request.messages): (
            call.completion.text,
            call.completion.usage.completion,
        )
        for call in calls
        if call.request is not None
    }
    setting.scratch.mkdir(parents=True, exist_ok=True)
    file = setting.scratch / "replies.json"
    file.write_text(json.dumps(replies))
    with writing_server(TOKEN_S, file) as url:
        yield url


def _served_model(url: str) -> str:
    listed = Endpoint(Address(base_url=url, model=None)).models()
    if not listed:
        raise ConfigError(f"{url} lists no models; --url is the address of a server, such as http://localhost:8000/v1")
    return listed[0].id


def _settings(url: str, model: str) -> dict[str, Any]:
    return {
        "base_url": url,
        "model": model,
        "sampling": Sampling(max_tokens=_LONGEST),
        "retry": Retry(),
        "cache": CacheHints(),
        "prices": PriceCard(),
    }


class _Harness:
    """Sends requests as a run does: through a gateway with a call log, and records a rollout for each."""

    def __init__(self, url: str, model: str, folder: Path):
        folder.mkdir(parents=True)
        self._backbone = OpenAICompatible(**_settings(url, model))
        self._log = CallLog(folder / "calls.jsonl")
        self._journal = Journal(folder / "journal.jsonl", self._log)
        self._gateway = CallGateway(
            calls=self._log, budget=Budget(), stop=Stop(), wall=self._journal.total_wall, slots=Slots(None)
        )
        self._made = 0

    def send(self, calls: Sequence[CallRecord], in_flight: int) -> _Pass:
        """Send all requests, so many at a time."""
        started, first = time.perf_counter(), self._made
        self._made += len(calls)
        with ThreadPoolExecutor(in_flight) as pool:
            tokens = sum(pool.map(self._call, calls, range(first, self._made)))
        return _Pass(tokens=tokens, seconds=time.perf_counter() - started)

    def close(self) -> None:
        """Close the files and the connections."""
        self._backbone.close()
        self._journal.close()
        self._log.close()

    def _call(self, call: CallRecord, number: int) -> int:
        assert call.request is not None
        caller = Caller(stage=Stage.EVALUATE, role=call.role, session=f"sample {number}")  # each is a new call
        ask = BoundLm(gateway=self._gateway, backbone=self._backbone, caller=caller)
        reply = ask(call.request.messages, call.request.schema)
        self._journal.add_rollout(rollout_of(caller, number, reply))
        return reply.usage.completion or 0


class _Bare:
    """Sends the same bodies, encoded beforehand, over as many sockets as calls are in flight."""

    def __init__(self, url: str, model: str, calls: Sequence[CallRecord]):
        builder = RequestBuilder(settings=ChatSettings(**_settings(url, model)), salt=None)
        dialect, address = Dialect(structured="json_schema"), urllib.parse.urlsplit(url)
        self._host, self._port = address.hostname or "", address.port or 80
        head = f"POST {address.path}/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\n"
        self._requests = []
        for call in calls:
            assert call.request is not None
            question = Question(messages=call.request.messages, session="", role=call.role, schema=call.request.schema)
            body, _ = builder.build(question, dialect)
            kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self._requests.append(f"{head}{kind}".encode() + body)

    def send(self, in_flight: int) -> _Pass:
        """Send all requests, so many at a time."""
        started = time.perf_counter()
        tokens = asyncio.run(self._send_all(in_flight))
        return _Pass(tokens=tokens, seconds=time.perf_counter() - started)

    async def _send_all(self, in_flight: int) -> int:
        waiting = iter(self._requests)
        return sum(await asyncio.gather(*(self._work(waiting) for _ in range(in_flight))))

    async def _work(self, waiting: Iterator[bytes]) -> int:
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 26)
        tokens = 0
        for request in waiting:
            writer.write(request)
            tokens += json.loads(await _read_reply(reader))["usage"]["completion_tokens"]
        writer.close()
        return tokens


async def _read_reply(reader: asyncio.StreamReader) -> bytes:
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    if b" 200 " not in status:
        raise ConfigError(f"the server refused a request: {status.decode(errors='replace')}")
    for line in lines:
        if line.startswith(b"content-length:"):
            return await reader.readexactly(int(line[15:]))
    parts = []  # in chunks
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)
