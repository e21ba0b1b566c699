"""The OpenAI chat-completions protocol as values: requests read and checked, replies built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ace_bench.core.tokens import estimate_tokens
from ace_bench.core.tools import ToolTurn, read_turn
from ace_bench.core.types import Completion, Message, Record
from ace_rehearsal.reader.chat_tools import Offer, calls_as_offered, content_with_tools, message_with_tools, read_offer
from ace_rehearsal.reader.schema_values import ANY_OBJECT, BadRequest, obey

_MOST_CHOICES = 128
_ROLES = ("system", "developer", "user", "assistant", "tool")
_UNABLE = ("logprobs", "top_logprobs", "functions", "function_call", "audio", "web_search_options")


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """What the server does of a request. ``schema``: what the reply must obey, ``None`` for any text."""

    messages: tuple[Message, ...]
    offered: Offer | None
    schema: Record | None
    n: int
    stream: bool
    include_usage: bool

    @property
    def offer(self) -> Record | None:
        """The offered tools as a backbone takes them."""
        return None if self.offered is None else self.offered.schema


def read_request(body: bytes, model: str) -> ChatRequest:
    """Read and check a request; raises ``BadRequest`` with the cause.

    Sampling settings and limits are ignored; what would change the form of the reply is answered or refused.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(400, "invalid_json", f"The body is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadRequest(400, "invalid_body", "The body must be a JSON object.")
    if not isinstance(data.get("model"), str):
        raise BadRequest(400, "missing_model", "'model' must be a string.")
    if data["model"] != model:
        raise BadRequest(
            404, "model_not_found", f"The model {data['model']!r} does not exist; this server has {model!r}."
        )
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest(400, "missing_messages", "'messages' must be a list with at least one message.")
    _refuse_unable(data)
    offered = read_offer(data, messages)
    return ChatRequest(
        messages=tuple(_message(item, place, with_tools=offered is not None) for place, item in enumerate(messages)),
        offered=offered,
        schema=_schema(data.get("response_format")),
        n=_number_of_choices(data.get("n")),
        **_streaming(data),
    )


def _refuse_unable(data: Mapping[str, Any]) -> None:
    unable = [name for name in _UNABLE if data.get(name)]
    if data.get("modalities") not in (None, ["text"]):
        unable.append("modalities")
    if unable:
        raise BadRequest(400, "unsupported_parameter", f"This server cannot do {unable[0]!r}; leave it out.")


def _number_of_choices(n: Any) -> int:
    if n is None:
        return 1
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _MOST_CHOICES:
        raise BadRequest(400, "invalid_n", f"'n' must be a whole number from 1 to {_MOST_CHOICES}.")
    return n


def _streaming(data: Mapping[str, Any]) -> dict[str, bool]:
    stream, options = data.get("stream"), data.get("stream_options")
    if stream not in (None, True, False):
        raise BadRequest(400, "invalid_stream", "'stream' must be true or false.")
    if options is not None and (not stream or not isinstance(options, dict)):
        raise BadRequest(400, "invalid_stream_options", "'stream_options' must be an object, and needs stream=true.")
    return {"stream": bool(stream), "include_usage": bool((options or {}).get("include_usage"))}


def _schema(wanted: Any) -> Record | None:
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if wanted is None or kind == "text":
        return None
    if kind == "json_object":
        return ANY_OBJECT
    described = wanted.get("json_schema") if isinstance(wanted, dict) and kind == "json_schema" else None
    if not isinstance(described, dict) or not isinstance(described.get("name"), str):
        message = "'response_format' must be of type text, json_object, or json_schema with a name and a schema."
        raise BadRequest(400, "invalid_response_format", message)
    schema = described.get("schema")
    if not isinstance(schema, dict):
        raise BadRequest(400, "invalid_response_format", "'response_format.json_schema.schema' must be an object.")
    return schema


def _message(item: object, place: int, *, with_tools: bool) -> Message:
    if not isinstance(item, dict) or item.get("role") not in _ROLES:
        message = f"messages[{place}] must be an object with a 'role': {', '.join(_ROLES)}."
        raise BadRequest(400, "invalid_message", message)
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
    return Message(role="system" if item["role"] == "developer" else item["role"], content=content)


def completion_body(completion: Completion, request: ChatRequest, *, number: int, created: int) -> Record:
    """Build the reply to a request, usage and cached tokens included; raises ``BadRequest`` for an impossible schema.

    The choices are all the same, because the reader has one answer.
    """
    text, turn = completion.text, None
    if request.offered is not None:
        turn = calls_as_offered(read_turn(text, ToolTurn), request.offered, number)
    if request.schema is not None and (turn is None or not turn.tool_calls):
        text = obey(text if turn is None else turn.content, request.schema)
        turn = None
    said = {"content": text} if turn is None else message_with_tools(turn)
    reason = "tool_calls" if "tool_calls" in said else "stop"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": created,
        "model": completion.model,
        "choices": [
            {"index": index, "message": {"role": "assistant", **said}, "logprobs": None, "finish_reason": reason}
            for index in range(request.n)
        ],
        "usage": _usage(completion, completion.text if turn is not None else text, request.n),
        "simulated": True,
    }


def _usage(completion: Completion, text: str, n: int) -> Record:
    prompt, written = completion.usage.prompt or 0, n * estimate_tokens(text)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": completion.usage.cached or 0},
    }


def models_body(model: str) -> Record:
    """Build the list of models."""
    return {"object": "list", "data": [model_body(model)]}


def model_body(model: str) -> Record:
    """Describe one model."""
    return {"id": model, "object": "model", "created": 0, "owned_by": "ace-bench"}


def error_body(status: int, code: str, message: str) -> Record:
    """Build an error reply in OpenAI's format."""
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
