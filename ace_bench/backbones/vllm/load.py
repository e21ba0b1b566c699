"""Reads how many requests a server runs and how many wait in it, from its page of metrics in Prometheus's format."""

from __future__ import annotations

import re

from ace_bench.core.types import ServerLoad

PATH, TIMEOUT_S = "/metrics", 5.0
_GAUGES = (
    ("vllm:num_requests_running", "vllm:num_requests_waiting"),
    ("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    ("llamacpp:requests_processing", "llamacpp:requests_deferred"),
)
"""Of each server: requests that run, and requests that wait."""


def read_load(page: str) -> ServerLoad | None:
    """Sum the gauges over the engines of a server; ``None`` if the page has no such gauges."""
    for names in _GAUGES:
        running, waiting = (_sum_gauge(name, page) for name in names)
        if running is not None and waiting is not None:
            return ServerLoad(running=running, waiting=waiting)
    return None


def _sum_gauge(name: str, page: str) -> int | None:
    # The page is large and read often: a parser of all of it takes 100 times as long.
    found = re.findall(rf"^{name}(?:\{{.*\}})? +(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", page, re.MULTILINE | re.IGNORECASE)
    return round(sum(map(float, found))) if found else None
