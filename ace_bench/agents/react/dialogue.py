"""Worked examples as dialogues: text whose turns begin with ``USER:`` or ``ASSISTANT:`` at the start of a line.

This is the form of the official prompt files, too. Of such a file only the examples can be used: instructions and the
task at hand come from the prompt set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Message

_TURN = re.compile(r"^(USER|ASSISTANT):[ \t]*", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{\s*(?:playbook|app_descriptions|input_str|cheat_?sheet|main_user\.\w+)\s*\}\}")


def read_dialogue(text: str, *, name: str) -> tuple[Message, ...]:
    """Read turns as chat messages, adjacent ones of one role joined; raises ``ConfigError`` that names ``name``."""
    head, *parts = _TURN.split(text.replace("\r\n", "\n"))
    turns = [
        Message(role=role.lower(), content=said.strip()) for role, said in zip(parts[::2], parts[1::2], strict=True)
    ]
    messages = joined(turn for turn in turns if turn.content)
    if head.strip() or len(messages) < 2 or messages[0].role != "user":
        raise ConfigError(f"{name} is not a dialogue; it must begin with a line USER: and have ASSISTANT: turns")
    placeholder = _PLACEHOLDER.search(text)
    if placeholder:
        raise ConfigError(
            f"{name} holds {placeholder[0]}; leave only its worked examples, the rest is in the prompt set"
        )
    return messages


def joined(messages: Iterable[Message]) -> tuple[Message, ...]:
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
