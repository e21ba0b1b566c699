"""Lessons: a question with the answer, expression, query or code for questions like it.

A lesson is one sentence of a context. All kinds share one wording, so that lessons can be found in bullets, cheatsheet
entries and instructions alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from textwrap import dedent

import msgspec

ANSWER, COMPUTE, QUERY, RUN, CALL = "answer", "compute", "query", "run", "call"
_LESSON = re.compile(
    r'When asked "([^"\n]{1,1600})", '
    r"(?:(answer|compute|query|call) `([^`\n]{1,3000})`(?:, not `([^`\n]{1,200})`)?\."
    r"|run:\n[ \t]*```python\n(.{1,8000}?)\n[ \t]*```"
    r"|do not answer `([^`\n]{1,200})`\.)",
    re.DOTALL,
)
_MOST_CUE = 1_600
_ROOM = 6_000
"""The maximum length of a rewritten context in characters, about what language models write."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the context that a prompt shows, such as a playbook bullet with its counters."""

    id: str
    content: str
    section: str = ""
    helpful: int = 0
    harmful: int = 0

    @property
    def trust(self) -> float:
        """Weight in (0, 1] that the counters give this entry; 1 where no harm is counted."""
        return (self.helpful + 2) / (self.helpful + 2 * self.harmful + 2)


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """``cue`` is the question or the passage; ``payload`` is the answer, expression, query or code.

    ``instead`` is an earlier wrong answer, "" if there was none; a warning has no payload.
    """

    cue: str
    verb: str
    payload: str
    instead: str = ""

    @property
    def text(self) -> str:
        """The lesson as text."""
        cue = one_line(self.cue).replace('"', "'")[:_MOST_CUE]
        if self.verb == RUN:
            return f'When asked "{cue}", run:\n```python\n{self.payload}\n```'
        payload, instead = (one_line(text).replace("`", '"') for text in (self.payload, self.instead))
        if not payload:
            return f'When asked "{cue}", do not answer `{instead[:200]}`.'
        wrong = f", not `{instead[:200]}`" if instead else ""
        return f'When asked "{cue}", {self.verb} `{payload}`{wrong}.'


@lru_cache(maxsize=16_384)
def find_lessons(text: str) -> tuple[Lesson, ...]:
    """All lessons in a text, each once."""
    lessons = (
        Lesson(
            cue=m[1],
            verb=m[2] or (ANSWER if m[6] else RUN),
            payload=m[3] or dedent(m[5] or ""),
            instead=m[4] or m[6] or "",
        )
        for m in _LESSON.finditer(text)
    )
    return tuple(dict.fromkeys(lessons))


def one_line(text: str) -> str:
    """A text with white space reduced to single spaces."""
    return " ".join(text.split())


def condense(entries: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Shorten ``(section, content)`` entries, as a rewrite by a language model tends to.

    The oldest entries are dropped first.
    """
    kept: list[tuple[str, str]] = []
    room = _ROOM
    for section, content in reversed([entry for entry in dict.fromkeys(entries) if entry[1].strip()]):
        room -= len(section) + len(content.strip()) + 4
        if room < 0 and kept:
            break
        kept.append((section, content.strip()))
    return tuple(reversed(kept))
