"""One attempt at a row of a resources server of NeMo Gym: a conversation with its tools, verified by the server.

Requests and replies have the form of OpenAI's Responses API, in which the server verifies the whole conversation.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx2

from ace_bench.core.replies import ToolCall, ToolTurn, offer
from ace_bench.core.types import Message, Record
from ace_environments.episode import Ask, ReplyRequest, Scores, fault
from ace_environments.messages import assistant_message, describe_tool, tool_message

PARAMETERS = "responses_create_params"
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}
_TEXTS = ("input_text", "output_text", "text")
logging.getLogger(httpx2.__name__).setLevel(logging.WARNING)  # else it logs every request


class NemoGymEpisode:
    """Plays and verifies one row; its session is the server's, kept by a cookie."""

    def __init__(self, address: str, row: Record):
        self._row = row
        self._talk = Conversation(row[PARAMETERS])
        # The host's timeout ends an attempt. Certificates take long to load, and an address without TLS needs none.
        self._client = httpx2.AsyncClient(base_url=address, timeout=None, verify=address.startswith("https:"))

    @property
    def final(self) -> str:
        """The last reply."""
        return self._talk.final

    async def play(self, ask: Ask) -> None:
        """Seed the session, then ask for replies and call tools until the model calls none."""
        seeded = await self._post("seed_session", self._row)
        if not self._talk.tool_names and isinstance(seeded, Mapping) and seeded.get("mcp"):
            raise fault("tools", "this server offers its tools over MCP alone, which is not supported")
        while calls := self._talk.add_reply(await ask(self._talk.request())):
            for call in calls:
                self._talk.add_result(call, await self._call(call))

    async def score(self, ask: Ask) -> Scores:
        """Send the conversation to ``/verify``; a sample that the server masks is a fault of the task."""
        verified = await self._post("verify", {**self._row, "response": self._talk.response()})
        reward = verified.get("reward") if isinstance(verified, Mapping) else None
        if not isinstance(reward, int | float) or not math.isfinite(reward):
            raise fault("scorer", f"the server's verify gave no reward: {verified!s:.300}")
        if verified.get("mask_sample"):
            said = verified.get("failure_reason") or verified.get("failure_kind") or "no reason given"
            raise fault("scorer", f"the server says that its reward does not count: {said}")
        parts = {name: float(value) for name, value in (verified.get("reward_components") or {}).items()}
        return Scores(total=float(reward), parts=parts or {"reward": float(reward)})

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    async def _call(self, call: ToolCall) -> str:
        """Return what the model gets of a tool: the server's reply, whatever its status."""
        if call.name not in self._talk.tool_names:  # the name is the model's, and becomes a path
            return json.dumps({"error": f"there is no tool {call.name}; there are {', '.join(self._talk.tool_names)}"})
        try:
            return (await self._send(call.name, json.loads(call.arguments or "{}"))).text
        except (ValueError, RecursionError) as error:
            return json.dumps({"error": f"the arguments are no JSON: {error}"})

    async def _send(self, name: str, body: Any) -> httpx2.Response:
        headers = {"Content-Type": "application/json"}
        return await self._client.post(f"/{quote(name)}", content=json.dumps(body, allow_nan=False), headers=headers)

    async def _post(self, name: str, body: Record) -> Any:
        reply = await self._send(name, body)
        if not reply.is_success:
            raise fault("environment", f"the server answered /{name} with {reply.status_code}: {reply.text:.300}")
        return reply.json()


