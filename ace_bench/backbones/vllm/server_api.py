"""Requests to a server beside completions: health pages, and the cache counters of vLLM."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

from ace_bench.backbones.vllm.counters import read_counters
from ace_bench.core.types import CacheCounters

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
