"""The kinds of question, and the lessons that a prompt offers for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ace_bench.backbones.embedded.items import Item, split_answer
from ace_bench.backbones.embedded.kinds.calculations import read_calculation
from ace_bench.backbones.embedded.kinds.choices import read_choice, read_listed_choice, read_tags
from ace_bench.backbones.embedded.kinds.queries import read_query, read_task
from ace_bench.backbones.embedded.kinds.tools import read_tool_use
from ace_bench.backbones.embedded.lessons import Entry, Lesson
from ace_bench.backbones.embedded.prompt_parser import PromptParts, read_demonstrations, read_past_answers

_KINDS: tuple[Callable[[str, str], Sequence[Item]], ...] = (
    read_task,
    read_tool_use,
    read_query,
    read_tags,
    read_listed_choice,
    read_calculation,
    read_choice,
)
"""In order of recognition; the last kind accepts any text. A new kind is a module and a line here."""

_WRITTEN = ("instruction", "cheatsheet", "memory_items", "workflows", "reflection")
"""Tags of evolved texts that hold lessons among other words."""


def read_items(background: str, question: str) -> Sequence[Item]:
    """The items of a question, read by the first kind that recognises it; at least one."""
    return next(items for kind in _KINDS if (items := kind(background, question)))


def entries_of(parts: PromptParts) -> tuple[Entry, ...]:
    """All sources of lessons in a prompt: bullets, other evolved texts, the reflection, worked examples."""
    written = tuple(Entry(id="", content=parts.get(tag)) for tag in _WRITTEN if parts.get(tag))
    examples = (*read_demonstrations(parts.get("demonstrations")), *read_past_answers(parts.get("past_answers")))
    return (*parts.bullets, *written, *_read_examples(parts.get("task"), examples))


@lru_cache(maxsize=16)
def _read_examples(background: str, examples: tuple[tuple[str, str], ...]) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            id=f"demonstration-{number}",
            content="\n".join(lesson.text for lesson in lessons_of_example(background, *pair)),
        )
        for number, pair in enumerate(examples, start=1)
    )


def lessons_of_example(background: str, question: str, answer: str) -> tuple[Lesson, ...]:
    """The lessons of a worked example."""
    items = read_items(background, question)
    answers = split_answer(answer, len(items))
    return tuple(lesson for item, part in zip(items, answers, strict=True) if (lesson := lesson_of(item, part)))


def lesson_of(item: Item, answer: str, instead: str = "") -> Lesson | None:
    """The lesson of a right answer to an item, if any; ``instead`` is the earlier wrong answer."""
    payload = item.payload(answer) if answer else ""
    return Lesson(cue=item.cue, verb=item.verb, payload=payload, instead=instead) if payload else None
