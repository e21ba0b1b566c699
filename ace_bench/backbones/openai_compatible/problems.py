"""What can go wrong with a request, and the consequence: a retry, a fault of one rollout, or the end of the run.

| what happens                                        | kind                          | what follows             |
|-----------------------------------------------------|-------------------------------|--------------------------|
| no connection: refused, unknown host                | unreachable                   | retry; at the cap, stop  |
| no answer in time, 408                              | timeout                       | retry; at the cap, fault |
| connection dropped; reply cut or unreadable         | dropped; unreadable_body      | retry; at the cap, fault |
| 429; 409                                            | rate_limited; conflict        | retry; at the cap, fault |
| 5xx                                                 | server_error                  | retry; at the cap, fault |
| 402, or 429 because nothing is left to spend        | quota_exhausted               | stop                     |
| 401, 403; unknown model or path                     | authentication; unknown_model | stop                     |
| 3xx                                                 | redirected                    | stop                     |
| prompt over the context length, any status          | context_length                | fault of the model       |
| input refused by a content filter                   | content_filter                | fault of the model       |
| any other 4xx; 500 with a refusal that names a field | bad_request                  | fault                    |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ace_bench.core.replies import without_surrogates

_QUOTA = r"insufficient_quota|exceeded your current quota|insufficient (balance|funds|credit)"
_FILTERED = r"content_filter|content_policy_violation|ResponsibleAIPolicyViolation|flagged|moderation"
_NO_MODEL = (
    r"model_not_found|\bmodel\b.{0,120}?(does not exist|not exist|not found)|(not a valid|invalid|unknown) model\b"
)
_TOO_LONG = (
    r"context_length_exceeded|context_window_exceeded|maximum context length|context (length|window|limit)"
    r"|max_model_len|max_new_tokens` must be|prompt is too long|prompt \(length \d+\) is longer"
    r"|decoder prompt.{0,40}longer than|input (is|length).{0,40}(too long|exceeds)|too many (input|prompt) tokens"
)
_REFUSED_SETTING = (
    r"(validation error|literal_error|value_error|extra_forbidden|input should be|unsupported|not supported|"
    r"raise_exception|templateerror).{0,400}?(response_format|json_schema|grammar|seed|temperature|top_p|max_tokens|"
    r"system|roles?\b|\btools?\b)"
)
"""Servers that answer 500 for a setting that they do not know say which one (llama.cpp's Python server)."""
_HINTS = (
    (r"max_completion_tokens", "set backbone.sampling.max_tokens_field=max_completion_tokens"),
    (r"max_tokens|max_new_tokens", "lower backbone.sampling.max_tokens, or change sampling.max_tokens_field"),
    (r"temperature", "set backbone.sampling.temperature=null"),
    (r"top_p", "set backbone.sampling.top_p=null"),
    (r"\bseed\b", "set backbone.sampling.seed=null"),
    (r"response_format|json_schema|structured|guided|grammar|schema", "set backbone.structured=auto or none"),
    (r"cache_salt", "set backbone.cache.salt=null"),
)


class Disposition(Enum):
    """How the retry loop and the run handle a problem."""

    RETRY = "retry"
    FAULT = "fault"
    STOP = "stop"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One failed attempt; ``retry_after`` is the pause in seconds that the server requests."""

    kind: str
    message: str
    disposition: Disposition = Disposition.RETRY
    owner: str = "backbone"
    retry_after: float | None = None


@dataclass(frozen=True)
class _Rule:
    """An error is of ``kind`` if its status is one of ``statuses`` and its text matches; an empty field matches all."""

    kind: str
    statuses: Collection[int] = ()
    words: str = ""

    def fits(self, status: int, text: str) -> bool:
        return (not self.statuses or status in self.statuses) and bool(re.search(self.words, text, re.I))


_RULES = (
    _Rule("quota_exhausted", (402,)),
    _Rule("quota_exhausted", (400, 403, 429), _QUOTA),
    _Rule("content_filter", (400, 403, 422), _FILTERED),
    _Rule("authentication", (401, 403)),
    _Rule("context_length", (400, 404, 413, 422, 500), _TOO_LONG),
    _Rule("redirected", range(300, 400)),
    _Rule("bad_request", range(500, 600), _REFUSED_SETTING),
    _Rule("rate_limited", (429,)),
    _Rule("timeout", (408,)),
    _Rule("conflict", (409,)),
    _Rule("server_error", range(500, 600)),
    _Rule("unknown_model", (404,)),
    _Rule("unknown_model", (), _NO_MODEL),
    _Rule("bad_request"),
)
"""The first matching rule decides."""

_DISPOSITIONS = {
    **dict.fromkeys(("quota_exhausted", "authentication", "unknown_model", "redirected"), Disposition.STOP),
    **dict.fromkeys(("rate_limited", "timeout", "conflict", "server_error"), Disposition.RETRY),
}


def unreadable_body(why: str) -> Problem:
    """Return the problem of a reply that is not a chat completion."""
    return Problem(kind="unreadable_body", message=f"the reply is not a chat completion: {why}")


def from_status(status: int, body: Any, *, retry_after: float | None = None) -> Problem:
    """Classify an error reply by its status and body."""
    words = _words(body)
    text = f"{_codes(body)} {words}"
    kind = next(rule.kind for rule in _RULES if rule.fits(status, text))
    return Problem(
        kind=kind,
        message=f"HTTP {status}: {words}{_hint(text) if kind == 'bad_request' else ''}",
        disposition=_DISPOSITIONS.get(kind, Disposition.FAULT),
        owner="model" if kind in ("content_filter", "context_length") else "backbone",
        retry_after=retry_after,
    )


def _hint(text: str) -> str:
    for pattern, fix in _HINTS:
        if re.search(pattern, text, re.I):
            return f" ({fix})"
    return ""


def _error(body: Any) -> Any:
    """Return the part of a body that holds the error; servers differ: nested, flat (vLLM), or FastAPI's detail."""
    if isinstance(body, Mapping):
        for key in ("error", "detail"):
            if body.get(key):
                return body[key]
    return body


def _words(body: Any) -> str:
    error = _error(body)
    if isinstance(error, Mapping):
        error = error.get("message") or dict(error)
    text = without_surrogates(" ".join(str(error).split())) if error else ""
    return f"{text[:600]}..." if len(text) > 600 else text or "the server gave no reason"


def _codes(body: Any) -> str:
    error = _error(body)
    parts: list[Any] = []
    while isinstance(error, Mapping):
        parts += [error.get(key) for key in ("code", "type", "param")]
        # Azure puts the content filter's verdict one level deeper.
        error = error.get("innererror")
    return " ".join(str(part) for part in parts if part)
