"""The ReAct agent: think, act by code, look at what the environment shows, until the task is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from ace_bench.agents.conversation import (
    AgentReply,
    Conversation,
    Exchange,
    Opening,
    join_messages,
    load_dialogue,
    read_dialogue,
    read_reply,
    reply_text,
    with_reminder,
)
from ace_bench.agents.memory import ExecutionMemory
from ace_bench.agents.official import OfficialConversation, OfficialTrimming, read_official_reply
from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError, RolloutFault, SettingError
from ace_bench.core.prompts import Prompts, cited_in, send_within_limit
from ace_bench.core.settings import Count, Positive, Text
from ace_bench.core.task import Session
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import Attempt, AttemptEnd, Completion, GeneratorSpec, Message, Sample, Turn

_MOST_IDLE = 3
"""Consecutive replies without code that end an attempt: such a model rarely recovers."""
_OBSERVATION = frozenset(("output", "raw_output", "memory"))
_LEFT_OUT = "(output left out: the conversation grew too long)"


class ReAct:
    """Acts by the first code block of each reply (paper, section 4.2; the official AppWorld agent).

    ``max_steps`` is the most replies of an attempt (official ACE code 40, AppWorld's own ReAct 50) and
    ``history_chars`` the length above which the oldest outputs are removed. ``demonstrations`` are the
    worked examples before the task: ``default`` (from the prompt set), a dialogue file, or ``None``; a generator's
    template that is a whole dialogue has its own. ``memory`` is ``execution`` or ``off``. ``memory_place`` says where
    its findings stand: in the ``newest`` message, or at the end of the ``system`` message. ``tools`` says what the
    environment's tools do. ``parse_replies=official`` reads replies and shortens conversations as the authors' agents
    do, runs a reply without code as empty code, and never stops early. With ``keep_text_replies=false`` a reply without
    code leaves the conversation with the next reply that has some (an engine for a coding assistant keeps turns with
    actions alone). ``max_usd`` ends an attempt once its calls have cost that much. A method's form gives the template;
    whether it wants JSON does not matter, since this agent's replies are code.
    """

    draws_from_seed = False

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        prompts: Prompts,
        generator: GeneratorSpec,
        max_steps: Count,
        history_chars: Count,
        demonstrations: Text | None,
        memory: Literal["off", "execution"],
        memory_place: Literal["newest", "system"],
        tools: ToolRules | None,
        parse_replies: Literal["lenient", "official"],
        keep_text_replies: bool,
        max_usd: Positive | None,
    ):
        self._prompts = prompts
        self._template = generator.template
        self.max_steps = max_steps
        """The most replies of an attempt."""
        self._history_chars = history_chars
        if memory == "execution" and tools is None:
            raise SettingError("memory=execution needs to know the tools: add +tools@agent.tools=NAME (configs/tools)")
        self.tools = tools
        """What the environment's tools do, for methods that learn from their calls."""
        self._remembered = tools if memory == "execution" else None
        self._in_system = self._remembered is not None and memory_place == "system"
        self._official = parse_replies == "official"
        self._keeps_text = keep_text_replies
        if self._official and not keep_text_replies:
            raise SettingError(
                "keep_text_replies=false needs parse_replies=lenient: official runs such replies as empty code"
            )
        prompts.require(["observation", *self._further_templates])
        self._dialogue = prompts.is_dialogue(self._template)
        self._demonstrations = () if self._dialogue else self._load(demonstrations)
        self.max_usd = max_usd
        """The cost limit of an attempt; the run checks that the generator's backbone has prices."""

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the generator's template and of what the environment showed."""
        fields = {self._template: inputs | context_fields | {"reflection"}, "observation": _OBSERVATION}
        fields |= {"retry": frozenset(("reflection",))} if self._dialogue else {}
        optional_fields = {"left_out": frozenset[str](), "memory": frozenset(("memory",))}
        return fields | {name: optional_fields[name] for name in self._further_templates}

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str | None) -> Attempt:
        """Attempt the sample until the session is finished, a limit is reached or the model stops acting.

        None of these is a fault: the final state is graded. Raises ``RolloutFault`` if the backbone or the
        environment fails.
        """
        memory = None if self._remembered is None else ExecutionMemory(self._remembered)
        progress = _Progress(talk=self._begin(sample, context, reflection), memory=memory)
        while not session.finished and not self._limit(progress):
            progress.talk = progress.talk.trimmed(self._history_chars)
            reply = self._read(self._ask(progress, lm))
            progress.talk = self._before(progress.talk, reply.code)
            known_facts = "" if self._in_system else progress.known
            output = progress.act(reply.code, session) if reply.code or self._official else None
            turn = Turn(action=reply.code, observation=output or "", thought=reply.thought)
            progress.turns.append(replace(turn, reply=reply.shown) if self._official else turn)
            progress.talk = progress.talk.grown(self._exchange(reply.shown, output, known_facts))
        ended = "completed" if session.finished else self._limit(progress)
        return progress.attempt(ended=ended, dropped=context.size - progress.talk.context.size)

    def conversation(
        self, sample: Sample, context: Context, attempt: Attempt, reflection: str | None
    ) -> tuple[Message, ...]:
        """Return the messages of an attempt up to its last reply, for prompts that show them."""
        talk = self._begin(sample, context, reflection)
        for turn in attempt.trajectory:
            output = turn.observation if turn.action or self._official else None
            talk = self._before(talk, turn.action).grown(
                self._exchange(turn.reply or reply_text(turn.thought, turn.action), output)
            )
        return talk.trimmed(self._history_chars).attempt

    def _limit(self, progress: _Progress) -> AttemptEnd | None:
        """Return the limit that an attempt has reached; ``None`` while it may go on."""
        if self.max_usd is not None:
            if progress.usd is None:
                raise ConfigError(f"agent.max_usd={self.max_usd:g} needs dollars, and the backbone reports none")
            if progress.usd >= self.max_usd:
                return "cost"
        if len(progress.turns) >= self.max_steps:
            return "steps"
        return "idle" if progress.idle >= _MOST_IDLE and not self._official else None

    @property
    def _further_templates(self) -> tuple[str, ...]:
        return (*(["left_out"] if self._official else []), *(["memory"] if self._in_system else []))

    def _reminder(self, memory: str) -> str:
        """Return the text at the end of the system message, or ""."""
        return self._prompts.render("memory", {"memory": memory})[-1].content if memory and self._in_system else ""

    def _before(self, talk: Conversation, code: str) -> Conversation:
        """Return the conversation before the next exchange. Replies without code may stay only until the agent acts."""
        return talk if self._keeps_text or not code else talk.without_text_replies()

    def _begin(self, sample: Sample, context: Context, reflection: str | None) -> Conversation:
        def opening(reduced: Context) -> tuple[Message, ...]:
            fields = {"reflection": reflection or "(none)", **sample.inputs, **reduced.render(sample)}
            messages = self._prompts.render(self._template, fields)
            if self._dialogue:
                return (*messages, *(self._prompts.render("retry", fields) if reflection else ()))
            *before, task = messages
            return join_messages([*before, *self._demonstrations, task])

        if not self._official:
            return Conversation.start(opening, context, left_out=self._observation_message(_LEFT_OUT))
        return self._official_conversation(opening, context, after_task=3 if self._dialogue and reflection else 0)

    def _official_conversation(self, opening: Opening, context: Context, *, after_task: int) -> Conversation:
        output, history = self._prompts.render("left_out", {})
        head = opening(context)
        trim = OfficialTrimming(
            limit=self._history_chars,
            task=len(head) - after_task - 1,
            output_left_out=output.content,
            history_left_out=history.content,
        )
        return OfficialConversation(opening=opening, context=context, head=head, left_out=output.content, trim=trim)

    def _ask(self, progress: _Progress, lm: Lm) -> str:
        """Return the next reply; one that is empty or refuses is a step without code, and the attempt goes on."""
        try:
            reply = progress.ask(lm, self._reminder(progress.known))
            return reply.as_written if self._official else reply.text
        except RolloutFault as error:
            text = error.blank if self._official else error.unreadable_text
            if text is None:
                raise
            return text

    def _read(self, text: str) -> AgentReply:
        return read_official_reply(text) if self._official else read_reply(text)

    def _exchange(self, reply: str, output: str | None, known_facts: str = "") -> Exchange:
        message, newest = self._observation_message(output), self._observation_message(output, known_facts)
        return Exchange(reply=reply, observation=message, newest=newest, acted=output is not None)

    def _observation_message(self, output: str | None, memory: str = "") -> str:
        observation = None if output is None else output.strip("\n")
        fields = {"output": observation, "raw_output": output, "memory": memory}
        return self._prompts.render("observation", fields)[-1].content

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
    memory: ExecutionMemory | None
    turns: list[Turn] = field(default_factory=list)
    usd: float | None = 0.0

    @property
    def idle(self) -> int:
        """Replies without code since the last one with code."""
        return next((n for n, turn in enumerate(reversed(self.turns)) if turn.action), len(self.turns))

    @property
    def known(self) -> str:
        """What the memory shows."""
        return "" if self.memory is None else self.memory.text

    def ask(self, lm: Lm, reminder: str) -> Completion:
        """Send the conversation, or as much of it as fits; what did not fit stays out from then on."""

        def send(talk: Conversation) -> tuple[Completion, Conversation]:
            return lm(with_reminder(talk.messages, reminder)), talk

        (completion, self.talk), _ = send_within_limit(self.talk, send)
        spent = completion.usage.usd
        self.usd = None if self.usd is None or spent is None else self.usd + spent
        return completion

    def act(self, code: str, session: Session) -> str:
        """Run code in the environment, unless the memory can answer all of it."""
        if self.memory is None:
            return session.step(code)
        remembered = self.memory.recall(code, self.talk.shows)
        if remembered is not None:
            return remembered
        output = session.step(code)
        self.memory.note(len(self.talk.exchanges) + 1, code, output)
        return output

    def attempt(self, *, ended: AttemptEnd | None, dropped: int) -> Attempt:
        """Sum up: the answer is the last code that was run, ``None`` if none was."""
        actions = [turn.action for turn in self.turns if turn.action]
        return Attempt(
            answer=actions[-1] if actions else None,
            reasoning="\n\n".join(turn.thought for turn in self.turns if turn.thought),
            cited=cited_in(text for turn in self.turns for text in (turn.thought, turn.action)),
            dropped=dropped,
            ended=ended,
            trajectory=tuple(self.turns),
            counters={
                "steps": len(self.turns),
                "steps_without_code": len(self.turns) - len(actions),
                "outputs_left_out": self.talk.hidden,
                "lookups_saved": 0 if self.memory is None else self.memory.saved,
            },
        )
