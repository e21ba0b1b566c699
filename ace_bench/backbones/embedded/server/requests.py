"""The OpenAI protocol as requests: read, checked and turned into what the reader takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from ace_bench.core.replies import ToolCall, ToolResult, ToolTurn, offer, write_turn
from ace_bench.core.types import Message, Record

_Kind = TypeVar("_Kind")
_UNABLE = ("logprobs", "top_logprobs", "functions", "function_call", "audio", "web_search_options", "dimensions")
ANY_OBJECT: Record = {"type": "object"}
"""What ``response_format={"type": "json_object"}`` asks for."""


class BadRequest(Exception):
    """A request that gets an error reply: HTTP status, machine-readable code, message."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status = status
        self.code = code


class _Part(Struct):
    text: str
    type: Literal["text"]


class _Called(Struct):
    name: str
    arguments: str = ""


class _Call(Struct):
    function: _Called
    id: str = ""


class _Item(Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None

    def message(self, *, with_tools: bool) -> Message:
        """The message as a backbone takes it, with its tool calls in a conversation with tools (``core.replies``)."""
        parts = self.content if isinstance(self.content, list) else ()
        text = "".join(part.text for part in parts) if parts else str(self.content or "")
        if with_tools and self.role == "tool":
            text = write_turn(ToolResult(tool_call_id=str(self.tool_call_id), content=text))
        elif with_tools and self.role == "assistant":
            calls = ((call.id, call.function.name, call.function.arguments) for call in self.tool_calls or ())
            text = write_turn(ToolTurn(content=text, tool_calls=tuple(ToolCall(*call) for call in calls)))
        return Message(role="system" if self.role == "developer" else self.role, content=text)


class _Described(Struct):
    name: str
    parameters: dict[str, Any] | None = None


class _Tool(Struct):
    function: _Described


class _Named(Struct):
    function: _Called


class _Schema(Struct):
    name: str
    schema: dict[str, Any]


class _Format(Struct):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _Schema | None = None


class _StreamOptions(Struct):
    include_usage: bool = False


class _Chat(Struct):
    """The fields that are read; sampling settings and limits are ignored."""

    messages: Annotated[list[_Item], Meta(min_length=1)]
    tools: list[_Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | _Named | None = None
    parallel_tool_calls: bool | None = None
    response_format: _Format | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    modalities: list[Literal["text"]] | None = None


class EmbeddingsRequest(Struct):
    """A request for the vectors of texts."""

    input: Annotated[str, Meta(min_length=1)] | Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1)]
    encoding_format: Literal["float", "base64"] = "float"


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """What the server does of a request.

    ``tools`` are those that a reply may call: ``None`` without any, [] where only earlier messages hold calls. With
    ``must_call`` a reply needs a call, with ``one_call`` it has one at most. The text must match ``schema``.
    """

    messages: tuple[Message, ...]
    tools: Sequence[Record] | None
    must_call: bool
    one_call: bool
    schema: Record | None
    n: int
    stream: bool
    include_usage: bool

    @property
    def offer(self) -> Record | None:
        """The offered tools as a backbone takes them."""
        return None if self.tools is None else offer(self.tools)


def read_body(body: bytes, model: str, kind: type[_Kind]) -> tuple[_Kind, Record]:
    """Read and check a request to a model, typed and as it came; raises ``BadRequest`` with the cause.

    What would change the form of the reply and cannot be done is refused.
    """
    try:
        data = msgspec.json.decode(body, type=dict[str, Any])
        if not isinstance(data.get("model"), str):
            raise BadRequest(400, "missing_model", "'model' must be a string.")
        if data["model"] != model:
            message = f"The model {data['model']!r} does not exist; this server has {model!r}."
            raise BadRequest(404, "model_not_found", message)
        for name in filter(data.get, _UNABLE):
            raise BadRequest(400, "unsupported_parameter", f"This server cannot do {name!r}; leave it out.")
        return msgspec.convert(data, kind), data
    except (ValueError, RecursionError) as error:
        raise BadRequest(400, "invalid_request", f"The request is not valid: {error}") from error


def read_request(body: bytes, model: str) -> ChatRequest:
    """Read a request for a completion; raises ``BadRequest`` with the cause."""
    chat, data = read_body(body, model, _Chat)
    if chat.stream_options is not None and not chat.stream:
        raise BadRequest(400, "invalid_stream_options", "'stream_options' needs stream=true.")
    uses_tools = any(item.role == "tool" or item.tool_calls is not None for item in chat.messages)
    tools = _tools_to_call(data.get("tools") or [], chat.tool_choice)
    with_tools = bool(data.get("tools")) or uses_tools
    return ChatRequest(
        messages=tuple(item.message(with_tools=with_tools) for item in chat.messages),
        tools=tools if with_tools else None,
        must_call=chat.tool_choice not in (None, "auto", "none"),
        one_call=chat.parallel_tool_calls is False,
        schema=_schema_of(chat.response_format),
        n=chat.n or 1,
        stream=bool(chat.stream),
        include_usage=chat.stream_options is not None and chat.stream_options.include_usage,
    )


def _tools_to_call(tools: Sequence[Record], choice: str | _Named | None) -> Sequence[Record]:
    """Return the tools that ``tool_choice`` leaves."""
    if choice in (None, "auto"):
        return tools
    if choice == "none":
        return []
    if not tools:
        raise BadRequest(400, "invalid_tool_choice", "'tool_choice' needs 'tools' to choose from.")
    if not isinstance(choice, _Named):
        return tools
    chosen = [tool for tool in tools if tool["function"]["name"] == choice.function.name]
    if not chosen:
        message = f"'tool_choice' names {choice.function.name!r}, which 'tools' does not hold."
        raise BadRequest(400, "invalid_tool_choice", message)
    return chosen[:1]


def _schema_of(wanted: _Format | None) -> Record | None:
    if wanted is None or wanted.type == "text":
        return None
    if wanted.type == "json_object":
        return ANY_OBJECT
    if wanted.json_schema is None:
        raise BadRequest(400, "invalid_response_format", "'response_format' needs 'json_schema', a name and a schema.")
    return wanted.json_schema.schema
