"""Tagging: choose one of many options for each number asked about (FiNER)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ace_rehearsal.reader.skills.base import HARMFUL, HELPFUL, NEUTRAL, Answer, Diagnosis, Lesson, Review
from ace_rehearsal.reader.skills.tagging.lessons import (
    TagLesson,
    gather_lessons,
    likenesses,
    read_lessons,
    same_lesson,
    spoken_lessons,
    word_lesson,
)
from ace_rehearsal.reader.skills.tagging.options import OptionSet, own_words, read_options
from ace_rehearsal.reader.skills.tagging.passage import Passage, read_passage

_ITEM = re.compile(
    r'^[ \t]*(\d+)[.)][^"\n]{0,120}"([^"\n]{1,80})"[^"\n]{0,40}:\s*"?(.*?)'
    r"(?=\n[ \t]*\d+[.)]|\n[ \t]*\n|\n\w[\w ]{0,40}:|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MOST_ITEMS = 100
_ADVICE = re.compile(r"Number (\d+): (?:use|try|keep) (\w+)")
_DOUBTS = re.compile(r"Number (\d+): \w+, next (\w+), lead ([\d.]+)")
_RULED_OUT = re.compile(r"Number (\d+): ruled out ([\w, ]+)")

LESSON_WEIGHT, LESSON_POWER, LEAST_LIKENESS, VOTERS = 2.5, 2.0, 0.1, 16
AGAINST, DOUBT = 0.5, 0.15
"""What a lesson takes from the tag it calls wrong, and what a doubt takes from the tag it doubts."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The best option for one number, the runner-up, and the lessons that spoke for the best."""

    best: str
    second: str
    lead: float
    cited: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TaggingCase:
    """Numbered questions over one list of options."""

    options: OptionSet
    passages: tuple[Passage, ...]

    def answer(self, lessons: Sequence[Lesson], advice: str) -> Answer:
        """Choose a tag for each number; advice on a number overrides the evidence."""
        advised = {int(number): tag for number, tag in _ADVICE.findall(advice)}
        ruled_out = {int(number): tags for number, tags in _RULED_OUT.findall(advice)}
        taught = gather_lessons(tuple(lesson.content for lesson in lessons))
        tags: list[str] = []
        lines: list[str] = []
        cited: dict[str, None] = {}
        for number, passage in enumerate(self.passages, start=1):
            choice = choose(self.options, passage, lessons, taught)
            tags.append(advised.get(number, choice.best))
            cited.update(dict.fromkeys(choice.cited))
            because = f" by {', '.join(choice.cited)}" if choice.cited else " by the words of its name"
            if number in advised:
                because = " as the reflection says"
            lines.append(f"Number {number}: {tags[-1]}, next {choice.second}, lead {choice.lead:.3f};{because}.")
            if number in ruled_out:
                lines.append(f"Number {number}: ruled out {ruled_out[number].strip()}.")
        return Answer(text=",".join(tags), reasoning="\n".join(lines), cited=tuple(cited))

    def lesson(self, review: Review) -> Diagnosis:
        """Compare position by position where the gold is shown; otherwise doubt the least certain tag."""
        predicted = _split(review.predicted, len(self.passages))
        if review.gold is not None:
            return self._against_gold(predicted, _split(review.gold, len(self.passages)), review)
        if review.correct is False:
            return self._in_doubt(predicted, review)
        tags = tuple((used.id, HELPFUL if review.correct else NEUTRAL) for used in review.used)
        verdict = "Nothing went wrong." if review.correct else "Nothing shows that a tag is wrong."
        return Diagnosis(error=verdict, cause="", approach="Keep the tags.", tags=tags)

    def _against_gold(self, predicted: Sequence[str], gold: Sequence[str], review: Review) -> Diagnosis:
        wrong = [i for i, (said, true) in enumerate(zip(predicted, gold, strict=True)) if said.lower() != true.lower()]
        insights = tuple(
            word_lesson(self.passages[i], gold[i], instead=predicted[i] if predicted[i] in self.options.places else "")
            for i in wrong
            if gold[i]
        )
        steps = "\n".join(f"Number {i + 1}: use {tag}" for i, tag in enumerate(gold) if tag)
        errors = "; ".join(f"number {i + 1} was tagged {predicted[i] or 'not at all'}" for i in wrong)
        return Diagnosis(
            error=f"Wrong tags: {errors}." if wrong else "Nothing went wrong.",
            cause="Words near the number were read as naming another tag." if wrong else "",
            approach=steps if wrong else "Keep the tags.",
            insights=tuple(dict.fromkeys(insights)),
            tags=tuple((used.id, self._verdict(used, predicted, gold)) for used in review.used),
        )

    def _verdict(self, used: Lesson, predicted: Sequence[str], gold: Sequence[str]) -> str:
        """Judge an entry where it fits best among the numbers that were given its tag."""
        taught = {lesson.tag.lower() for lesson in read_lessons(used.content) if not lesson.doubtful}
        right = sum(
            said.lower() in taught and said.lower() == true.lower() for said, true in zip(predicted, gold, strict=True)
        )
        wrong = sum(
            said.lower() in taught and said.lower() != true.lower() for said, true in zip(predicted, gold, strict=True)
        )
        if right == wrong:
            return NEUTRAL
        return HELPFUL if right > wrong else HARMFUL

    def _in_doubt(self, predicted: Sequence[str], review: Review) -> Diagnosis:
        """Some tag is wrong and nobody says which: name the least certain one and another to try."""
        doubts = {int(n): (second, float(lead)) for n, second, lead in _DOUBTS.findall(review.reasoning)}
        tried = {int(n): tags.split(", ") for n, tags in _RULED_OUT.findall(review.reasoning)}
        open_numbers = [n for n in doubts if n <= len(predicted) and n not in tried]
        tags = tuple((used.id, NEUTRAL) for used in review.used)
        if not open_numbers:
            return Diagnosis(
                error="At least one tag is wrong; which one cannot be told.",
                cause="The evidence for the tags was thin.",
                approach="Doubt the tags that rest on few words.",
                tags=tags,
            )
        number = min(open_numbers, key=lambda n: (doubts[n][1], n))
        said, second = predicted[number - 1], doubts[number][0]
        seen = "".join(f"Number {n}: ruled out {', '.join(done)}\n" for n, done in tried.items())
        return Diagnosis(
            error=f"At least one tag is wrong, most likely number {number} ({said}).",
            cause="Its lead over the next option was the smallest.",
            approach=f"Number {number}: try {second}\n{seen}Number {number}: ruled out {said}",
            insights=(word_lesson(self.passages[number - 1], said, instead=second, doubtful=True),),
            tags=tags,
        )

    def demonstrated(self, answer: str) -> tuple[str, ...]:
        """One lesson a number."""
        given = _split(answer, len(self.passages))
        return tuple(word_lesson(p, tag) for p, tag in zip(self.passages, given, strict=True) if tag)


