"""Diagnosis: choose one of many numbered options for a patient profile (DDXPlus)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ace_rehearsal.reader.skills.base import HARMFUL, HELPFUL, NEUTRAL, Answer, Diagnosis, Lesson, Review
from ace_rehearsal.reader.skills.diagnosis.lessons import (
    gather_lessons,
    read_lessons,
    same_lesson,
    spoken_lessons,
    word_lesson,
)
from ace_rehearsal.reader.skills.diagnosis.profile import (
    OptionList,
    features,
    read_findings,
    read_options,
    split_off_profile,
)
from ace_rehearsal.reader.skills.likeness import likenesses
from ace_rehearsal.reader.words import stem

_ABOUT = re.compile(r"\bdiagnos", re.IGNORECASE)
_FIRST = re.compile(r"(?<!\d)(\d{1,3})\.")
_ADVICE = re.compile(r"(?:The diagnosis is|Try) (\d{1,3})\.")
_LEAD = re.compile(r"lead (\d+\.\d+)")
_NEXT = re.compile(r"Next best: ([\d, ]+)\.")
_RULED_OUT = re.compile(r"Ruled out: ([\d, ]+)\.")

LESSON_WEIGHT, LESSON_POWER, VOTERS = 4.0, 2.0, 8
AGAINST, PERHAPS, DOUBT = 0.3, 0.4, 0.4
"""Shares of a vote: what a lesson takes from the option it calls wrong, what a doubtful one gives and takes."""

THIN = 0.6
"""A lead over the next option below which a right answer is worth a lesson of its own."""

_SHOWN = 6


@dataclass(frozen=True, kw_only=True)
class DiagnosisCase:
    """A patient's findings over a list of options."""

    options: OptionList
    findings: tuple[str, ...]

    def answer(self, lessons: Sequence[Lesson], advice: str) -> Answer:
        """Choose by the lessons about patients most like this one; advice overrides the evidence."""
        ranked, scores, speakers = self._ranked(lessons)
        advised = [int(number) for number in _ADVICE.findall(advice) if int(number) in self.options.names]
        best = advised[-1] if advised else ranked[0]
        cited = tuple(dict.fromkeys(speakers.get(best, [])))
        because = "as the reflection says" if advised else f"by {', '.join(cited)}" if cited else "by its words"
        rest = ", ".join(str(number) for number in ranked[:_SHOWN] if number != best)
        lead = max(scores[best] - max(scores[number] for number in ranked[:2] if number != best), 0.0)
        lines = [f"{self.options.worded(best)} {because}, lead {lead:.2f}.", f"Next best: {rest}."]
        lines += [f"Ruled out: {numbers}." for numbers in _RULED_OUT.findall(advice)[-1:]]
        return Answer(text=self.options.worded(best), reasoning="\n".join(lines), cited=cited)

    def _ranked(self, lessons: Sequence[Lesson]) -> tuple[list[int], dict[int, float], dict[int, list[str]]]:
        """Rank the options; beside the order stand their scores and the lessons that spoke for each."""
        scores = self._by_words()
        speakers: dict[int, list[str]] = {}
        taught = gather_lessons(tuple(lesson.content for lesson in lessons))
        found = likenesses(features(self.findings), [lesson for _, lesson in taught])
        for likeness, place in sorted(found, key=lambda item: (-item[0], item[1]))[:VOTERS]:
            owner, lesson = lessons[taught[place][0]], taught[place][1]
            vote = LESSON_WEIGHT * likeness**LESSON_POWER * owner.trust
            votes = [(lesson.number, PERHAPS if lesson.doubtful else 1.0)]
            votes += [(other, -DOUBT if lesson.doubtful else -AGAINST) for other in lesson.others]
            for number, share in votes:
                if number in scores:
                    scores[number] += share * vote
            speakers.setdefault(lesson.number, []).append(owner.id)
        return sorted(scores, key=lambda number: (-scores[number], number)), scores, speakers

    def _by_words(self) -> dict[int, float]:
        """Score every option by the share of its own words that the profile has; at most 0.5."""
        own = {stem(word) for finding in self.findings for word in finding.split()}
        return {number: len(words & own) / (len(words) + 1.0) / 2 for number, words in self.options.stems.items()}

    def lesson(self, review: Review) -> Diagnosis:
        """Compare with the gold where it is shown; told only that it is wrong, rule it out and name the next best."""
        said = self._number(review.predicted)
        gold = None if review.gold is None else self._number(review.gold)
        right = review.correct if gold is None else said == gold
        tags = tuple((used.id, _verdict(used, right, said)) for used in review.used)
        if right is None:
            return Diagnosis(error="Nothing shows an error.", cause="", approach="Keep the diagnosis.", tags=tags)
        if right:
            return self._confirmed(said, review, tags)
        taken_for = "" if said is None else self.options.worded(said)
        if gold is None:
            return self._in_doubt(taken_for, review.reasoning, tags)
        return Diagnosis(
            error=f"Wrong: {taken_for or 'no option was named'}.",
            cause="The findings were read as pointing to another diagnosis.",
            approach=f"The diagnosis is {self.options.worded(gold)}",
            insights=(word_lesson(self.findings, self.options.worded(gold), [taken_for] if taken_for else ()),),
            tags=tags,
        )

    def _confirmed(self, said: int | None, review: Review, tags: tuple[tuple[str, str], ...]) -> Diagnosis:
        """Keep what led to a right answer where no entry taught it, or hardly: next time it might not come by luck."""
        sure = any(
            lesson.number == said and not lesson.doubtful
            for entry in review.used
            for lesson in read_lessons(entry.content)
        ) and any(float(lead) >= THIN for lead in _LEAD.findall(review.reasoning))
        insights = () if said is None or sure else self._learnt(said)
        return Diagnosis(error="Nothing went wrong.", cause="", approach="Keep it.", insights=insights, tags=tags)

    def _in_doubt(self, taken_for: str, reasoning: str, tags: tuple[tuple[str, str], ...]) -> Diagnosis:
        """Rule out what was tried, and name the next best option that is left."""
        tried = [*_listed(_RULED_OUT, reasoning), *_listed(_FIRST, taken_for)]
        left = [n for n in _listed(_NEXT, reasoning) if n in self.options.names and n not in tried]
        error = f"Wrong: {taken_for or 'no option was named'}."
        if not left:
            return Diagnosis(error=error, cause="The evidence was thin.", approach="Look again.", tags=tags)
        known = [self.options.worded(n) for n in tried if n in self.options.names]
        return Diagnosis(
            error=error,
            cause="The evidence was thin.",
            approach=f"Ruled out: {', '.join(map(str, tried))}.\nTry {self.options.worded(left[0])}",
            insights=(word_lesson(self.findings, self.options.worded(left[0]), known, doubtful=True),),
            tags=tags,
        )

    def _number(self, answer: str) -> int | None:
        """The option an answer names by its number."""
        found = _FIRST.search(answer)
        return int(found[1]) if found and int(found[1]) in self.options.names else None

    def demonstrated(self, answer: str) -> tuple[str, ...]:
        """One lesson, where the answer names an option."""
        number = self._number(answer)
        return () if number is None else self._learnt(number)

    def _learnt(self, number: int) -> tuple[str, ...]:
        return (word_lesson(self.findings, self.options.worded(number), ()),)


