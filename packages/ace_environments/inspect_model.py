"""The model that Inspect AI's solvers call: it hands every request to the run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    modelapi,
)
from inspect_ai.model._call_tools import parse_tool_call
from inspect_ai.tool import ToolInfo
from inspect_ai.util._limit import check_message_limit

from ace_bench.core.replies import ToolCall, ToolResult, ToolTurn, offer, write_turn
from ace_bench.core.task import ReplyRequest
from ace_bench.core.types import Message, Record
from ace_environments.host import Ask, fault

NAME = "ace_bench/model"
_PROVIDER, _, _MODEL = NAME.partition("/")


@modelapi(name=_PROVIDER)  # Inspect AI names a model by its registered provider
class _NoProvider(ModelAPI):  # type: ignore[misc]
    """Stands where Inspect AI wants a provider; it is never called."""

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        raise NotImplementedError(f"{NAME} is called through HostedModel")


class HostedModel(Model):  # type: ignore[misc]
    """Hands requests to ``ask``, in place of Inspect AI's own retries, caches and limits on connections."""

    def __init__(self, ask: Ask, *, system_message: str | None = None):
        super().__init__(_NoProvider(_MODEL), GenerateConfig())
        self._ask = ask
        self._system_message = system_message

    async def generate(
        self,
        input: str | list[ChatMessage],
        tools: Any = (),
        tool_choice: Any = None,
        config: GenerateConfig | None = None,
        *_: Any,
        **__: Any,
    ) -> ModelOutput:
        """Ask for one reply. Sampling settings are the backbone's, not the environment's."""
        messages = [ChatMessageUser(content=input)] if isinstance(input, str) else list(input)
        check_message_limit(len(messages), raise_for_equal=True)
        system = (config.system_message if config else None) or self._system_message
        messages = [*([ChatMessageSystem(content=system)] if system else []), *messages]
        prepared = await self._prepare_input(messages, tools or [], tool_choice, config or GenerateConfig())
        turn = await self._ask(_request(prepared.input, prepared.tools, prepared.tool_choice))
        calls = [parse_tool_call(c.id, c.name, c.arguments, prepared.tools) for c in turn.tool_calls]
        message = ChatMessageAssistant(content=turn.content, tool_calls=calls or None, model=NAME, source="generate")
        choice = ChatCompletionChoice(message=message, stop_reason="tool_calls" if calls else "stop")
        return ModelOutput(model=NAME, choices=[choice])


def _request(messages: Sequence[ChatMessage], tools: Sequence[ToolInfo], choice: Any) -> ReplyRequest:
    held = any(isinstance(one, ChatMessageTool) or getattr(one, "tool_calls", None) for one in messages)
    schema = offer([_function(tool) for tool in tools], _choice(choice)) if tools or held else None
    return ReplyRequest(messages=tuple(_message(one, tools=schema is not None) for one in messages), schema=schema)


def _function(tool: ToolInfo) -> Record:
    described = {"name": tool.name, "description": tool.description}
    return {
        "type": "function",
        "function": {**described, "parameters": tool.parameters.model_dump(mode="json", exclude_none=True)},
    }


def _choice(choice: Any) -> Any:
    if choice in (None, "auto"):
        return None
    if choice == "any":
        return "required"
    return "none" if choice == "none" else {"type": "function", "function": {"name": choice.name}}


def _message(one: ChatMessage, *, tools: bool) -> Message:
    text = _text(one)
    if isinstance(one, ChatMessageTool):
        shown = f"Error: {one.error.message}" if one.error is not None else text
        return Message(role="tool", content=write_turn(ToolResult(tool_call_id=one.tool_call_id or "", content=shown)))
    if isinstance(one, ChatMessageAssistant) and tools:
        calls = tuple(ToolCall(id=c.id, name=c.function, arguments=_json(c.arguments)) for c in one.tool_calls or ())
        return Message(role="assistant", content=write_turn(ToolTurn(content=text, tool_calls=calls)))
    return Message(role=one.role, content=text)


def _text(one: ChatMessage) -> str:
    if isinstance(one.content, list) and any(part.type not in ("text", "reasoning") for part in one.content):
        raise fault("content", "the environment shows images, audio or files, and this harness sends text only")
    return str(one.text)


def _json(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)
