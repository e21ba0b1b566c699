"""One attempt at a sample of an Inspect AI task: its solver plays, its scorers grade."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from inspect_ai.model import GenerateConfig, ModelName
from inspect_ai.scorer import Score, Target, value_to_float
from inspect_ai.solver import Plan, TaskState, chain
from inspect_ai.solver._task_state import set_sample_state
from inspect_ai.util import LimitExceededError, message_limit, time_limit
from inspect_ai.util._store import init_subtask_store

from ace_environments.host import Ask, Scores, fault
from ace_environments.inspect_model import NAME, HostedModel

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
        found: dict[str, Score] = {}
        for scorer in self._task.scorer or ():
            score = await scorer(self._state, Target(self._sample.target))
            if score is not None:
                found[registry_unqualified_name(scorer)] = score
        if not found:
            raise fault("scorer", "the task's scorers gave no score")
        parts = {name: _number(name, score) for name, score in found.items()}
        said = "\n".join(score.explanation for score in found.values() if score.explanation)
        return Scores(total=sum(parts.values()) / len(parts), parts=parts, explanation=said)

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
        values = [_FLOAT(one) for one in value.values() if one is not None]
    elif isinstance(value, list | tuple):
        values = [_FLOAT(one) for one in value]
    else:
        values = [_FLOAT(value)]
    total = sum(values) / len(values) if values else math.nan
    if not math.isfinite(total):
        raise fault("scorer", f"the scorer {name} gave no number: {score.explanation or score.value}")
    return total
