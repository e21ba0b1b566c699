"""Reads a server's page of metrics, in Prometheus's format: requests that run and wait, and the cache of prompts."""

from __future__ import annotations

import math
import re
from collections import defaultdict

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


def read_counters(page: str) -> CacheCounters | None:
    """Sum queries and hits (tokens) over the engines of a server; ``None`` if the page has no such counters.

    Names come with or without ``_total`` and, in older versions, with ``gpu_`` before ``prefix_cache``. A server that
    reports only a hit rate or only one of the two counts gives ``None``.
    """
    from prometheus_client.parser import text_string_to_metric_families

    totals: defaultdict[str, float] = defaultdict(float)
    try:
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                if sample.name.startswith(_FAMILIES) and math.isfinite(sample.value):
                    totals[sample.name.removesuffix("_total")] += sample.value
    except ValueError:
        return None  # it is no page of metrics
    for name in _FAMILIES:
        queries, hits = f"{name}_queries", f"{name}_hits"
        if {queries, hits} <= totals.keys():
            return CacheCounters(queries=round(totals[queries]), hits=round(totals[hits]))
    return None