class Conversation:
    """The items of a conversation, as the Responses API has them, with what a row asks for.

    Raises ``ValueError`` if it asks for what is not supported: other tools than functions, images, files.
    """

    def __init__(self, parameters: Record):
        asked = parameters.get("input") or ()
        self._items: list[Record] = [{"role": "user", "content": asked}] if isinstance(asked, str) else list(asked)
        if instructions := parameters.get("instructions"):
            self._items.insert(0, {"role": "system", "content": instructions})
        self._given = len(self._items)
        self._tools = list(parameters.get("tools") or ())
        self._choice = parameters.get("tool_choice")
        if other := [tool.get("type") for tool in self._tools if tool.get("type") != "function"]:
            raise ValueError(f"tools of the type {other[0]} are not supported")
        self._offered = [
            describe_tool(tool["name"], tool.get("description") or "", tool.get("parameters") or {})
            for tool in self._tools
        ]
        if not self.question:
            raise ValueError("input has no message of a user")
        self.request()

    @property
    def tool_names(self) -> Sequence[str]:
        """The tools that the model may call."""
        return [str(tool["name"]) for tool in self._tools]

    @property
    def question(self) -> str:
        """What users say in the row, as text."""
        return "\n\n".join(_text(item) for item in self._items[: self._given] if item.get("role") == "user")

    @property
    def final(self) -> str:
        """The text of the last reply; "" before the first."""
        said = [item for item in self._items[self._given :] if item["type"] == "message"]
        return _text(said[-1]) if said else ""

    def add_reply(self, turn: ToolTurn) -> Sequence[ToolCall]:
        """Add what the model said; return its tool calls."""
        if turn.content or not turn.tool_calls:
            part = {"type": "output_text", "text": turn.content, "annotations": []}
            self._add("message", "msg", role="assistant", content=[part])
        for call in turn.tool_calls:
            self._add("function_call", "fc", call_id=call.id, name=call.name, arguments=call.arguments)
        return turn.tool_calls

    def add_result(self, call: ToolCall, result: str) -> None:
        """Add what a tool returned."""
        self._items.append({"type": "function_call_output", "call_id": call.id, "output": result})

    def request(self) -> ReplyRequest:
        """Return the conversation as a request for a chat completion."""
        schema = None
        if self._tools or any(_kind(item) != "message" for item in self._items):
            schema = offer(self._offered, _choice(self._choice))
        return ReplyRequest(messages=tuple(_messages(self._items, tools=schema is not None)), schema=schema)

    def response(self) -> Record:
        """Return the conversation as a response, all that came after the row's input."""
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 0,
            "model": "ace_bench",
            "output": self._items[self._given :],
            "parallel_tool_calls": True,
            "tool_choice": self._choice or "auto",
            "tools": self._tools,
        }

    def _add(self, kind: str, mark: str, **fields: Any) -> None:
        self._items.append({"type": kind, "id": f"{mark}_{len(self._items)}", "status": "completed", **fields})


def _messages(items: Sequence[Record], *, tools: bool) -> Iterator[Message]:
    """Yield items as messages; the calls of one reply join its text."""
    turn: ToolTurn | None = None
    for item in items:
        kind = _kind(item)
        if kind == "reasoning":
            continue
        if kind == "function_call":
            call = ToolCall(id=item["call_id"], name=item["name"], arguments=item["arguments"])
            said = turn or ToolTurn()
            turn = ToolTurn(content=said.content, tool_calls=(*said.tool_calls, call))
            continue
        if turn is not None:
            yield assistant_message(turn, tools=True)
            turn = None
        if kind == "function_call_output":
            yield tool_message(item["call_id"], item["output"])
        elif kind != "message" or item.get("role") not in _ROLES:
            raise ValueError(f"input of the type {item.get('role') or kind} is not supported")
        elif tools and item["role"] == "assistant":
            turn = ToolTurn(content=_text(item))
        else:
            yield Message(role=_ROLES[item["role"]], content=_text(item))
    if turn is not None:
        yield assistant_message(turn, tools=True)


def _kind(item: Record) -> str:
    return str(item.get("type") or "message")


def _text(item: Record) -> str:
    content = item.get("content") or ""
    if isinstance(content, str):
        return content
    if other := [part.get("type") for part in content if part.get("type") not in _TEXTS]:
        raise ValueError(f"the environment shows {other[0]}, and this harness sends text only")
    return "\n".join(str(part["text"]) for part in content)


def _choice(choice: Any) -> Any:
    if isinstance(choice, Mapping) and "name" in choice:
        return {"type": "function", "function": {"name": choice["name"]}}
    return None if choice == "auto" else choice
