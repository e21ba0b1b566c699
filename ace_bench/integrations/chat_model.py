"""Any backbone as a LangChain chat model whose calls a run counts and records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import SkipValidation

from ace_bench.core.backbones import Backbone, Lm
from ace_bench.core.types import Completion, Message, Record, Usage

_ROLES = {"system": "system", "human": "user", "ai": "assistant"}


class BackboneChatModel(BaseChatModel):
    """A chat model that passes every call to ``lm``: ``create_agent(BackboneChatModel(lm=lm))``.

    With the ``lm`` of a run's arena, calls are counted, limited, recorded and replayed as for any method. Faults and
    lost calls are raised unchanged. Messages are text. Tools and stop words are refused with an error, because a
    backbone has neither.
    """

    lm: SkipValidation[Lm]

    @classmethod
    def from_backbone(cls, backbone: Backbone, *, role: str = "generator", session: str = "langchain") -> Self:
        """Return a chat model on a backbone outside of any run: its calls are not recorded."""

        def lm(messages: Sequence[Message], schema: Record | None = None) -> Completion:
            return backbone.complete(messages, role=role, session=session, schema=schema)

        return cls(lm=lm)

    @property
    def _llm_type(self) -> str:
        return "ace-bench"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - LangChain's signature
        **kwargs: Any,
    ) -> ChatResult:
        """Complete once."""
        if stop or kwargs:
            refused = ["stop"] * bool(stop) + sorted(kwargs)
            raise ValueError(f"a backbone takes messages and nothing else; leave out {', '.join(refused)}")
        completion = self.lm([_message(message) for message in messages])
        said = AIMessage(
            completion.text,
            usage_metadata=_usage(completion.usage),
            response_metadata={"model_name": completion.model},
        )
        return ChatResult(generations=[ChatGeneration(message=said)])


def _message(message: BaseMessage) -> Message:
    if message.type not in _ROLES:
        raise ValueError(f"a backbone takes no {message.type} messages; leave out tools")
    if isinstance(message.content, list) and any(
        isinstance(part, dict) and part.get("type") != "text" for part in message.content
    ):
        raise ValueError("a backbone takes text only; leave out images and files")
    return Message(role=_ROLES[message.type], content=str(message.text))


def _usage(usage: Usage) -> UsageMetadata | None:
    """Return LangChain's counts; ``None`` where one is unknown, because LangChain cannot express that."""
    if usage.prompt is None or usage.completion is None:
        return None
    details = InputTokenDetails() if usage.cached is None else InputTokenDetails(cache_read=usage.cached)
    return UsageMetadata(
        input_tokens=usage.prompt,
        output_tokens=usage.completion,
        total_tokens=usage.prompt + usage.completion,
        input_token_details=details,
    )
