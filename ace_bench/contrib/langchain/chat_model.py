"""Any backbone as a LangChain chat model whose calls a run counts and records."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolMessage
from langchain_core.messages import ToolCall as LangChainCall
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import SkipValidation

from ace_bench.contrib.langchain.roles import CountedModels
from ace_bench.core.backbones import Backbone, Lm
from ace_bench.core.replies import ToolCall, ToolResult, ToolTurn, offer, read_turn, takes_tools, write_turn
from ace_bench.core.types import Message, Usage

_ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


class BackboneChatModel(BaseChatModel):
    """A chat model that passes every call to ``lm``: ``create_agent(BackboneChatModel(lm=lm), tools=[...])``.

    With the ``lm`` of a run's arena, calls are counted, limited, recorded and replayed as for any method. Faults and
    lost calls are raised unchanged. Messages are text and tool calls. A backbone that cannot be offered tools refuses
    them before the first call (``NotImplementedError``); stop words and sampling settings are refused (``ValueError``),
    because they are settings of the backbone. Replies are not streamed: a stream has one chunk.
    """

    lm: SkipValidation[Lm]

    @classmethod
    def from_backbone(cls, backbone: Backbone, *, role: str = "generator", session: str = "langchain") -> Self:
        """Return a chat model on a backbone outside of any run: its calls are not recorded."""
        return cls(lm=CountedModels(backbone=backbone).lm(role, session))

    @property
    def _llm_type(self) -> str:
        return "ace-bench"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools with every call; raises ``NotImplementedError`` if the backbone takes none."""
        self._require_tools()
        formatted = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=formatted, tool_choice=_choice(tool_choice), **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        tools: list[dict[str, Any]] | None = None,
        tool_choice: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        """Complete once."""
        if stop or kwargs:
            refused = ["stop"] * bool(stop) + sorted(kwargs)
            raise ValueError(f"a backbone takes messages and tools, nothing else; leave out {', '.join(refused)}")
        with_tools = bool(tools) or has_tool_turns(messages)
        if with_tools:
            self._require_tools()
        sent = [_message(message, with_tools=with_tools) for message in messages]
        completion = self.lm(sent, offer(tools or (), tool_choice)) if with_tools else self.lm(sent)
        reply = read_reply(completion.text) if with_tools else AIMessage(completion.text)
        reply.usage_metadata = _usage(completion.usage)
        reply.response_metadata = {"model_name": completion.model}
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _require_tools(self) -> None:
        if not takes_tools(self.lm):
            raise NotImplementedError(
                "this backbone takes no tools: use an OpenAI-compatible one or the embedded reader, or leave out tools"
            )


def _choice(choice: str | dict[str, Any] | bool | None) -> Any:
    """Turn LangChain's choice of a tool into the form of chat completions."""
    if choice is True or choice == "any":
        return "required"
    if not choice or isinstance(choice, dict) or choice in ("auto", "none", "required"):
        return choice or None
    return {"type": "function", "function": {"name": choice}}


def _message(message: BaseMessage, *, with_tools: bool) -> Message:
    if message.type not in _ROLES:
        raise ValueError(f"a backbone takes no {message.type} messages; leave them out")
    if isinstance(message.content, list) and any(
        isinstance(part, dict) and part.get("type") != "text" for part in message.content
    ):
        raise ValueError("a backbone takes text only; leave out images and files")
    content = str(message.text)
    if isinstance(message, ToolMessage):
        content = write_turn(ToolResult(tool_call_id=message.tool_call_id, content=content))
    elif isinstance(message, AIMessage) and with_tools:
        content = written_assistant(message)
    return Message(role=_ROLES[message.type], content=content)


def _usage(usage: Usage) -> UsageMetadata | None:
    """Return LangChain's counts; ``None`` if one is unknown, because LangChain cannot express that."""
    if usage.prompt is None or usage.completion is None:
        return None
    details = InputTokenDetails() if usage.cached is None else InputTokenDetails(cache_read=usage.cached)
    return UsageMetadata(
        input_tokens=usage.prompt,
        output_tokens=usage.completion,
        total_tokens=usage.prompt + usage.completion,
        input_token_details=details,
    )


def has_tool_turns(messages: Sequence[BaseMessage]) -> bool:
    """Whether a conversation holds tool calls or results."""
    return any(isinstance(m, ToolMessage) or (isinstance(m, AIMessage) and m.tool_calls) for m in messages)


def written_assistant(message: AIMessage) -> str:
    """Return what a model said; calls that could not be read go back as the model wrote them."""
    read = [(call["id"], call["name"], json.dumps(call["args"])) for call in message.tool_calls]
    broken = [(call["id"], call["name"], call["args"]) for call in message.invalid_tool_calls]
    calls = tuple(ToolCall(id=i or "", name=n or "", arguments=a or "{}") for i, n, a in [*read, *broken])
    return write_turn(ToolTurn(content=str(message.text), tool_calls=calls))


def read_reply(text: str) -> AIMessage:
    """Read the reply to a request with tools; calls whose arguments are not an object are invalid tool calls."""
    turn = read_turn(text, ToolTurn)
    calls: list[LangChainCall] = []
    broken: list[InvalidToolCall] = []
    for call in turn.tool_calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            calls.append(LangChainCall(name=call.name, args=arguments, id=call.id or None))
        else:
            broken.append(
                InvalidToolCall(
                    type="invalid_tool_call",
                    name=call.name,
                    args=call.arguments,
                    id=call.id or None,
                    error="the arguments are not a JSON object",
                )
            )
    return AIMessage(turn.content, tool_calls=calls, invalid_tool_calls=broken)
