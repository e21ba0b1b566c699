"""The OpenAI protocol as replies: whole or as the chunks of a stream."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from ace_bench.backbones.embedded.server.requests import ANY_OBJECT, ChatRequest, EmbeddingsRequest, read_body
from ace_bench.backbones.embedded.server.schema_values import build, obey
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.replies import ToolCall, ToolTurn, read_turn
from ace_bench.core.types import Completion, Record
from ace_bench.playbook.embeddings import HashingEmbedder

_WORD = re.compile(r"\s*\S+\s*|\s+")
_EMBEDDER = HashingEmbedder()


def completion_body(completion: Completion, request: ChatRequest, *, number: int, created: int) -> Record:
    """Build the reply to a request, usage and cached tokens included; raises ``BadRequest`` for an impossible schema.

    The choices are all the same, because the reader has one answer.
    """
    content, written = completion.text, completion.text
    calls: tuple[ToolCall, ...] = ()
    if request.tools is not None:
        turn = read_turn(completion.text, ToolTurn)
        calls = _calls_as_offered(turn, request, number)
        content = "" if calls and not turn.tool_calls else turn.content
    if request.schema is not None and not calls:
        content = written = obey(content, request.schema)
    message: dict[str, Any] = {"role": "assistant", "content": content if request.tools is None else content or None}
    if calls:
        called = [(call.id, {"name": call.name, "arguments": call.arguments}) for call in calls]
        message["tool_calls"] = [{"id": name, "type": "function", "function": function} for name, function in called]
    prompt, written_tokens = completion.usage.prompt or 0, request.n * estimate_tokens(written)
    choice = {"message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": created,
        "model": completion.model,
        "choices": [{"index": index, **choice} for index in range(request.n)],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written_tokens,
            "total_tokens": prompt + written_tokens,
            "prompt_tokens_details": {"cached_tokens": completion.usage.cached or 0},
        },
        "simulated": True,
    }


def _calls_as_offered(turn: ToolTurn, request: ChatRequest, number: int) -> tuple[ToolCall, ...]:
    """The reader's calls, one where one must be made, with arguments that obey the schemas of strict tools.

    ``number`` distinguishes the calls of one request.
    """
    functions = {tool["function"]["name"]: tool["function"] for tool in request.tools or ()}
    if not turn.tool_calls and request.must_call:
        name, function = next(iter(functions.items()))
        arguments = build(function.get("parameters") or ANY_OBJECT, turn.content)
        return (ToolCall(id=f"call-{number}", name=name, arguments=json.dumps(arguments)),)
    calls = turn.tool_calls[: 1 if request.one_call else None]
    return tuple(_with_strict_arguments(call, functions[call.name]) for call in calls)


def _with_strict_arguments(call: ToolCall, function: Record) -> ToolCall:
    if not function.get("strict"):
        return call
    arguments = build(function.get("parameters") or ANY_OBJECT, json.loads(call.arguments))
    return ToolCall(id=call.id, name=call.name, arguments=json.dumps(arguments))


def stream_events(answer: Record, *, include_usage: bool) -> Iterator[bytes]:
    """Yield the server-sent events of a whole reply: role, words or calls, finish reason, usage if asked for, end."""
    shared = {key: answer[key] for key in ("id", "created", "model", "simulated")}
    shared |= {"object": "chat.completion.chunk", **({"usage": None} if include_usage else {})}
    for choice in answer["choices"]:
        part = {"index": choice["index"], "logprobs": None, "finish_reason": None}
        for delta in _deltas(choice["message"]):
            yield _event({**shared, "choices": [{**part, "delta": delta}]})
        yield _event({**shared, "choices": [{**part, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if include_usage:
        yield _event({**shared, "choices": [], "usage": answer["usage"]})
    yield b"data: [DONE]\n\n"


def _deltas(message: Record) -> Iterator[Record]:
    content = message["content"]
    yield {"role": "assistant", "content": None if content is None else ""}
    for word in _WORD.findall(content or ""):
        yield {"content": word}
    for index, call in enumerate(message.get("tool_calls", ())):
        yield {"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]}
        for piece in _WORD.findall(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _event(chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def embeddings_body(body: bytes, model: str) -> Record:
    """Answer a request for embeddings by hashed words, no language model; raises ``BadRequest`` with the cause."""
    request, _ = read_body(body, model, EmbeddingsRequest)
    texts = [request.input] if isinstance(request.input, str) else request.input
    tokens, vectors = sum(map(estimate_tokens, texts)), _EMBEDDER.embed(texts)
    rows: list[Any] = vectors.tolist()
    if request.encoding_format == "base64":  # the client's default: little-endian floats of 32 bits
        rows = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(rows)],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "simulated": True,
    }


def model_body(model: str) -> Record:
    """Describe one model."""
    return {"id": model, "object": "model", "created": 0, "owned_by": "ace-bench"}


def error_body(status: int, code: str, message: str) -> Record:
    """Build an error reply in OpenAI's format."""
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
