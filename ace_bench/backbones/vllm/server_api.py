"""Requests to a vLLM server other than completions: health, models, cache counters."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request

import msgspec

from ace_bench.backbones.vllm.counters import read_counters
from ace_bench.core.typed import decoder_of
from ace_bench.core.types import CacheCounters

_TIMEOUT_S = 5.0


class _Model(msgspec.Struct):
    id: str
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Model] = []


def answers(url: str) -> bool:
    """Whether a page of a server can be read."""
    return _get(url) is not None


def context_length(root: str, model: str, api_key_env: str | None) -> int | None:
    """Return the maximum tokens of a prompt plus its reply, ``None`` where the server does not report it."""
    page = _get(f"{root}/v1/models", key=os.environ.get(api_key_env, "") if api_key_env else "")
    try:
        models = decoder_of(_Models).decode(page or b"").data
    except msgspec.DecodeError:
        return None
    return next((listed.max_model_len for listed in models if listed.id == model), None)


def cache_counters(root: str) -> CacheCounters | None:
    """Read the prefix-cache counters, ``None`` where the server has none."""
    page = _get(f"{root}/metrics")
    return None if page is None else read_counters(page.decode(errors="replace"))


def _get(url: str, key: str = "") -> bytes | None:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with _open(request) as reply:
            return bytes(reply.read())
    except (OSError, urllib.error.URLError, http.client.HTTPException):
        return None


def _open(request: urllib.request.Request) -> http.client.HTTPResponse:
    # The environment's proxy cannot reach a server on this machine.
    local = request.host.split(":")[0] in ("127.0.0.1", "localhost")
    opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))
    reply: http.client.HTTPResponse = opener.open(request, timeout=_TIMEOUT_S)
    return reply
