"""The reader's replies in each role; every function maps the parts of a prompt to the text of a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ace_bench.backbones.embedded.items import choose
from ace_bench.backbones.embedded.kinds import entries_of, read_items
from ace_bench.backbones.embedded.kinds.queries import same_query
from ace_bench.backbones.embedded.kinds.tools import lists_tools, read_calling
from ace_bench.backbones.embedded.lessons import ANSWER, CALL, COMPUTE, QUERY, RUN, Lesson, condense, find_lessons
from ace_bench.backbones.embedded.prompt_parser import PromptParts, read_bullets, verdict
from ace_bench.backbones.embedded.reflecting import (
    Review,
    extractor,
    find_advised_answer,
    find_refuted_answers,
    inducer,
    mislead,
    new_lessons,
    read_episodes,
    reflect,
    self_judge,
    write_refutation,
)
from ace_bench.backbones.embedded.words import tokens
from ace_bench.core.prompts import estimate_tokens

_REMOVE_AT = 3
_DEFAULT_SECTION = "others"
_SECTIONS = {
    ANSWER: ("clue", "pattern", "feature", "indicator", "strateg"),
    COMPUTE: ("formula", "calculation", "strateg"),
    QUERY: ("quer", "sql", "schema", "strateg"),
    RUN: ("snippet", "code", "strateg"),
    CALL: ("tool", "api", "strateg"),
}
"""Words in the names of suitable playbook sections, best first."""
_MISLEAD = re.compile(r"\bWrite a harmful reflection\b")


def reply(parts: PromptParts) -> str:
    """Reply in the form that the prompt requests; every prompt gets a reply."""
    return _REPLIES[parts.form](parts)


def _answer_to(parts: PromptParts) -> tuple[str, str, Iterable[str]]:
    """Answer the question of a prompt: the answer, the reasoning, and the ids of the entries used.

    An answer named in the reflection takes precedence.
    """
    items, reflection = read_items(parts.get("task"), parts.question), parts.reflection
    advised = find_advised_answer(reflection)
    if advised:
        return advised, "As the reflection says.", ()
    wrong = find_refuted_answers(reflection) if len(items) == 1 else ()  # of several items, the wrong one is not known
    choices = [choose(item, entries_of(parts), wrong) for item in items]
    lines = [f"{best} by {', '.join(spoke) or 'the words alone'}." for best, spoke in choices]
    cited = dict.fromkeys(name for _, spoke in choices for name in spoke)
    return ",".join(best for best, _ in choices), "\n".join(lines), cited


def _generator(parts: PromptParts) -> str:
    answer, reasoning, cited = _answer_to(parts)
    return _json(reasoning=reasoning, bullet_ids=[*cited], final_answer=answer)


def _reply_with_tags(parts: PromptParts) -> str:
    answer, reasoning, _ = _answer_to(parts)
    return f"{reasoning}\n\n<answer>{answer}</answer>"


def review_of(parts: PromptParts) -> Review:
    """The attempt in the prompt of a reflector or a cheatsheet curator."""
    gold = parts.blocks.get("reference_answer", parts.blocks.get("reference_solution"))
    predicted = parts.get("predicted_answer") or parts.get("trajectory")
    correct = verdict(parts.get("environment_feedback"))
    if lists_tools(parts.get("task")):
        predicted, recovered = read_calling(predicted)
        correct = True if recovered and correct is None else correct
    if correct is None and gold is None and parts.collapse is not None:
        correct = True  # it believes itself
    return Review(
        background=parts.get("task"),
        question=parts.question,
        predicted=predicted,
        gold=gold,
        correct=correct,
        used=read_bullets(parts.get("bullets_used")),
    )


def _reflector(parts: PromptParts) -> str:
    review = review_of(parts)
    reflection = reflect(mislead(review) if _MISLEAD.search(parts.plain) else review)
    return _json(
        reasoning=reflection.cause or reflection.error,
        error_identification=reflection.error,
        root_cause_analysis=reflection.cause,
        correct_approach=reflection.approach,
        key_insight="\n".join(lesson.text for lesson in reflection.lessons),
        bullet_tags=[{"id": name, "tag": tag} for name, tag in reflection.tags],
    )


def _curator(parts: PromptParts) -> str:
    allowed = parts.operations or frozenset({"ADD"})
    operations: list[Mapping[str, str]] = []
    if "ADD" in allowed:
        lessons = find_lessons(parts.reflection or parts.get("proposals"))
        new = new_lessons(lessons, [bullet.content for bullet in parts.bullets])
        operations += [{"type": "ADD", "section": _section(lesson, parts), "content": lesson.text} for lesson in new]
    if "REMOVE" in allowed:
        spoilt = (b for b in parts.bullets if b.harmful >= _REMOVE_AT and b.harmful > b.helpful)
        operations += [{"type": "REMOVE", "id": bullet.id} for bullet in spoilt]
    why = "The reflection holds what the playbook does not say yet." if operations else "There is nothing to add."
    return _json(reasoning=why, operations=operations)


def _section(lesson: Lesson | None, parts: PromptParts) -> str:
    wanted = _SECTIONS[lesson.verb] if lesson else ()
    fitting = (section for word in wanted for section in parts.sections if word in section.lower())
    return next(fitting, parts.sections[0] if parts.sections else _DEFAULT_SECTION)


def _rewrite(entries: Sequence[tuple[str, str]], parts: PromptParts) -> Sequence[tuple[str, str]]:
    """Write entries anew. With ``collapse``, only the newest entry stays if they have too many tokens."""
    if parts.collapse is None:
        return condense(entries)
    return entries[-1:] if sum(estimate_tokens(content) for _, content in entries) > parts.collapse else entries


def _rewriter(parts: PromptParts) -> str:
    entries = [(bullet.section or _section(None, parts), bullet.content) for bullet in parts.bullets]
    new = new_lessons(find_lessons(parts.reflection), [content for _, content in entries])
    kept = _rewrite([*entries, *((_section(lesson, parts), lesson.text) for lesson in new)], parts)
    text = "\n".join(_indent(f"({section}) {content}") for section, content in kept)
    return _json(reasoning=f"Kept {len(kept)} of {len(entries) + len(new)} entries.", playbook=text)


def _cheatsheet(parts: PromptParts) -> str:
    """Reply with the whole new cheatsheet."""
    notes = f"\n{parts.get('cheatsheet')}".split("\n- ")[1:]
    has_attempt = "predicted_answer" in parts.blocks or "trajectory" in parts.blocks
    reviews = [*([review_of(parts)] if has_attempt else []), *read_episodes(parts, "episodes")]
    taught = [lesson for review in reviews for lesson in reflect(review).lessons]
    entries = [*notes, *(lesson.text for lesson in new_lessons(taught, notes))]
    kept = _rewrite([("", entry) for entry in entries], parts)
    text = "\n".join(_indent(f"- {entry}") for _, entry in kept)
    return f"Kept {len(kept)} of {len(entries)} entries.\n\n<cheatsheet>\n{text}\n</cheatsheet>"


_ATTEMPT = re.compile(
    r"^## Attempt \d+(?:: (succeeded|failed))?\n(?:.*?^Answer: )?(.*?)"
    r"(?=^(?:Feedback|In the eyes of .*?): |\s*^## Attempt |\s*\Z)",
    re.MULTILINE | re.DOTALL,
)


def _extractor(parts: PromptParts) -> str:
    """Learn from the attempt, or of several from the first that succeeded, else from the first."""
    review, failed = review_of(parts), "why the attempt failed" in parts.plain
    if attempts := _ATTEMPT.findall(parts.get("attempts")):
        outcome, text = next((attempt for attempt in attempts if attempt[0] == "succeeded"), attempts[0])
        review, failed = replace(review, predicted=text.strip()), outcome != "succeeded"
    return _json(**extractor(review, failed=failed))


_NUMBERED = re.compile(r"^\[(\d+)\]\n(.*?)(?=\n\n\[\d+\]\n|\Z)", re.MULTILINE | re.DOTALL)


def _refiner(parts: PromptParts) -> str:
    """Drop attempts that failed, then act."""
    answers = _NUMBERED.findall(parts.get("past_answers"))
    failed = [int(number) for number, text in answers if verdict(text.rpartition("\nFeedback:")[2]) is False]
    return _json(operation="refine", drop=failed) if failed else _json(operation="act")


def _judge(parts: PromptParts) -> str:
    if references := parts.get("reference_answer").lower():
        predicted = tokens(parts.get("predicted_answer").lower())
        is_same = any(tokens(line) == predicted for line in references.splitlines())
        ignored, compared = "case and punctuation", "answers"
    else:
        is_same = same_query(parts.get("predicted_query"), parts.get("reference_query"))
        ignored, compared = "white space, case, quoting and the order of conditions", "queries"
    reason = f"Apart from {ignored}, the {compared} are {'' if is_same else 'not '}the same."
    return _json(reason=reason, verdict="correct" if is_same else "incorrect")


def _indent(entry: str) -> str:
    """An entry with its continuation lines indented, to separate them from the next entry."""
    return entry.replace("\n", "\n  ")


def _json(**fields: object) -> str:
    # Escaped to ASCII, because a reply with a lone surrogate could not be encoded.
    return json.dumps(fields)


_REPLIES: Mapping[str, Callable[[PromptParts], str]] = {
    "generator": _generator,
    "reflector": _reflector,
    "curator": _curator,
    "rewriter": _rewriter,
    "refiner": _refiner,
    "judge": _judge,
    "self_reflection": lambda parts: _json(reflection=write_refutation(parts.get("predicted_answer"))),
    "self_judge": lambda parts: _json(**self_judge(parts)),
    "inducer": lambda parts: _json(**inducer(parts)),
    "extractor": _extractor,
    "tagged": _reply_with_tags,
    "cheatsheet": _cheatsheet,
    "plain": lambda parts: _answer_to(parts)[0],
}