def _listed(pattern: re.Pattern[str], text: str) -> list[int]:
    """Numbers in what a pattern finds, each once."""
    return list(dict.fromkeys(int(number) for found in pattern.findall(text) for number in re.findall(r"\d+", found)))


def _verdict(used: Lesson, right: bool | None, said: int | None) -> str:
    """Judge an entry by whether it spoke for what was answered; one that only doubts can help and do no harm."""
    doubts = [lesson.doubtful for lesson in read_lessons(used.content) if lesson.number == said]
    if right is None or not doubts:
        return NEUTRAL
    return HELPFUL if right else NEUTRAL if all(doubts) else HARMFUL


class Diagnosing:
    """Skill: name the diagnosis of a patient."""

    name = "diagnosis"

    def recognise(self, background: str, question: str) -> DiagnosisCase | None:
        """Recognise a profile below a numbered list, in a prompt that speaks of a diagnosis."""
        shared = background or question
        options = read_options(shared) if _ABOUT.search(shared) else None
        if options is None:
            return None
        findings = read_findings(question if background else split_off_profile(question))
        return DiagnosisCase(options=options, findings=findings) if findings else None

    def insights(self, text: str) -> tuple[str, ...]:
        """Diagnosis lessons in a text."""
        return spoken_lessons(text)

    def section(self, insight: str) -> tuple[str, ...]:
        """Doubts belong to the mistakes, the rest to the patterns."""
        if insight.startswith("Doubtful"):
            return ("mistake", "pitfall", "other")
        return ("pattern", "feature", "strateg")

    def repeats(self, insight: str, known: str) -> bool:
        """Whether both name the same diagnosis for the same findings."""
        return insight == known or same_lesson(insight, known)
