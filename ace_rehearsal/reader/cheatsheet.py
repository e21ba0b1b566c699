"""Dynamic Cheatsheet's forms: an answer between tags, and a cheatsheet that is written anew as a whole.

The reader keeps the lessons of the old sheet, adds what the attempts it is shown teach, and then, like a language model
that rewrites a whole text, does not go beyond a modest length: older lessons are blurred and lost (``condense``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ace_rehearsal.reader.condense import condense
from ace_rehearsal.reader.pieces import Pieces, verdict
from ace_rehearsal.reader.skills import SKILLS, recognise
from ace_rehearsal.reader.skills.base import Answer, Review

_BULLET = "- "
_EPISODE = re.compile(
    r"^Question: (?P<question>.*?)\nOutput: (?P<output>.*?)(?:\nFeedback: (?P<feedback>.*?))?"
    r"(?:\nReference answer: (?P<gold>.*?))?(?=\n\nQuestion: |\Z)",
    re.MULTILINE | re.DOTALL,
)
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*)</answer>\s*\Z", re.DOTALL)


def tagged(answer: Answer) -> str:
    """Reply with the answer in its tags."""
    return f"{answer.reasoning}\n\n<answer>{answer.text}</answer>"


def write_sheet(pieces: Pieces) -> str:
    """Reply with the whole new cheatsheet."""
    lines = [line.removeprefix(_BULLET) for line in pieces.get("cheatsheet").splitlines() if line.startswith(_BULLET)]
    for question, review in (*_attempt(pieces), *_episodes(pieces)):
        _, case = recognise(pieces.background, question)
        for insight in case.lesson(review).insights:
            if not any(skill.repeats(insight, line) for skill in SKILLS if skill.insights(insight) for line in lines):
                lines.append(insight)
    kept = condense([("", line) for line in lines])
    text = "\n".join(f"{_BULLET}{line}" for _, line in kept)
    return f"Kept {len(kept)} of {len(lines)} entries.\n\n<cheatsheet>\n{text}\n</cheatsheet>"


def _attempt(pieces: Pieces) -> Iterator[tuple[str, Review]]:
    if "predicted_answer" in pieces.blocks:
        review = Review(
            predicted=pieces.get("predicted_answer"),
            reasoning=pieces.get("reasoning"),
            gold=pieces.blocks.get("reference_answer"),
            correct=verdict(pieces.get("environment_feedback")),
            used=(),
        )
        yield pieces.question, review


def _episodes(pieces: Pieces) -> Iterator[tuple[str, Review]]:
    for shown in _EPISODE.finditer(pieces.get("episodes")):
        said = _ANSWER.search(shown["output"])
        review = Review(
            predicted=said[1].strip() if said else "",
            reasoning=shown["output"],
            gold=shown["gold"],
            correct=verdict(shown["feedback"] or ""),
            used=(),
        )
        yield shown["question"], review
