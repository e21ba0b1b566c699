"""The OpenAI chat-completions protocol as values: requests read and checked, replies built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ace_bench.core.types import Completion, Message, Record
from ace_rehearsal.reader.bad_request import BadRequest
from ace_rehearsal.reader.chat_tools import content_with_tools, read_offer, reply_with_tools


def read_request(body: bytes, model: str) -> tuple[tuple[Message, ...], Record | None]:
    """The messages and the offered tools of a request; raises ``BadRequest`` with the cause.

    Sampling settings and the form of the reply are ignored.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(400, "invalid_json", f"The body is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadRequest(400, "invalid_body", "The body must be a JSON object.")
    if data.get("stream"):
        raise BadRequest(400, "unsupported_stream", "This server does not stream; send stream=false.")
    if not isinstance(data.get("model"), str):
        raise BadRequest(400, "missing_model", "'model' must be a string.")
    if data["model"] != model:
        raise BadRequest(
            404, "model_not_found", f"The model {data['model']!r} does not exist; this server has {model!r}."
        )
    if data.get("n", 1) != 1:
        raise BadRequest(400, "unsupported_n", "This server gives one choice; send n=1.")
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest(400, "missing_messages", "'messages' must be a list with at least one message.")
    offered = read_offer(data, messages)
    return tuple(_message(item, place, with_tools=offered is not None) for place, item in enumerate(messages)), offered


def _message(item: object, place: int, *, with_tools: bool) -> Message:
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        raise BadRequest(400, "invalid_message", f"messages[{place}] must be an object with a 'role'.")
    content = item.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        if len(parts) != len(content) or not all(isinstance(part, str) for part in parts):
            raise BadRequest(400, "invalid_content", f"messages[{place}].content may hold text parts only.")
        content = "".join(str(part) for part in parts)
    if content is None and item["role"] == "assistant":
        content = ""
    if not isinstance(content, str):
        raise BadRequest(400, "invalid_content", f"messages[{place}].content must be text.")
    if with_tools:
        content = content_with_tools(item, content, place)
    return Message(role=item["role"], content=content)


def completion_body(completion: Completion, *, number: int, created: int, tools: bool = False) -> Mapping[str, Any]:
    """Build the reply to a request, usage and cached tokens included; ``tools`` says that some were offered."""
    said = reply_with_tools(completion.text) if tools else {"content": completion.text}
    usage = completion.usage
    prompt, written = usage.prompt or 0, usage.completion or 0
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": created,
        "model": completion.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", **said},
                "logprobs": None,
                "finish_reason": "tool_calls" if "tool_calls" in said else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "prompt_tokens_details": {"cached_tokens": usage.cached or 0},
        },
        "simulated": True,
    }


def models_body(model: str) -> Mapping[str, Any]:
    """Build the list of models."""
    return {"object": "list", "data": [{"id": model, "object": "model", "created": 0, "owned_by": "ace-bench"}]}


def error_body(status: int, code: str, message: str) -> Mapping[str, Any]:
    """Build an error reply in OpenAI's format."""
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
