"""Calls over HTTP: time and CPU of a run's gateway and client compared with the ideal for a server's latency."""

from __future__ import annotations

import http.client
import json
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ace_bench.backbones.openai_compatible.backbone import OpenAICompatible
from ace_bench.backbones.openai_compatible.settings import CacheHints, PriceCard, Retry, Sampling
from ace_bench.core.types import Attempt, Completion, Grade, Message, Stage
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.store.call_log import CallLog
from ace_bench.store.journal import Journal, RolloutRecord
from benchmarks.measuring import Figure, Setting
from benchmarks.scripted import instant_server

CALLS, THREADS, IN_FLIGHT = 441, 64, (1, 8, 64, 200)
_DELAY_S = 0.02
"""The latency where CPU time is measured: the CPUs idle now and then, so that the calls asked for are in flight."""
_PROMPT = "Which of these? " + "An option of some length, among many. " * 250


def network(setting: Setting) -> list[Figure]:
    """calls over HTTP through a run's gateway, with its journal and a budget, and by bare clients: time and CPU"""
    del setting
    figures = []
    with instant_server(0.2) as url:
        ideal = -(-CALLS // THREADS) * 0.2
        for name, call in {"ours": _ours(url), "bare openai": _bare_openai(url)}.items():
            wall, _ = _time_calls(call, THREADS)
            title = f"{CALLS} calls, 200 ms latency, {THREADS} in flight, {name}"
            figures.append(Figure(title, f"{wall / ideal:.2f} x ideal", "ours <= 1.10 x"))
    for threads in IN_FLIGHT:
        with instant_server(0.0 if threads == 1 else _DELAY_S) as url:
            calls = {"ours": _ours(url), "bare openai": _bare_openai(url), "bare http.client": _bare_http(url)}
            parts = [f"{name} {1000 * _time_calls(call, threads)[1] / CALLS:.2f}" for name, call in calls.items()]
        figures.append(Figure(f"ms of CPU a call, {threads} in flight", ", ".join(parts), "ours <= 0.35"))
    return figures


def _time_calls(call: Callable[[int], object], threads: int) -> tuple[float, float]:
    """Wall and CPU seconds, the best of three, because other work on the machine only adds time."""
    best = []
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(call, range(-2 * threads, 0)))  # opens the connections
        for round_ in range(3):
            wall, cpu = time.perf_counter(), time.process_time()
            list(pool.map(call, range(round_ * CALLS, (round_ + 1) * CALLS)))
            best.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in best), min(cpu for _, cpu in best)


def _ours(url: str) -> Callable[[int], object]:
    backbone = OpenAICompatible(
        base_url=url,
        model="m",
        sampling=Sampling(),
        retry=Retry(),
        cache=CacheHints(),
        prices=PriceCard(input=1.0, cached_input=1.0, output=2.0),
    )
    folder = Path(tempfile.mkdtemp())
    log = CallLog(folder / "calls.jsonl")
    journal = Journal(folder / "journal.jsonl", log)
    gateway = CallGateway(calls=log, budget=Budget(tokens=10**12, usd=1e6), stop=Stop(), wall=lambda: 0.0)

    def call(number: int) -> object:
        caller = Caller(stage=Stage.EVALUATE, role="generator", session=f"sample {number}")
        reply = BoundLm(gateway=gateway, backbone=backbone, caller=caller)([Message(role="user", content=_PROMPT)])
        journal.add_rollout(rollout_of(caller, number, reply))
        return reply

    return call


def rollout_of(caller: Caller, number: int, reply: Completion) -> RolloutRecord:
    """Return the records that a run keeps of an evaluation with one call."""
    return RolloutRecord(
        key=caller.session,
        stage=caller.stage,
        split="test",
        sample=str(number),
        context="",
        trial=0,
        attempt=Attempt(answer="", reply=reply.text),
        grade=Grade(score=0.0, correct=False, observed="", gold=""),
        fault=None,
        calls=1,
        seconds=reply.seconds,
    )


def _bare_http(url: str) -> Callable[[int], object]:
    address, per_thread = urllib.parse.urlsplit(url), threading.local()
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": _PROMPT}]}).encode()

    def call(number: int) -> object:
        del number
        if not hasattr(per_thread, "connection"):
            per_thread.connection = http.client.HTTPConnection(address.hostname or "", address.port)
        per_thread.connection.request(
            "POST", f"{address.path}/chat/completions", body, {"content-type": "application/json"}
        )
        return json.loads(per_thread.connection.getresponse().read())

    return call


def _bare_openai(url: str) -> Callable[[int], object]:
    from openai import OpenAI

    client = OpenAI(base_url=url, api_key="none", max_retries=0)

    def call(number: int) -> object:
        del number
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": _PROMPT}])

    return call
