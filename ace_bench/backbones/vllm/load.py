"""Reads a server's page of metrics, in Prometheus's format: requests that run and wait, and the cache of prompts."""

from __future__ import annotations

import math
import re

from ace_bench.core.types import CacheCounters, ServerLoad

PATH, TIMEOUT_S = "/metrics", 5.0
_GAUGES = (
    ("vllm:num_requests_running", "vllm:num_requests_waiting"),
    ("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    ("llamacpp:requests_processing", "llamacpp:requests_deferred"),
)
"""Of each server: requests that run, and requests that wait."""
_FAMILIES = ("vllm:prefix_cache", "vllm:gpu_prefix_cache")
"""New name first: some versions report the same counts under both names."""
_READ, _REUSED = "llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"
"""llama.cpp counts the tokens of prompts that it read apart from those that it had in its cache."""


def read_load(page: str) -> ServerLoad | None:
    """Sum the gauges over the engines of a server; ``None`` if the page has no such gauges."""
    for names in _GAUGES:
        running, waiting = (_sum_samples(name, page) for name in names)
        if running is not None and waiting is not None:
            return ServerLoad(running=running, waiting=waiting)
    return None


def _sum_samples(name: str, page: str) -> int | None:
    # The page is large and read often. Reading all of it, as prometheus-client does, takes 100 times as long.
    matches = re.findall(rf"^{name}(?:\{{.*\}})? +(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", page, re.MULTILINE | re.IGNORECASE)
    values = [value for value in map(float, matches) if math.isfinite(value)]
    return round(sum(values)) if values else None


def read_counters(page: str) -> CacheCounters | None:
    """Sum queries and hits (tokens) over the engines of a server; ``None`` if the page has no such counters.

    Names come with or without ``_total`` and, in older versions, with ``gpu_`` before ``prefix_cache``. A server that
    reports only a hit rate or only one of the two counts gives ``None``.
    """
    for family in _FAMILIES:
        queries, hits = (_sum_samples(f"{family}_{name}(?:_total)?", page) for name in ("queries", "hits"))
        if queries is not None and hits is not None:
            return CacheCounters(queries=queries, hits=hits)
    read, reused = _sum_samples(_READ, page), _sum_samples(_REUSED, page)
    return None if read is None or reused is None else CacheCounters(queries=read + reused, hits=reused)
