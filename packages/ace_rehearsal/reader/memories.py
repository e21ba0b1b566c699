"""The reader in the roles of memories: it reads earlier attempts, judges them, and writes routines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ace_rehearsal.reader.kinds import read_items
from ace_rehearsal.reader.lessons import ANSWER, Lesson, one_line
from ace_rehearsal.reader.prompt_parser import PromptParts, verdict
from ace_rehearsal.reader.reflecting import Review, reflect

_EPISODE = re.compile(
    r"^Question: (?P<question>.*?)\nOutput: (?P<output>.*?)(?:\nFeedback: (?P<feedback>.*?))?"
    r"(?:\nReference (?:answer|solution): (?P<gold>.*?))?(?=\n\nQuestion: |\Z)",
    re.MULTILINE | re.DOTALL,
)
_TAGGED_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*)</answer>\s*\Z", re.DOTALL)
_TITLE = 80
_WHEN = "For what is asked in much the same words."
_COMPARE = "Compare what is asked with the words in quotes below."
_WARNING = "An answer that seemed right was wrong: check each step."
_FAILED = ("execution failed", "traceback", "error", "i do not know")


def read_episodes(parts: PromptParts, tag: str) -> tuple[Review, ...]:
    """The earlier attempts that a part of the prompt lists."""
    return tuple(
        Review(
            background=parts.get("task"),
            question=shown["question"],
            predicted=said[1].strip() if (said := _TAGGED_ANSWER.search(shown["output"])) else shown["output"],
            gold=shown["gold"],
            correct=verdict(shown["feedback"] or ""),
        )
        for shown in _EPISODE.finditer(parts.get(tag))
    )


def inducer(parts: PromptParts) -> Mapping[str, Any]:
    """One workflow for each solved task: compare, then do as its lessons say."""
    solved = [replace(review, correct=True) for review in read_episodes(parts, "experiences")]
    found = {reflect(review).lessons: one_line(review.question)[:_TITLE] for review in solved}
    workflows = [
        {"title": title, "description": _WHEN, "steps": [_COMPARE, *(lesson.worded for lesson in lessons)]}
        for lessons, title in found.items()
        if lessons
    ]
    return {"reasoning": f"{len(workflows)} of {len(solved)} solutions are routines.", "workflows": workflows}


def extractor(review: Review, *, failed: bool) -> Mapping[str, Any]:
    """One item: what answers questions like this one, or does not; a warning where neither is known."""
    lessons = reflect(replace(review, correct=not failed)).lessons
    items = read_items(review.background, review.question)
    if failed and not lessons and len(items) == 1 and items[0].verb == ANSWER:
        lessons = (Lesson(cue=items[0].cue, verb=ANSWER, payload="", instead=items[0].payload(review.predicted)),)
    content = "\n".join(lesson.worded for lesson in lessons) or _WARNING
    item = {"title": one_line(review.question)[:_TITLE], "description": _WHEN, "content": content}
    return {"reasoning": "It failed." if failed else "It succeeded.", "memory_items": [item]}


def self_judge(parts: PromptParts) -> Mapping[str, Any]:
    """Success where something was answered or done, and nothing shows an error."""
    said = parts.get("predicted_answer") or parts.get("trajectory")
    shown = f"{parts.get('trajectory')}\n{parts.get('environment_feedback')}".lower()
    success = said.strip("()\n ") not in ("", "none") and not any(word in shown for word in _FAILED)
    return {"reasoning": "Nothing shows an error." if success else "An error or no answer.", "success": success}
