"""One attempt at a sample of an Inspect AI task: its solver plays, its scorers grade."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

from inspect_ai import Task
from inspect_ai._eval.context import init_task_context
from inspect_ai._eval.task.generate import task_generate
from inspect_ai._eval.task.util import sample_messages
from inspect_ai._util.notgiven import NOT_GIVEN
from inspect_ai._util.registry import registry_unqualified_name
from inspect_ai.dataset import Sample
from inspect_ai.log._transcript import Transcript, init_transcript
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
    ModelName,
    ModelOutput,
    modelapi,
)
from inspect_ai.model._call_tools import parse_tool_call
from inspect_ai.scorer import Score, Target, value_to_float
from inspect_ai.solver import Plan, TaskState, chain
from inspect_ai.solver._task_state import set_sample_state
from inspect_ai.tool import ToolInfo
from inspect_ai.util import LimitExceededError, message_limit, time_limit
from inspect_ai.util._limit import check_message_limit
from inspect_ai.util._store import init_subtask_store

from ace_bench.core.replies import ToolCall, ToolTurn, offer
from ace_bench.core.types import Message, Record
from ace_bench.tasks.environments.episode import Ask, ReplyRequest, Scores, fault
from ace_bench.tasks.environments.messages import assistant_message, describe_tool, tool_message

_FLOAT = value_to_float()


class InspectEpisode:
    """Plays and scores one sample."""

    def __init__(self, task: Task, sample: Sample):
        self._task = task
        self._sample = sample
        self._state = TaskState(
            model=ModelName(NAME),
            sample_id=sample.id if sample.id is not None else 0,
            epoch=1,
            input=sample.input,
            messages=sample_messages(sample),
            target=Target(sample.target),
            choices=sample.choices,
            metadata=deepcopy(sample.metadata),
        )

    @property
    def final(self) -> str:
        """The completion that scorers read."""
        return str(self._state.output.completion)

    async def play(self, ask: Ask) -> None:
        """Run the setup and the solver; a limit of the task ends it and is no fault."""
        model = HostedModel(ask, system_message=self._task.config.system_message)
        self._enter(model)

        async def generate(
            state: TaskState, tool_calls: Any = "loop", cache: Any = NOT_GIVEN, **config: Any
        ) -> TaskState:
            return await task_generate(model, state, tool_calls, cache, GenerateConfig(**config))

        steps = [step for step in (self._task.setup, self._task.solver) if step is not None]
        with suppress(LimitExceededError), message_limit(self._task.message_limit), time_limit(self._task.time_limit):
            for step in steps:
                solver = step if isinstance(step, Plan) else chain(step)
                self._state = await solver(self._state, generate)
                set_sample_state(self._state)
                if self._state.completed:
                    break

    async def score(self, ask: Ask) -> Scores:
        """Run all scorers; the total is the mean of their scores."""
        self._enter(HostedModel(ask))
        self._state.completed = True
        scores: dict[str, Score] = {}
        for scorer in self._task.scorer or ():
            score = await scorer(self._state, Target(self._sample.target))
            if score is not None:
                scores[registry_unqualified_name(scorer)] = score
        if not scores:
            raise fault("scorer", "the task's scorers gave no score")
        parts = {name: _number(name, score) for name, score in scores.items()}
        explanation = "\n".join(score.explanation for score in scores.values() if score.explanation)
        return Scores(total=sum(parts.values()) / len(parts), parts=parts, explanation=explanation)

    async def close(self) -> None:
        """Run the task's clean-up."""
        if self._task.cleanup is not None:
            await self._task.cleanup(self._state)

    def _enter(self, model: HostedModel) -> None:
        """Set what Inspect AI's code finds in its context."""
        init_task_context(model)
        init_transcript(Transcript())
        set_sample_state(self._state)
        init_subtask_store(self._state.store)


def _number(name: str, score: Score) -> float:
    value = score.value
    if isinstance(value, Mapping):
        value = [number for number in value.values() if number is not None]
    values = [_FLOAT(number) for number in (value if isinstance(value, list | tuple) else [value])]
    total = sum(values) / len(values) if values else math.nan
    if not math.isfinite(total):
        raise fault("scorer", f"the scorer {name} gave no number: {score.explanation or score.value}")
    return total


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
    uses_tools = any(
        isinstance(message, ChatMessageTool) or getattr(message, "tool_calls", None) for message in messages
    )
    schema = offer([_function(tool) for tool in tools], _choice(choice)) if tools or uses_tools else None
    return ReplyRequest(
        messages=tuple(_message(message, tools=schema is not None) for message in messages), schema=schema
    )


def _function(tool: ToolInfo) -> Record:
    return describe_tool(tool.name, tool.description, tool.parameters.model_dump(mode="json", exclude_none=True))


def _choice(choice: Any) -> Any:
    if choice in (None, "auto"):
        return None
    if choice == "any":
        return "required"
    return "none" if choice == "none" else {"type": "function", "function": {"name": choice.name}}


def _message(message: ChatMessage, *, tools: bool) -> Message:
    text = _text(message)
    if isinstance(message, ChatMessageTool):
        content = f"Error: {message.error.message}" if message.error is not None else text
        return tool_message(message.tool_call_id or "", content)
    if isinstance(message, ChatMessageAssistant):
        tool_calls = ((c, json.dumps(c.arguments, ensure_ascii=False)) for c in message.tool_calls or ())
        calls = tuple(ToolCall(id=c.id, name=c.function, arguments=arguments) for c, arguments in tool_calls)
        return assistant_message(ToolTurn(content=text, tool_calls=calls), tools=tools)
    return Message(role=message.role, content=text)


def _text(message: ChatMessage) -> str:
    if isinstance(message.content, list) and any(part.type not in ("text", "reasoning") for part in message.content):
        raise fault("content", "the environment shows images, audio or files, and this harness sends text only")
    return str(message.text)
