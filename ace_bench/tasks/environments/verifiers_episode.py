"""One attempt at a task of ``verifiers``: a conversation with its tools, graded by its own rewards and judges."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import verifiers.v1 as vf
import verifiers.v1.judge as judges
from mcp.server.mcpserver import MCPServer
from verifiers.v1 import graph
from verifiers.v1.judges import decision
from verifiers.v1.state import state_cls
from verifiers.v1.types import content_text
from verifiers.v1.utils.decorators import invoke

from ace_bench.core.replies import ToolCall, ToolTurn, offer
from ace_bench.core.types import Message
from ace_bench.tasks.environments.episode import Ask, ReplyRequest, Scores, fault
from ace_bench.tasks.environments.messages import assistant_message, describe_tool, tool_message


class NoRuntime:
    """Stands where a task wants a machine to run programs on."""

    def __getattr__(self, name: str) -> Any:
        raise fault("runtime", "this environment runs programs, and task=verifiers gives it no machine for that")


class VerifiersEpisode:
    """Plays and scores one task; ``toolsets`` come from its taskset, made for this attempt."""

    def __init__(self, task: Any, toolsets: list[Any]):
        self._task = task
        self._trace = vf.Trace(
            task=vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
            state=state_cls(type(task))(),
            agent=vf.AgentInfo(config=vf.AgentConfig()),
        )
        self._tools = Toolbox([*toolsets, *task.toolsets(task.config)], self._trace.state)
        self._given = {"trace": self._trace, "runtime": NoRuntime()}

    @property
    def final(self) -> str:
        """The last reply."""
        return str(self._trace.last_reply)

    async def play(self, ask: Ask) -> None:
        """Ask for replies and call tools until the model answers or the task stops."""
        await invoke(self._task.setup, self._given)
        await self._tools.open(self._task.data)
        messages = opening(self._task.data)
        while not await self._has_stopped():
            turn = graph.prepare_turn(self._trace, messages, self._tools.offered)
            reply = await ask(_request(messages, self._tools.offered))
            message = _assistant(reply)
            reason = "tool_calls" if message.tool_calls else "stop"
            turn.commit(vf.Response(id="", created=0, model="", message=message, finish_reason=reason))
            messages = [*messages, message]
            if not reply.tool_calls:
                break
            for call in reply.tool_calls:
                result = await self._tools.call(call)
                messages.append(vf.ToolMessage(tool_call_id=call.id, content=result, name=call.name))

    async def score(self, ask: Ask) -> Scores:
        """Finish the task and sum its weighted rewards."""
        judge_by(ask)
        self._trace.is_completed = True
        await invoke(self._task.finalize, self._given)
        await self._task.score(self._trace)
        parts = {name: reward.score for name, reward in self._trace.rewards.items() if reward is not None}
        if not parts or not math.isfinite(self._trace.reward):
            raise fault("scorer", "the task's rewards gave no number")
        return Scores(total=float(self._trace.reward), parts=parts)

    async def close(self) -> None:
        """Release the tools."""
        await self._tools.close()

    async def _has_stopped(self) -> bool:
        for stop in self._task.hooks("stop"):
            result = invoke(stop, {"trace": self._trace, vf.Trace: self._trace, "task": self._task.data})
            if await result if hasattr(result, "__await__") else result:
                self._trace.stop(stop.__name__)
                return True
        return False


def opening(data: Any) -> list[Any]:
    """Return the first messages of a task."""
    system = [vf.SystemMessage(content=data.system_prompt)] if data.system_prompt else []
    prompt = [vf.UserMessage(content=data.prompt)] if isinstance(data.prompt, str) else list(data.prompt)
    return [*system, *prompt]


def _request(messages: list[Any], tools: list[Any]) -> ReplyRequest:
    schema = offer([describe_tool(tool.name, tool.description, tool.parameters) for tool in tools]) if tools else None
    return ReplyRequest(
        messages=tuple(_message(message, tools=schema is not None) for message in messages), schema=schema
    )


def _message(message: Any, *, tools: bool) -> Message:
    if isinstance(message.content, list) and any(part.type != "text" for part in message.content):
        raise fault("content", "the environment shows images, and this harness sends text only")
    text = content_text(message.content)
    if message.role == "tool":
        return tool_message(message.tool_call_id, text)
    if message.role == "assistant":
        calls = tuple(ToolCall(id=c.id, name=c.name, arguments=c.arguments) for c in message.tool_calls or ())
        return assistant_message(ToolTurn(content=text, tool_calls=calls), tools=tools)
    return Message(role=message.role, content=text)


def _assistant(reply: ToolTurn) -> Any:
    calls = [vf.ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in reply.tool_calls]
    return vf.AssistantMessage(content=reply.content, tool_calls=calls or None)


def gold_of(data: Any) -> str:
    """Return what a task's data holds beside what every task has: its reference answer, as text."""
    fields = {
        name: value for name, value in data.model_dump(mode="json").items() if name not in vf.TaskData.model_fields
    }
    if len(fields) == 1:
        (value,) = fields.values()
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(fields, ensure_ascii=False) if fields else ""


class Toolbox:
    """Tools by the names that the model is shown; the tools of an attempt share its state."""

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
                described = {"name": name, "description": tool.description or "", "parameters": tool.input_schema}
                self.offered.append(vf.Tool(**described))

    async def call(self, call: ToolCall) -> str:
        """Return a tool's result as the model gets it; a failure is ``Error: ...``."""
        if call.name not in self._servers:
            return f"Error: there is no tool {call.name}; there are {', '.join(self._servers)}"
        server, name = self._servers[call.name]
        try:
            return _text(await server.call_tool(name, json.loads(call.arguments or "{}")))
        except Exception as error:
            return f"Error: {error}"

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


def _text(result: Any) -> str:
    text = "\n".join(str(getattr(part, "text", part)) for part in result.content)
    return f"Error: {text}" if result.is_error else text


_ASK: ContextVar[Ask] = ContextVar("ask")


def judge_by(ask: Ask) -> None:
    """Send the calls of judges to ``ask``, for what runs in this context from now on."""
    judges.build_async_openai = decision.build_async_openai = _Client
    _ASK.set(ask)


class _Client:
    """The part of OpenAI's client that judges use; address and key come from the run's backbone."""

    def __init__(self, config: Any):
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=_create))
        self.beta = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(parse=_parse)))

    async def __aenter__(self) -> _Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def post(self, *_: Any, **__: Any) -> Any:
        raise fault("scorer", "the judge needs an evaluations endpoint of its own, which is not supported")


async def _create(*, messages: list[dict[str, Any]], **_: Any) -> Any:
    return _completion(await _ask_model(messages))


async def _parse(*, messages: list[dict[str, Any]], response_format: Any, **_: Any) -> Any:
    form = json.dumps(response_format.model_json_schema())
    asked = {"role": "user", "content": f"Reply with one JSON object of this schema and nothing else:\n{form}"}
    text = await _ask_model([*messages, asked])
    start, end = text.find("{"), text.rfind("}")
    return _completion(text, response_format.model_validate_json(text[start : end + 1]))


async def _ask_model(messages: list[dict[str, Any]]) -> str:
    sent = tuple(Message(role=str(one["role"]), content=_plain_text(one.get("content"))) for one in messages)
    return (await _ASK.get()(ReplyRequest(messages=sent))).content


def _plain_text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def _completion(text: str, parsed: Any = None) -> Any:
    message = SimpleNamespace(content=text, parsed=parsed, refusal=None)
    return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")], usage=None)