def choose(
    options: OptionSet, passage: Passage, lessons: Sequence[Lesson], taught: Sequence[tuple[int, TagLesson]]
) -> Choice:
    """Weigh the options' own words and the lessons most like the passage; ``taught`` is what the lessons say."""
    scores = own_words(options, passage)
    speakers: dict[str, list[str]] = {}
    for likeness, number in likenesses(taught, passage)[:VOTERS]:
        if likeness < LEAST_LIKENESS:
            break
        owner, lesson = lessons[taught[number][0]], taught[number][1]
        vote = LESSON_WEIGHT * likeness**LESSON_POWER * owner.trust
        for tag, share in _votes(lesson.tag, lesson.instead, lesson.doubtful):
            if tag in options.places:
                scores[options.places[tag]] += share * vote
        if not lesson.doubtful:
            speakers.setdefault(lesson.tag, []).append(owner.id)
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    best, second = options.names[ranked[0]], options.names[ranked[1]]
    lead = scores[ranked[0]] - scores[ranked[1]]
    return Choice(best=best, second=second, lead=lead, cited=tuple(dict.fromkeys(speakers.get(best, []))))


def _votes(tag: str, instead: str, doubtful: bool) -> tuple[tuple[str, float], ...]:
    if doubtful:
        return (tag, -DOUBT), (instead, DOUBT / 2)
    return (tag, 1.0), (instead, -AGAINST)


def _split(answer: str, count: int) -> list[str]:
    parts = [part.strip() for part in answer.strip().split(",")]
    return (parts + [""] * count)[:count]


class Tagging:
    """Skill: tag numbers in sentences with names from a list."""

    name = "tagging"

    def recognise(self, background: str, question: str) -> TaggingCase | None:
        """Recognise numbered entities in sentences below a list of options."""
        options = read_options(background or question) or read_options(question)
        if options is None:
            return None
        items = _ITEM.findall(question)[:_MOST_ITEMS]
        if not items:
            return None
        return TaggingCase(
            options=options, passages=tuple(read_passage(item[1], item[2].rstrip(' \t"')) for item in items)
        )

    def insights(self, text: str) -> tuple[str, ...]:
        """Tagging lessons in a text."""
        return spoken_lessons(text)

    def section(self, insight: str) -> tuple[str, ...]:
        """Doubts belong to the mistakes, the rest to the clues."""
        if insight.startswith("Doubtful"):
            return ("mistake", "pitfall", "other")
        return ("clue", "indicator", "strateg")

    def repeats(self, insight: str, known: str) -> bool:
        """Whether both teach the same tag for nearly the same words."""
        return insight == known or same_lesson(insight, known)
