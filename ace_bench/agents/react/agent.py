"""The ReAct agent: think, act by code, look at what the environment shows, until the task is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ace_bench.agents.react.conversation import Conversation, Exchange
from ace_bench.agents.react.dialogue import joined, load_dialogue, read_dialogue
from ace_bench.agents.react.lookups import ToolConventions
from ace_bench.agents.react.memory import ExecutionMemory, NoMemory
from ace_bench.agents.react.replies import cited_in, read_reply
from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.prompt_limit import send_within_limit
from ace_bench.core.prompts import Prompts
from ace_bench.core.settings import Count, Text
from ace_bench.core.task import Session
from ace_bench.core.types import Attempt, Completion, GeneratorSpec, Message, Sample, Turn

_MOST_IDLE = 3
"""Consecutive replies without code that end an attempt: such a model rarely recovers."""
_LEFT_OUT = "(output left out: the conversation grew too long)"


class ReAct:
    """Acts by the first code block of each reply (paper, section 4.2; the official AppWorld agent).

    ``max_steps`` is the most replies of an attempt (official ACE code 40, AppWorld's own ReAct 50) and
    ``history_chars`` the length above which the oldest outputs are removed. ``demonstrations`` are the
    worked examples before the task: ``default`` (those of the prompt set), a dialogue file, or ``None``. ``memory`` is
    ``execution`` or ``off``, and ``tools`` says how code calls the tools that the memory is about. A method's form
    gives the template; whether it wants JSON does not matter, since this agent's replies are code.
    """

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        prompts: Prompts,
        generator: GeneratorSpec,
        max_steps: Count,
        history_chars: Count,
        demonstrations: Text | None,
        memory: Literal["off", "execution"],
        tools: ToolConventions,
    ):
        self._prompts = prompts
        self._template = generator.template
        self._max_steps = max_steps
        self._history_chars = history_chars
        self._remembers = memory == "execution"
        self._tools = tools
        prompts.require(["observation"])
        self._demonstrations = self._load(demonstrations)

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the generator's template and of what the environment showed."""
        return {self._template: inputs | shown | {"reflection"}, "observation": frozenset(("output", "memory"))}

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str) -> Attempt:
        """Attempt the sample until the session is finished, the steps are used up or the model stops acting.

        None of these is a fault: the final state is graded. Raises ``RolloutFault`` where the backbone or the
        environment fails.
        """

        def opening(shown: Context) -> tuple[Message, ...]:
            fields = {"reflection": reflection or "(none)", **sample.inputs, **shown.render(sample)}
            *before, task = self._prompts.render(self._template, fields)
            return joined([*before, *self._demonstrations, task])

        left_out = self._observation_message(_LEFT_OUT)
        memory = ExecutionMemory(self._tools) if self._remembers else NoMemory()
        progress = _Progress(talk=Conversation.start(opening, context, left_out=left_out), memory=memory)
        while not session.finished and len(progress.turns) < self._max_steps and progress.idle < _MOST_IDLE:
            progress.talk = progress.talk.trimmed(self._history_chars)
            reply = read_reply(progress.ask(lm).text)
            known = progress.memory.text
            output = progress.act(reply.code, session) if reply.code else None
            progress.turns.append(Turn(action=reply.code, observation=output or "", thought=reply.thought))
            message, newest = self._observation_message(output), self._observation_message(output, known)
            exchange = Exchange(reply=reply.shown, observation=message, newest=newest)
            progress.talk = progress.talk.grown(exchange)
        return progress.attempt(dropped=context.size - progress.talk.context.size)

    def _observation_message(self, output: str | None, memory: str = "") -> str:
        shown = None if output is None else output.strip("\n")
        return self._prompts.render("observation", {"output": shown, "memory": memory})[-1].content

    def _load(self, demonstrations: str | None) -> tuple[Message, ...]:
        if demonstrations is None:
            return ()
        if demonstrations == "default":
            text = self._prompts.render("demonstrations", {})[-1].content
            return read_dialogue(text, name="prompt template demonstrations.j2")
        return load_dialogue(Path(demonstrations), name=f"agent.demonstrations={demonstrations}")


@dataclass(kw_only=True)
class _Progress:
    """One attempt under way."""

    talk: Conversation
    memory: ExecutionMemory | NoMemory
    turns: list[Turn] = field(default_factory=list)

    @property
    def idle(self) -> int:
        """Replies without code since the last one with code."""
        return next((n for n, turn in enumerate(reversed(self.turns)) if turn.action), len(self.turns))

    def ask(self, lm: Lm) -> Completion:
        """Send the conversation, or as much of it as fits; what did not fit stays out from then on."""

        def send(talk: Conversation) -> tuple[Completion, Conversation]:
            return lm(talk.messages), talk

        (completion, self.talk), _ = send_within_limit(self.talk, send)
        return completion

    def act(self, code: str, session: Session) -> str:
        """Run code in the environment, unless the memory can answer all of it."""
        remembered = self.memory.recall(code, self.talk.shows)
        if remembered is not None:
            return remembered
        output = session.step(code)
        self.memory.note(len(self.turns) + 1, code, output)
        return output

    def attempt(self, *, dropped: int) -> Attempt:
        """Sum up: the answer is the last code that was run, ``None`` where none was."""
        actions = [turn.action for turn in self.turns if turn.action]
        return Attempt(
            answer=actions[-1] if actions else None,
            reasoning="\n\n".join(turn.thought for turn in self.turns if turn.thought),
            cited=cited_in(text for turn in self.turns for text in (turn.thought, turn.action)),
            dropped=dropped,
            trajectory=tuple(self.turns),
            counters={
                "steps": len(self.turns),
                "steps_without_code": len(self.turns) - len(actions),
                "outputs_left_out": self.talk.hidden,
                "lookups_saved": self.memory.saved,
            },
        )
