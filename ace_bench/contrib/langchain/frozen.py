"""A LangChain middleware that adds a saved context to every model call of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import SystemMessage

from ace_bench.contexts import load, system_prompt
from ace_bench.core.context import Context


class ContextMiddleware(AgentMiddleware[Any, Any, Any]):
    """Adds a context to the end of the agent's system message: ``create_agent(..., middleware=[this])``.

    ``context`` is a loaded context or the path of its file. It never changes while the agent works, so that a server
    can reuse the prefix that all calls share; an empty one adds nothing.
    """

    def __init__(self, context: Context | str | Path) -> None:
        super().__init__()
        self._text = system_prompt(load(context) if isinstance(context, str | Path) else context)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the context."""
        return handler(with_text(request, self._text))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Call the model with the context."""
        return await handler(with_text(request, self._text))


def with_text(request: ModelRequest[Any], text: str) -> ModelRequest[Any]:
    """Return a request with ``text`` at the end of its system message; the same request where the text is empty."""
    if not text:
        return request
    before = request.system_message
    added = {"type": "text", "text": text if before is None else f"\n\n{text}"}
    blocks = [] if before is None else before.content_blocks
    return request.override(system_message=SystemMessage(content_blocks=[*blocks, added]))  # type: ignore[list-item]
