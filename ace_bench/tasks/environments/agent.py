"""The agent for environments of other packages: they lead the conversation, this agent adds the context.

What a method has learnt is rendered by its template and stands in the system message, behind the environment's own
text. All else is the environment's: its messages, its tools, its limits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import Prompts, cited_in, send_within_limit
from ace_bench.core.replies import ToolCall, ToolResult, ToolTurn, read_turn, takes_tools
from ace_bench.core.settings import Count
from ace_bench.core.task import Session
from ace_bench.core.types import Attempt, AttemptEnd, GeneratorSpec, Message, Record, Sample, Turn
from ace_bench.tasks.environments.episode import ReplyRequest
from ace_bench.tasks.environments.session import EnvironmentSession


class EnvironmentAgent:
    """Passes an environment's requests to the model, at most ``max_turns`` in an attempt."""

    def __init__(self, *, prompts: Prompts, generator: GeneratorSpec, max_turns: Count):
        self._prompts = prompts
        self._template = generator.template
        self._max_turns = max_turns

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the generator's template."""
        return {self._template: inputs | context_fields | {"reflection"}}

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str | None) -> Attempt:
        """Attempt the sample until the environment ends or ``max_turns`` is reached; either way its state is graded.

        Raises ``RolloutFault`` if the model or the environment fails.
        """
        if not isinstance(session, EnvironmentSession):
            raise ConfigError("agent=environment needs an environment: choose task=verifiers or task=inspect")
        progress = _Progress()
        while (request := session.next_request()) is not None:
            progress.observe(request.messages)
            if len(progress.turns) >= self._max_turns:
                return progress.attempt(session.final, ended="steps")

            def send(reduced: Context, request: ReplyRequest = request) -> ToolTurn:
                fields = {"reflection": reflection or "(none)", **sample.inputs, **reduced.render(sample)}
                prompt = self._prompts.render(self._template, fields)
                text = "\n\n".join(message.content for message in prompt if message.content)
                return _reply(with_system_text(request.messages, text), request.schema, lm)

            turn, dropped = send_within_limit(context, send)
            progress.note(turn, dropped)
            session.reply(turn)
        return progress.attempt(session.final, ended="completed")


@dataclass(kw_only=True)
class _Progress:
    """One attempt under way."""

    turns: list[Turn] = field(default_factory=list)
    dropped: int = 0

    def note(self, turn: ToolTurn, dropped: int) -> None:
        """Note a reply, and how many items of the context were left out of its prompt."""
        self.turns.append(Turn(action=write_calls(turn.tool_calls), observation="", thought=turn.content))
        self.dropped = max(self.dropped, dropped)

    def observe(self, messages: Sequence[Message]) -> None:
        """Note what the environment said since the last reply."""
        last = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=-1)
        if self.turns and last >= 0:
            self.turns[-1] = replace(self.turns[-1], observation="\n".join(map(_text_of, messages[last + 1 :])))

    def attempt(self, final: str, *, ended: AttemptEnd) -> Attempt:
        """Sum up."""
        texts = [turn.thought for turn in self.turns if turn.thought]
        last = next(reversed(texts), "")
        calls = sum(turn.action.count("\n") + 1 for turn in self.turns if turn.action)
        acted = any(turn.action or turn.observation for turn in self.turns)
        return Attempt(
            answer=final or last,
            reasoning="\n\n".join(texts),
            cited=cited_in(texts),
            reply=last,
            dropped=self.dropped,
            trajectory=tuple(self.turns) if acted else (),
            ended=ended,
            counters={"turns": len(self.turns), "tool_calls": calls},
        )


def with_system_text(messages: Sequence[Message], text: str) -> tuple[Message, ...]:
    """Return messages whose system message ends with a text; without a system message, one is added in front."""
    if not text:
        return tuple(messages)
    if messages and messages[0].role == "system":
        first, *later = messages
        return (replace(first, content=f"{first.content}\n\n{text}"), *later)
    return (Message(role="system", content=text), *messages)


def write_calls(calls: Sequence[ToolCall]) -> str:
    """Return tool calls as ``name(key='value')``, one on a line; arguments that are not an object stay as written."""
    return "\n".join(f"{call.name}({_arguments(call.arguments)})" for call in calls)


def _arguments(text: str) -> str:
    try:
        values = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return ", ".join(f"{key}={value!r}" for key, value in values.items()) if isinstance(values, dict) else text


def _text_of(message: Message) -> str:
    return read_turn(message.content, ToolResult).content if message.role == "tool" else message.content


def _reply(messages: Sequence[Message], schema: Record | None, lm: Lm) -> ToolTurn:
    if schema is None:
        return ToolTurn(content=lm(messages).text)
    if not takes_tools(lm):
        raise ConfigError("this environment has tools, and the backbone cannot be offered any: choose another backbone")
    return read_turn(lm(messages, schema).text, ToolTurn)
