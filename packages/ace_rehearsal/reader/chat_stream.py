"""A reply of the chat-completions protocol as the chunks of a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ace_bench.core.types import Record

_WORD = re.compile(r"\s*\S+\s*|\s+")
DONE = b"data: [DONE]\n\n"


def events(answer: Record, *, include_usage: bool) -> Iterator[bytes]:
    """Yield the server-sent events of a whole reply: role, words or calls, finish reason, usage if asked for, end."""
    shared = {key: answer[key] for key in ("id", "created", "model", "simulated")}
    shared |= {"object": "chat.completion.chunk", **({"usage": None} if include_usage else {})}
    for choice in answer["choices"]:
        for delta in _deltas(choice["message"]):
            yield _event({**shared, "choices": [_choice(choice["index"], delta, None)]})
        yield _event({**shared, "choices": [_choice(choice["index"], {}, choice["finish_reason"])]})
    if include_usage:
        yield _event({**shared, "choices": [], "usage": answer["usage"]})
    yield DONE


def _choice(index: int, delta: Record, reason: str | None) -> Record:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}


def _deltas(message: Record) -> Iterator[Record]:
    content = message["content"]
    yield {"role": "assistant", "content": None if content is None else ""}
    for word in _WORD.findall(content or ""):
        yield {"content": word}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        yield {"tool_calls": [{"index": index, **call, "function": {"name": function["name"], "arguments": ""}}]}
        for piece in _WORD.findall(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _event(chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
