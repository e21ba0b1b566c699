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
| prompt or reply blocked by a content filter         | content_filter                | fault of the model       |
| the server could not parse the model's reply        | unreadable_reply              | fault of the model       |
| any other 4xx; 5xx with a refusal of the request    | bad_request                   | fault                    |

A request that is refused as ``bad_request`` may be at fault itself, or the settings of the run. Whether the server
answers others tells them apart (``runners.outages``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ace_bench.backbones.openai_compatible.wordings import (
    says_filtered,
    says_no_json,
    says_over_rate,
    says_rate_limited,
    says_too_long,
)
from ace_bench.core.replies import without_surrogates

_QUOTA = r"insufficient_quota|exceeded your current quota|insufficient (balance|funds|credit)"
_NO_MODEL = (
    r"model_not_found|\bmodel\b.{0,120}?(does not exist|not exist|not found)|(not a valid|invalid|unknown) model\b"
)
_REFUSED_REQUEST = (
    r"(validation error|literal_error|value_error|extra_forbidden|input should be|unsupported|not supported|"
    r"raise_exception|templateerror).{0,400}?(response_format|json_schema|grammar|seed|temperature|top_p|max_tokens|"
    r"system|roles?\b|\btools?\b)"
    r"|(fail\w*|unable|could not|cannot|error).{0,30}(pars|compil|initiali[sz]|convert)\w*.{0,40}"
    r"(grammar|schema|sampler|regex)|roles must alternate|chat template"
    r"|badrequesterror|invalidrequesterror|invalidparameter|\binvalid_argument\b"
)
"""Some servers answer 5xx when they refuse a request, and say why (llama.cpp, gateways)."""
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
    """One failed attempt; ``retry_after`` is the pause in seconds that the server requests.

    ``text`` is what the model wrote, where the server refused to pass it on.
    """

    kind: str
    message: str
    disposition: Disposition = Disposition.RETRY
    owner: str = "backbone"
    retry_after: float | None = None
    text: str = ""


def _matches(pattern: str) -> Callable[[str, str], bool]:
    compiled = re.compile(pattern, re.I)
    return lambda codes, words: bool(compiled.search(f"{codes} {words}"))


@dataclass(frozen=True)
class _Rule:
    """An error is of ``kind`` if its status is one of ``statuses`` and it ``says`` so; an empty field matches all."""

    kind: str
    statuses: Collection[int] = ()
    says: Callable[[str, str], bool] | None = None

    def fits(self, status: int, codes: str, message: str) -> bool:
        return (not self.statuses or status in self.statuses) and (self.says is None or self.says(codes, message))


_REFUSALS = (400, 404, 405, 413, 416, 418, 422, 451)
_FAILURES = range(500, 600)
_MAY_REFUSE = (*_REFUSALS, 500, 502)
"""502 is also what an error without a status of its own counts as."""
_RULES = (
    _Rule("quota_exhausted", (402,)),
    _Rule("quota_exhausted", (400, 403, 429), _matches(_QUOTA)),
    _Rule("unreadable_reply", _MAY_REFUSE, says_no_json),
    _Rule("content_filter", (403, *_MAY_REFUSE), says_filtered),
    _Rule("authentication", (401, 403)),
    _Rule("context_length", _MAY_REFUSE, says_too_long),
    _Rule("bad_request", (413,), says_rate_limited),
    _Rule("context_length", (413,)),
    _Rule("redirected", range(300, 400)),
    _Rule("bad_request", _FAILURES, _matches(_REFUSED_REQUEST)),
    _Rule("bad_request", (429,), says_over_rate),
    _Rule("rate_limited", (429,)),
    _Rule("timeout", (408,)),
    _Rule("conflict", (409,)),
    _Rule("server_error", _FAILURES),
    _Rule("unknown_model", (404,)),
    _Rule("unknown_model", (), _matches(_NO_MODEL)),
    _Rule("bad_request"),
)
"""The first matching rule decides. With status 413 a rate limit means that one prompt is larger than the rate."""

_DISPOSITIONS = {
    **dict.fromkeys(("quota_exhausted", "authentication", "unknown_model", "redirected"), Disposition.STOP),
    **dict.fromkeys(("rate_limited", "timeout", "conflict", "server_error"), Disposition.RETRY),
}


UNREADABLE_BODY = "unreadable_body"


def unreadable_body(why: str) -> Problem:
    """Return the problem of a reply that is not a chat completion."""
    return Problem(kind=UNREADABLE_BODY, message=f"the reply is not a chat completion: {why}")


def from_status(status: int, body: Any, *, retry_after: float | None = None) -> Problem:
    """Classify an error reply by its status and body."""
    message, codes = _words(body), _codes(body)
    kind = next(rule.kind for rule in _RULES if rule.fits(status, codes, message))
    written = _field(body, "failed_generation")
    if written is not None and kind not in _DISPOSITIONS:
        kind = "unreadable_reply"
    return Problem(
        kind=kind,
        message=f"HTTP {status}: {message}{_hint(f'{codes} {message}') if kind == 'bad_request' else ''}",
        disposition=_DISPOSITIONS.get(kind, Disposition.FAULT),
        owner="model" if kind in ("content_filter", "context_length", "unreadable_reply") else "backbone",
        retry_after=retry_after,
        text="" if written is None else without_surrogates(str(written)),
    )


def _field(body: Any, name: str) -> Any:
    error = _error(body)
    return error.get(name) if isinstance(error, Mapping) else None


def _hint(text: str) -> str:
    for pattern, fix in _HINTS:
        if re.search(pattern, text, re.I):
            return f" ({fix})"
    return ""


def _error(body: Any) -> Any:
    """Return the part of a body that holds the error; servers differ: nested, flat (vLLM), or FastAPI's detail."""
    if isinstance(body, list) and len(body) == 1:  # Gemini's
        (body,) = body
    if isinstance(body, Mapping):
        for key in ("error", "detail"):
            if body.get(key):
                return body[key]
    return body


def _words(body: Any) -> str:
    error = _error(body)
    if isinstance(error, Mapping):
        metadata = error.get("metadata")
        provider = metadata.get("raw") if isinstance(metadata, Mapping) else None  # OpenRouter's provider
        error = " ".join(str(part) for part in (error.get("message"), provider) if part) or dict(error)
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
