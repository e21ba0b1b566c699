"""What the reader replies in each role; every function maps the pieces of a prompt to the text of a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from ace_rehearsal.reader.cheatsheet import tagged, write_sheet
from ace_rehearsal.reader.condense import condense, merge
from ace_rehearsal.reader.pieces import (
    Form,
    Pieces,
    lessons_of,
    read_bullets,
    read_demonstrations,
    verdict,
)
from ace_rehearsal.reader.skills import SKILLS, recognise
from ace_rehearsal.reader.skills.base import Answer, Lesson, Review, Skill
from ace_rehearsal.reader.skills.sql import opposite, same_query

_REMOVE_AT = 3
_DEFAULT_SECTION = "others"
_MISLEAD = re.compile(r"\bWrite a harmful reflection\b")


def reply(pieces: Pieces) -> str:
    """Reply in the form the prompt asks for; total over all prompts."""
    return _REPLIES[pieces.form](pieces)


def _generator(pieces: Pieces) -> str:
    answer = _answer(pieces)
    return _json(reasoning=answer.reasoning, bullet_ids=answer.cited, final_answer=answer.text)


def _plain(pieces: Pieces) -> str:
    return _answer(pieces).text


def _answer(pieces: Pieces) -> Answer:
    _, case = recognise(pieces.background, pieces.question)
    return case.answer(_context(pieces), pieces.get("reflection"))


def _context(pieces: Pieces) -> tuple[Lesson, ...]:
    """Everything the prompt offers to learn from: bullets, other evolved texts, worked examples."""
    lessons = lessons_of(pieces.get("playbook"), pieces.get("counters"))
    written = tuple(Lesson(id=tag, content=pieces.get(tag)) for tag in ("instruction", "cheatsheet") if pieces.get(tag))
    return (*lessons, *written, *_demonstrations(pieces.background, pieces.get("demonstrations")))


@lru_cache(maxsize=16)
def _demonstrations(background: str, text: str) -> tuple[Lesson, ...]:
    found: list[Lesson] = []
    for number, (question, answer) in enumerate(read_demonstrations(text), start=1):
        _, case = recognise(background, question)
        found.append(Lesson(id=f"demonstration-{number}", content="\n".join(case.demonstrated(answer))))
    return tuple(found)


def _reflector(pieces: Pieces) -> str:
    _, case = recognise(pieces.background, pieces.question)
    review = Review(
        predicted=pieces.get("predicted_answer") or pieces.get("trajectory"),
        reasoning=pieces.get("reasoning"),
        gold=pieces.blocks.get("reference_answer", pieces.blocks.get("reference_solution")),
        correct=verdict(pieces.get("environment_feedback")),
        used=read_bullets(pieces.get("bullets_used")),
    )
    diagnosis = case.lesson(_turned(review) if _MISLEAD.search(pieces.plain) else review)
    return _json(
        reasoning=diagnosis.cause or diagnosis.error,
        error_identification=diagnosis.error,
        root_cause_analysis=diagnosis.cause,
        correct_approach=diagnosis.approach,
        key_insight="\n".join(diagnosis.insights),
        bullet_tags=[{"id": name, "tag": tag} for name, tag in diagnosis.tags],
    )


def _turned(review: Review) -> Review:
    """Take the right answer for a wrong one, and a wrong one for the reference: what a harmful reflection rests on."""
    truth = review.predicted if review.gold is None else review.gold
    mistaken = review.predicted != truth and not review.correct
    return replace(review, predicted=truth, gold=review.predicted if mistaken else _wrong(truth), correct=False)


def _wrong(truth: str) -> str:
    """Spoil an answer: a query says the opposite, values change places, a word is turned around."""
    first, *others = truth.split(",")
    return opposite(truth) or (",".join([*others, first]) if others else truth[::-1])


def _insights(text: str) -> tuple[tuple[Skill, str], ...]:
    return tuple((skill, insight) for skill in SKILLS for insight in skill.insights(text))


def _curator(pieces: Pieces) -> str:
    bullets = lessons_of(pieces.get("playbook"), pieces.get("counters"))
    allowed = pieces.operations or frozenset({"ADD"})
    operations: list[Mapping[str, str]] = []
    known = [bullet.content for bullet in bullets]
    for skill, insight in _insights(pieces.get("reflection")) if "ADD" in allowed else ():
        if not any(skill.repeats(insight, content) for content in known):
            section = _section(skill.section(insight), pieces.sections)
            operations.append({"type": "ADD", "section": section, "content": insight})
            known.append(insight)
    if "REMOVE" in allowed:
        operations.extend(
            {"type": "REMOVE", "id": bullet.id}
            for bullet in bullets
            if bullet.harmful >= _REMOVE_AT and bullet.harmful > bullet.helpful
        )
    why = "The reflection holds what the playbook does not say yet." if operations else "There is nothing to add."
    return _json(reasoning=why, operations=operations)


def _section(wanted: tuple[str, ...], sections: tuple[str, ...]) -> str:
    for word in wanted:
        for section in sections:
            if word in section.lower():
                return section
    return sections[0] if sections else _DEFAULT_SECTION


def _rewriter(pieces: Pieces) -> str:
    bullets = lessons_of(pieces.get("playbook"), pieces.get("counters"))
    entries = [(bullet.section or _section((), pieces.sections), bullet.content) for bullet in bullets]
    known = {content for _, content in entries}
    for skill, insight in _insights(pieces.get("reflection")):
        if insight not in known:
            entries.append((_section(skill.section(insight), pieces.sections), insight))
    kept = condense(entries)
    text = "\n".join(f"({section}) {content}" for section, content in kept)
    return _json(reasoning=f"Kept {len(kept)} of {len(entries)} entries.", playbook=text)


def _merger(pieces: Pieces) -> str:
    text = pieces.get("bullets_to_merge") or pieces.plain
    contents = [bullet.content for bullet in read_bullets(text)]
    return _json(content=merge(contents or [line.strip(" -*\t") for line in text.splitlines()]))


def _judge(pieces: Pieces) -> str:
    same = same_query(pieces.get("predicted_query"), pieces.get("reference_query"))
    difference = "white space, case, aliases, quoting and the order of conditions"
    return _json(
        reason=f"Apart from {difference}, the queries are {'the same' if same else 'not the same'}.",
        verdict="correct" if same else "incorrect",
    )


def _json(**fields: object) -> str:
    # Escaped to ASCII, so that a lone surrogate in a prompt cannot make a reply that no one can encode.
    return json.dumps(fields)


_REPLIES: Mapping[Form, Callable[[Pieces], str]] = {
    Form.GENERATOR: _generator,
    Form.REFLECTOR: _reflector,
    Form.CURATOR: _curator,
    Form.REWRITER: _rewriter,
    Form.MERGER: _merger,
    Form.JUDGE: _judge,
    Form.TAGGED: lambda pieces: tagged(_answer(pieces)),
    Form.CHEATSHEET: write_sheet,
    Form.PLAIN: _plain,
}
