"""The tools of a ``verifiers`` task, called in this process instead of in servers of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import verifiers.v1 as vf
from mcp.server.mcpserver import MCPServer

from ace_bench.core.replies import ToolCall
from ace_environments.host import fault


class Toolbox:
    """Tools by the names that the model is shown; those of an attempt share its state."""

    def __init__(self, toolsets: Sequence[Any], state: Any):
        self._toolsets = toolsets
        self._state = state
        self._stack = AsyncExitStack()
        self._servers: dict[str, tuple[MCPServer, str]] = {}
        self.offered: list[vf.Tool] = []

    async def open(self, data: Any) -> None:
        """Set the tools up for a task's data."""
        for toolset in self._toolsets:
            if getattr(toolset.config, "url", None):
                raise fault("tools", f"the tools of {type(toolset).__name__} are on another machine: not supported")
            await self._stack.enter_async_context(toolset._exit_stack)
            self._share_state(toolset)
            await toolset.setup()
            await toolset.setup_task(data)
            server = MCPServer(toolset.server_name or type(toolset).__name__)
            toolset.register(server)
            for tool in await server.list_tools():
                name = f"{toolset.server_name}_{tool.name}" if toolset.server_name else tool.name
                self._servers[name] = (server, tool.name)
                described = {"name": name, "description": tool.description or "", "parameters": _schema(tool)}
                self.offered.append(vf.Tool(**described))

    async def call(self, call: ToolCall) -> str:
        """Return a tool's result as the model gets it; a failure is ``Error: ...``."""
        if call.name not in self._servers:
            return f"Error: there is no tool {call.name}; there are {', '.join(self._servers)}"
        server, name = self._servers[call.name]
        try:
            arguments = json.loads(call.arguments or "{}")
            result = await server.call_tool(name, arguments)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return f"Error: {error}"
        return _text(result)

    async def close(self) -> None:
        """Release what the tools hold."""
        await self._stack.aclose()

    def _share_state(self, toolset: Any) -> None:
        """Let a toolset read and change the attempt's state directly, where servers would send it to and fro."""

        async def pull() -> Any:
            return self._state

        async def push(before: bytes) -> None:
            del before  # the state was changed in place

        toolset._pull_state, toolset._push_state = pull, push


def _schema(tool: Any) -> Mapping[str, Any]:
    return dict(getattr(tool, "input_schema", None) or getattr(tool, "inputSchema", None) or {})


def _text(result: Any) -> str:
    parts = getattr(result, "content", result)
    if isinstance(parts, tuple):
        parts = parts[0]
    said = "\n".join(str(getattr(part, "text", part)) for part in parts) if isinstance(parts, list) else str(parts)
    failed = getattr(result, "is_error", False) or getattr(result, "isError", False)
    return f"Error: {said}" if failed else said
