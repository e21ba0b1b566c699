"""Learning from attempts: compares them with the truth that the prompt shows, and writes lessons and routines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ace_bench.backbones.embedded.items import Item, split_answer
from ace_bench.backbones.embedded.kinds import lesson_of, read_items
from ace_bench.backbones.embedded.lessons import ANSWER, Entry, Lesson, find_lessons, one_line
from ace_bench.backbones.embedded.prompt_parser import PromptParts, verdict

HELPFUL, HARMFUL, NEUTRAL = "helpful", "harmful", "neutral"
_RIGHT_ANSWER = re.compile(r"The answer here is `([^`\n]*)`")

_WRONG_ANSWER = re.compile(r"The answer `([^`\n]*)` was not right")


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt in a reflector's prompt; ``gold`` and ``correct`` are ``None`` if hidden."""

    background: str
    question: str
    predicted: str
    gold: str | None
    correct: bool | None
    used: tuple[Entry, ...] = ()


class Reflection(msgspec.Struct, frozen=True, kw_only=True):
    """A reflector's result; ``lessons`` is empty if nothing was learnt."""

    error: str
    cause: str = ""
    approach: str
    lessons: tuple[Lesson, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()


def reflect(review: Review) -> Reflection:
    """Compare item by item if the gold is shown; otherwise learn only from a right answer."""
    items = read_items(review.background, review.question)
    answers = split_answer(review.predicted, len(items))
    truth = answers if review.correct else None
    if review.gold is not None and not review.correct:
        truth = split_answer(review.gold, len(items))
    if truth is None:
        error = "Nothing shows an error." if review.correct is None else "The answer is not right; no more is shown."
        tags = tuple((entry.id, NEUTRAL) for entry in review.used)
        return Reflection(error=error, approach="Look at the question once more.", tags=tags)
    wrong = [not review.correct and not item.is_same(s, t) for item, s, t in zip(items, answers, truth, strict=True)]
    cases = [(i, s, t, _lesson_answers(i, review.used)) for i, s, t in zip(items, answers, truth, strict=True)]
    lessons = (
        lesson_of(item, t, one_line(s)[:200] if bad else "")
        for (item, s, t, taught), bad in zip(cases, wrong, strict=True)
        if bad or not any(item.is_same(answer, t) for _, answer in taught)
    )
    tags = tuple((entry.id, _tag(entry, cases)) for entry in review.used)
    distinct = tuple(dict.fromkeys(lesson for lesson in lessons if lesson is not None))
    if not any(wrong):
        return Reflection(error="Nothing went wrong.", approach="Keep the answer.", lessons=distinct, tags=tags)
    right = ",".join(truth)
    return Reflection(
        error=f"{sum(wrong)} of {len(wrong)} answers differ from the reference.",
        cause="The question was taken for one of another kind.",
        approach=f"The answer here is `{right}`." if "\n" not in right else "Act as the key insight says.",
        lessons=distinct,
        tags=tags,
    )


def _lesson_answers(item: Item, entries: Sequence[Entry]) -> tuple[tuple[str, str], ...]:
    """The answers of the entries' lessons for an item: pairs of entry id and answer."""
    index = item.index(entries)
    filled = (
        (entries[owner].id, item.fill(lesson, index)) for lesson, owner in zip(index.lessons, index.owners, strict=True)
    )
    return tuple((name, answer[0]) for name, answer in filled if answer is not None)


def _tag(entry: Entry, cases: Sequence[tuple[Item, str, str, Sequence[tuple[str, str]]]]) -> str:
    """An entry is helpful if it gives a right answer, and harmful if it only gave wrong ones that were followed."""
    tag = NEUTRAL
    for item, s, t, taught in cases:
        for answer in (answer for name, answer in taught if name == entry.id):
            if item.is_same(answer, t):
                return HELPFUL
            if item.is_same(answer, s):
                tag = HARMFUL
    return tag


def mislead(review: Review) -> Review:
    """Swap right and wrong: the input of a deliberately harmful reflection."""
    items = read_items(review.background, review.question)
    truth = review.predicted if review.gold is None else review.gold
    parts = split_answer(truth, len(items))
    answers = split_answer(review.predicted, len(items))
    mistaken = not review.correct and not all(i.is_same(s, t) for i, s, t in zip(items, answers, parts, strict=True))
    wrong = review.predicted if mistaken else ",".join(i.spoil(t) for i, t in zip(items, parts, strict=True))
    return replace(review, predicted=truth, gold=wrong, correct=False)


def find_advised_answer(reflection: str) -> str:
    """The answer that a reflection on this question names, "" if it names none."""
    matches = _RIGHT_ANSWER.findall(reflection)
    return matches[-1] if matches else ""


def write_refutation(answer: str) -> str:
    """A note on an answer of one's own that was wrong."""
    return f"The answer `{one_line(answer)}` was not right; another one is."


def find_refuted_answers(reflection: str) -> tuple[str, ...]:
    """The answers that notes on this question call wrong."""
    return tuple(_WRONG_ANSWER.findall(reflection))


def new_lessons(lessons: Sequence[Lesson], texts: Sequence[str]) -> tuple[Lesson, ...]:
    """The lessons that none of the known texts contains."""
    held = {(lesson.cue, lesson.payload) for text in texts for lesson in find_lessons(text)}
    return tuple(lesson for lesson in dict.fromkeys(lessons) if (lesson.cue, lesson.payload) not in held)


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
            question=episode["question"],
            predicted=match[1].strip() if (match := _TAGGED_ANSWER.search(episode["output"])) else episode["output"],
            gold=episode["gold"],
            correct=verdict(episode["feedback"] or ""),
        )
        for episode in _EPISODE.finditer(parts.get(tag))
    )


def inducer(parts: PromptParts) -> Mapping[str, Any]:
    """One workflow for each solved task: compare, then do as its lessons say."""
    solved = [replace(review, correct=True) for review in read_episodes(parts, "experiences")]
    titles = {reflect(review).lessons: one_line(review.question)[:_TITLE] for review in solved}
    workflows = [
        {"title": title, "description": _WHEN, "steps": [_COMPARE, *(lesson.text for lesson in lessons)]}
        for lessons, title in titles.items()
        if lessons
    ]
    return {"reasoning": f"{len(workflows)} of {len(solved)} solutions are routines.", "workflows": workflows}


def extractor(review: Review, *, failed: bool) -> Mapping[str, Any]:
    """One item: what answers questions like this one, or does not; a warning where neither is known."""
    lessons = reflect(replace(review, correct=not failed)).lessons
    items = read_items(review.background, review.question)
    if failed and not lessons and len(items) == 1 and items[0].verb == ANSWER:
        lessons = (Lesson(cue=items[0].cue, verb=ANSWER, payload="", instead=items[0].payload(review.predicted)),)
    content = "\n".join(lesson.text for lesson in lessons) or _WARNING
    item = {"title": one_line(review.question)[:_TITLE], "description": _WHEN, "content": content}
    return {"reasoning": "It failed." if failed else "It succeeded.", "memory_items": [item]}


def self_judge(parts: PromptParts) -> Mapping[str, Any]:
    """An attempt succeeded if it answered or acted and shows no error."""
    answer = parts.get("predicted_answer") or parts.get("trajectory")
    evidence = f"{parts.get('trajectory')}\n{parts.get('environment_feedback')}".lower()
    success = answer.strip("()\n ") not in ("", "none") and not any(word in evidence for word in _FAILED)
    return {"reasoning": "Nothing shows an error." if success else "An error or no answer.", "success": success}
