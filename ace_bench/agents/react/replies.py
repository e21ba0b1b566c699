"""What a model's reply says: its thought and its code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_FENCE = "```"
_OPENING = re.compile(r"(?P<before>.*?)```[ \t]*(?P<language>[^\s`]*)[ \t]*")
_PYTHON = ("", "python", "python3", "py")

NO_TEXT = "(empty reply)"


@dataclass(frozen=True, kw_only=True)
class AgentReply:
    """A parsed reply. ``shown`` is the part that the conversation keeps: all up to the end of the code."""

    shown: str
    thought: str
    code: str


def read_reply(text: str) -> AgentReply:
    """Find the first block of Python, with or without the language's name; ``code`` is "" where there is none.

    The block ends at the first line that ends in a fence, or where the reply ends. What follows it was never run and
    is left out, so that a model does not go on from outputs it made up (the official agent does so, too).
    """
    lines = text.replace("\r\n", "\n").split("\n")
    start, before = _opening(lines)
    end = next((place for place in range(start, len(lines)) if lines[place].rstrip().endswith(_FENCE)), len(lines))
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
    for place, line in enumerate(lines):
        fence = _OPENING.fullmatch(line)
        if skipping:
            skipping = line.strip() != _FENCE
        elif fence and fence["language"].lower() in _PYTHON:
            return place + 1, fence["before"]
        elif fence:
            skipping = True
    return len(lines), ""
