"""What a model's reply says: its thought and its code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec

from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import next_hidden, shrink
from ace_bench.core.types import Message

_FENCE = "```"
_OPENING = re.compile(r"(?P<before>.*?)```[ \t]*(?P<language>[^\s`]*)[ \t]*")
_PYTHON = ("", "python", "python3", "py")

NO_TEXT = "(empty reply)"


class AgentReply(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed reply. ``shown`` is the part that the conversation keeps: all up to the end of the code."""

    shown: str
    thought: str
    code: str


def read_reply(text: str) -> AgentReply:
    """Find the first block of Python, with or without the language's name; ``code`` is "" if there is no block.

    The block ends at the first line that ends in a fence, or where the reply ends. What follows it was never run and
    is left out, so that a model does not go on from outputs it made up (the official agent does so, too).
    """
    lines = text.replace("\r\n", "\n").split("\n")
    start, before = _opening(lines)
    end = next((index for index in range(start, len(lines)) if lines[index].rstrip().endswith(_FENCE)), len(lines))
    inside = lines[start:end] + [line.rstrip().removesuffix(_FENCE) for line in lines[end : end + 1]]
    code = textwrap.dedent("\n".join(inside)).strip("\n").rstrip()
    thought = "\n".join([*lines[: max(0, start - 1)], before] if code else lines).strip()
    return AgentReply(shown=reply_text(thought, code), thought=thought, code=code)


def reply_text(thought: str, code: str) -> str:
    """Return a reply as the conversation keeps it."""
    block = f"```python\n{code}\n```" if code else ""
    return "\n\n".join(filter(None, (thought, block))) or NO_TEXT


def _opening(lines: Sequence[str]) -> tuple[int, str]:
    """Return where Python begins and what stands before its fence; blocks of other languages are skipped whole."""
    skipping = False
    for index, line in enumerate(lines):
        fence = _OPENING.fullmatch(line)
        if skipping:
            skipping = line.strip() != _FENCE
        elif fence and fence["language"].lower() in _PYTHON:
            return index + 1, fence["before"]
        elif fence:
            skipping = True
    return len(lines), ""


_TURN = re.compile(r"^(USER|ASSISTANT):[ \t]*", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{\s*(?:playbook|app_descriptions|input_str|cheat_?sheet|main_user\.\w+)\s*\}\}")


def read_dialogue(text: str, *, name: str) -> tuple[Message, ...]:
    """Read turns as chat messages, adjacent ones of one role joined; raises ``ConfigError`` that names ``name``."""
    head, *parts = _TURN.split(text.replace("\r\n", "\n"))
    turns = [
        Message(role=role.lower(), content=content.strip())
        for role, content in zip(parts[::2], parts[1::2], strict=True)
    ]
    messages = join_messages(turn for turn in turns if turn.content)
    if head.strip() or len(messages) < 2 or messages[0].role != "user":
        raise ConfigError(f"{name} is not a dialogue; it must begin with a line USER: and have ASSISTANT: turns")
    placeholder = _PLACEHOLDER.search(text)
    if placeholder:
        raise ConfigError(
            f"{name} holds {placeholder[0]}; leave only its worked examples, the rest is in the prompt set"
        )
    return messages


def join_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join adjacent messages of one role: roles must alternate."""
    result: list[Message] = []
    for message in messages:
        if result and result[-1].role == message.role:
            result[-1] = replace(message, content=f"{result[-1].content}\n\n{message.content}")
        else:
            result.append(message)
    return tuple(result)


def load_dialogue(path: Path, *, name: str) -> tuple[Message, ...]:
    """Read a dialogue from a file; raises ``ConfigError``."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name} cannot be read ({error}); give a text file, default or null") from error
    return read_dialogue(text, name=name)


_TRIMMED_TO = 0.75
"""Share of the limit that trimming goes down to: trimming at every step would give up the prefix at every step."""

Opening = Callable[[Context], tuple[Message, ...]]
"""Makes the messages before the first reply, of which the last is the user's, for a version of the context."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A reply and the message with what the environment showed; ``newest`` is that message while it is the last.

    ``acted`` is false where the reply held no code.
    """

    reply: str
    observation: str
    newest: str
    acted: bool = True


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """An opening under a context and the exchanges so far.

    What gives way where a prompt is too long: the environment's oldest messages, which read ``left_out`` from then
    on, then items of the context. ``hidden`` counts the former.
    """

    opening: Opening
    context: Context
    head: tuple[Message, ...]
    left_out: str
    exchanges: tuple[Exchange, ...] = ()
    hidden: int = 0

    @classmethod
    def start(cls, opening: Opening, context: Context, *, left_out: str) -> Conversation:
        """Open a conversation."""
        return cls(opening=opening, context=context, head=opening(context), left_out=left_out)

    def grown(self, exchange: Exchange) -> Conversation:
        """Return the conversation one exchange later."""
        return replace(self, exchanges=(*self.exchanges, exchange))

    def without_text_replies(self) -> Conversation:
        """Return it with only the exchanges in which the agent acted."""
        exchanges = tuple(exchange for exchange in self.exchanges if exchange.acted)
        return replace(self, exchanges=exchanges, hidden=min(self.hidden, len(exchanges)))

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the model is sent."""
        return self.whole

    @property
    def attempt(self) -> tuple[Message, ...]:
        """The conversation up to the last reply, as Reflector and Curator may be shown it."""
        return self.messages[:-1] if self.exchanges else self.messages

    @cached_property
    def whole(self) -> tuple[Message, ...]:
        """The opening and all exchanges, without the outputs that ``hidden`` counts."""
        messages = [*self.head]
        for index, exchange in enumerate(self.exchanges):
            last = index == len(self.exchanges) - 1
            observation = exchange.newest if last else exchange.observation
            observation = self.left_out if index < self.hidden else observation
            messages += [Message(role="assistant", content=exchange.reply), Message(role="user", content=observation)]
        return tuple(messages)

    def shows(self, step: int) -> bool:
        """Whether the environment's message of a step, counted from 1, still stands there."""
        return step > self.hidden

    def trimmed(self, limit: int) -> Conversation:
        """Return it without the oldest outputs if it is longer than ``limit`` characters; the newest stays."""
        characters = sum(len(message.content) for message in self.messages)
        if characters <= limit:
            return self
        excess, hidden = characters - int(limit * _TRIMMED_TO), self.hidden
        while excess > 0 and hidden < len(self.exchanges) - 1:
            excess -= len(self.exchanges[hidden].observation) - len(self.left_out)
            hidden += 1
        return replace(self, hidden=hidden)

    @property
    def size(self) -> int:
        """Number of items that could give way."""
        return len(self.exchanges) - self.hidden + self.context.size

    def shrink(self) -> Conversation | None:
        """Return a shorter conversation. The oldest outputs go first, then parts of the context."""
        hidden = next_hidden(self.hidden, len(self.exchanges))
        if hidden is not None:
            return replace(self, hidden=hidden)
        context = shrink(self.context)
        return None if context is None else replace(self, context=context, head=self.opening(context))


def with_reminder(messages: Sequence[Message], reminder: str) -> tuple[Message, ...]:
    """Return messages whose system message ends with a reminder; without a system message, one is added in front."""
    if not reminder:
        return tuple(messages)
    if messages[0].role != "system":
        return (Message(role="system", content=reminder), *messages)
    first, *other_messages = messages
    return (replace(first, content=f"{first.content}\n\n{reminder}"), *other_messages)
