"""Prefix-cache counters from a vLLM server's Prometheus page."""

from __future__ import annotations

import math
import re

from ace_bench.core.types import CacheCounters

_SAMPLE = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{.*\})?[ \t]+(?P<value>\S+)(?:[ \t]+-?\d+)?[ \t]*$", re.MULTILINE)
_FAMILIES = ("vllm:prefix_cache", "vllm:gpu_prefix_cache")
"""New name first: some versions report the same counts under both names."""


def read_counters(page: str) -> CacheCounters | None:
    """Sum queries and hits (tokens) over the engines of a server; ``None`` where the page has no such counters.

    Names come with or without ``_total`` and, in older versions, with ``gpu_`` before ``prefix_cache``. A server that
    reports only a hit rate or only one of the two counts gives ``None``.
    """
    totals = _totals(page)
    for family in _FAMILIES:
        for suffix in ("_total", ""):
            queries, hits = totals.get(f"{family}_queries{suffix}"), totals.get(f"{family}_hits{suffix}")
            if queries is not None and hits is not None:
                return CacheCounters(queries=round(queries), hits=round(hits))
    return None


def _totals(page: str) -> dict[str, float]:
    totals: dict[str, float] = {}
    for sample in _SAMPLE.finditer(page):
        name, value = sample["name"], _number(sample["value"])
        if value is not None and name.startswith(_FAMILIES):
            totals[name] = totals.get(name, 0.0) + value
    return totals


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
