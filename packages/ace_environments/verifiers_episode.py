"""One attempt at a task of ``verifiers``: a conversation with its tools, graded by its own rewards."""

from __future__ import annotations

import json
import math
from typing import Any

import verifiers.v1 as vf
from verifiers.v1 import graph
from verifiers.v1.state import state_cls
from verifiers.v1.types import content_text
from verifiers.v1.utils.decorators import invoke

from ace_bench.core.replies import ToolCall, ToolResult, ToolTurn, offer, write_turn
from ace_bench.core.task import ReplyRequest
from ace_bench.core.types import Message, Record
from ace_environments.host import Ask, Scores, fault
from ace_environments.verifiers_judges import judge_by
from ace_environments.verifiers_tools import Toolbox


class NoRuntime:
    """Stands where a task wants a machine to run programs on."""

    def __getattr__(self, name: str) -> Any:
        raise fault("runtime", "this environment runs programs, and task=verifiers gives it no machine for that")


class VerifiersEpisode:
    """Plays and scores one task; ``toolsets`` are those of its taskset, made for this attempt."""

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
        while not await self._stopped():
            turn = graph.prepare_turn(self._trace, messages, self._tools.offered)
            reply = await ask(_request(messages, self._tools.offered))
            said = _assistant(reply)
            turn.commit(_response(said))
            messages = [*messages, said]
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
        parts = {name: one.score for name, one in self._trace.rewards.items() if one is not None}
        if not parts or not math.isfinite(self._trace.reward):
            raise fault("scorer", "the task's rewards gave no number")
        return Scores(total=float(self._trace.reward), parts=parts)

    async def close(self) -> None:
        """Release the tools."""
        await self._tools.close()

    async def _stopped(self) -> bool:
        for stop in self._task.hooks("stop"):
            result = invoke(stop, {"trace": self._trace, vf.Trace: self._trace, "task": self._task.data})
            if await result if hasattr(result, "__await__") else result:
                self._trace.stop(stop.__name__)
                return True
        return False


def opening(data: Any) -> list[Any]:
    """Return the first messages of a task."""
    system = [vf.SystemMessage(content=data.system_prompt)] if data.system_prompt else []
    asked = [vf.UserMessage(content=data.prompt)] if isinstance(data.prompt, str) else list(data.prompt)
    return [*system, *asked]


def _request(messages: list[Any], tools: list[Any]) -> ReplyRequest:
    schema = offer([_function(tool) for tool in tools]) if tools else None
    return ReplyRequest(messages=tuple(_message(one, tools=schema is not None) for one in messages), schema=schema)


def _function(tool: Any) -> Record:
    described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": described}


def _message(one: Any, *, tools: bool) -> Message:
    if isinstance(one.content, list) and any(part.type != "text" for part in one.content):
        raise fault("content", "the environment shows images, and this harness sends text only")
    text = content_text(one.content)
    if one.role == "tool":
        return Message(role="tool", content=write_turn(ToolResult(tool_call_id=one.tool_call_id, content=text)))
    if one.role == "assistant" and tools:
        calls = tuple(ToolCall(id=c.id, name=c.name, arguments=c.arguments) for c in one.tool_calls or ())
        return Message(role="assistant", content=write_turn(ToolTurn(content=text, tool_calls=calls)))
    return Message(role=one.role, content=text)


def _assistant(reply: ToolTurn) -> Any:
    calls = [vf.ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in reply.tool_calls]
    return vf.AssistantMessage(content=reply.content, tool_calls=calls or None)


def _response(said: Any) -> Any:
    reason = "tool_calls" if said.tool_calls else "stop"
    return vf.Response(id="", created=0, model="", message=said, finish_reason=reason)


def gold_of(data: Any) -> str:
    """Return what a task's data holds beside what every task has: its reference answer, as text."""
    own = {name: value for name, value in data.model_dump(mode="json").items() if name not in vf.TaskData.model_fields}
    if len(own) == 1:
        (value,) = own.values()
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(own, ensure_ascii=False) if own else ""
