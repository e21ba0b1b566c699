"""Calls over HTTP: time and CPU of a run's gateway and client compared with the ideal for a server's latency."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

from ace_bench.backbones.openai_compatible.backbone import OpenAICompatible
from ace_bench.backbones.openai_compatible.settings import CacheHints, Client, PriceCard, Rate, Retry, Sampling
from ace_bench.core.types import Message, Stage
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.store.call_log import CallLog
from ace_benchmarks.measuring import Figure, Setting
from ace_benchmarks.scripted import instant_server

CALLS, THREADS = 441, 64
_PROMPT = "Which of these? " + "An option of some length, among many. " * 250


def network(setting: Setting) -> list[Figure]:
    """441 calls over HTTP with 64 threads, through the run's gateway with each client and by a bare openai client"""
    del setting
    figures = []
    for delay_s in (0.2, 0.0):
        ideal = -(-CALLS // THREADS) * delay_s
        with instant_server(delay_s) as url:
            calls = {f"client={client}, through the gateway": _ours(url, client) for client in get_args(Client)}
            for name, call in {**calls, "bare openai client": _bare(url)}.items():
                wall, cpu = _time_calls(call)
                if ideal:
                    measured, aim = f"{wall:.2f} s = {wall / ideal:.2f} x ideal", "<= 1.10 x (through the gateway)"
                else:
                    measured, aim = f"{CALLS / wall:,.0f} calls/s, {1000 * cpu / CALLS:.2f} ms CPU a call", ""
                figures.append(Figure(name=f"{1000 * delay_s:.0f} ms latency, {name}", measured=measured, aim=aim))
    return figures


def _time_calls(call: Callable[[int], object]) -> tuple[float, float]:
    """Wall and CPU seconds, the best of three, because other work on the machine only adds time."""
    best = []
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(call, range(-THREADS, 0)))  # opens the connections
        for round_ in range(3):
            wall, cpu = time.perf_counter(), time.process_time()
            list(pool.map(call, range(round_ * CALLS, (round_ + 1) * CALLS)))
            best.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(best)


def _ours(url: str, client: Client) -> Callable[[int], object]:
    backbone = OpenAICompatible(
        base_url=url,
        model="m",
        sampling=Sampling(),
        retry=Retry(),
        rate=Rate(),
        cache=CacheHints(),
        prices=PriceCard(),
        connections=THREADS,
        client=client,
    )
    log = CallLog(Path(tempfile.mkdtemp()) / "calls.jsonl")
    gateway = CallGateway(calls=log, budget=Budget(), stop=Stop(), wall=lambda: 0.0)

    def call(number: int) -> object:
        caller = Caller(stage=Stage.EVALUATE, role="generator", session=f"sample {number}")
        return BoundLm(gateway=gateway, backbone=backbone, caller=caller)([Message(role="user", content=_PROMPT)])

    return call


def _bare(url: str) -> Callable[[int], object]:
    from openai import OpenAI

    client = OpenAI(base_url=url, api_key="none", max_retries=0)

    def call(number: int) -> object:
        del number
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": _PROMPT}])

    return call
