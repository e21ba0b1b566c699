"""Requests to a server beside completions: health pages, and the cache counters of vLLM."""

from __future__ import annotations

import http.client
import math
import urllib.error
import urllib.request
from collections import defaultdict

from ace_bench.core.types import CacheCounters

_FAMILIES = ("vllm:prefix_cache", "vllm:gpu_prefix_cache")
"""New name first: some versions report the same counts under both names."""


def read_counters(page: str) -> CacheCounters | None:
    """Sum queries and hits (tokens) over the engines of a server; ``None`` where the page has no such counters.

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


_TIMEOUT_S = 5.0


def answers(url: str) -> bool:
    """Whether a page of a server can be read."""
    return _get(url) is not None


def cache_counters(root: str) -> CacheCounters | None:
    """Read the prefix-cache counters, ``None`` where the server has none."""
    page = _get(f"{root}/metrics")
    return None if page is None else read_counters(page.decode(errors="replace"))


def _get(url: str) -> bytes | None:
    try:
        with _open(urllib.request.Request(url)) as reply:
            return bytes(reply.read())
    except (OSError, urllib.error.URLError, http.client.HTTPException):
        return None


def _open(request: urllib.request.Request) -> http.client.HTTPResponse:
    # The environment's proxy cannot reach a server on this machine.
    local = request.host.split(":")[0] in ("127.0.0.1", "localhost")
    opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))
    reply: http.client.HTTPResponse = opener.open(request, timeout=_TIMEOUT_S)
    return reply
