"""The reader in the roles of memories: it reads earlier attempts, judges them, and writes routines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ace_rehearsal.reader.lessons import one_line
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


def self_judge(parts: PromptParts) -> Mapping[str, Any]:
    """Success where something was answered or done, and nothing shows an error."""
    said = parts.get("predicted_answer") or parts.get("trajectory")
    shown = f"{parts.get('trajectory')}\n{parts.get('environment_feedback')}".lower()
    success = said.strip("()\n ") not in ("", "none") and not any(word in shown for word in _FAILED)
    return {"reasoning": "Nothing shows an error." if success else "An error or no answer.", "success": success}
