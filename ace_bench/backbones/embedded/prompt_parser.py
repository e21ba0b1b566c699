"""Splits a prompt into its parts; the reader has no other input than the messages.

Parts stand between tags, or under headings as in the authors' layout. Keywords of a heading decide which part it
announces, so no fixed wording is needed. Only the heading style that announces most parts counts; lines in other
styles, such as the section titles of a playbook, belong to the content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from ace_bench.backbones.embedded.lessons import Entry
from ace_bench.backbones.embedded.words import pieces
from ace_bench.core.types import Message

_TAGS = (
    "task", "playbook", "counters", "progress", "reflection", "question", "reasoning", "predicted_answer",
    "reference_answer", "environment_feedback", "bullets_used", "demonstrations",
    "instruction", "cheatsheet", "episodes", "schema", "reference_query", "predicted_query",
    "reference_solution", "trajectory", "recent_reflections", "past_answers", "experiences", "workflows",
    "memory_items", "earlier_notes", "proposals", "thoughts", "attempts",
    "earlier_attempt",
)  # fmt: skip
_FIRST = "task"
"""The part with which what is asked begins, and each worked example before it."""
_OPEN = re.compile(rf"^<({'|'.join(_TAGS)})>[ \t]*$", re.MULTILINE)
_BULLET = re.compile(
    r"^\[([\w.-]{1,80})\][ \t]*(?:\(([^()\n]{1,80})\)[ \t]*)?"
    r"(?:helpful=(\d{1,9})[ \t]+harmful=(\d{1,9})(?:[ \t]+neutral=\d+)?[ \t]*::[ \t]?)?",
    re.MULTILINE,
)
_TITLE = re.compile(r"^##[ \t]+([A-Z][A-Z0-9 &,/'()-]*):?[ \t]*$", re.MULTILINE)
_NOT_WORD = re.compile(r"\W+")
_SAMPLE = re.compile(r"(?:\A|\n\n---\n\n)\[Sample \d+\] ")
"""How a reflection of a batch begins."""
_COUNTER = re.compile(
    r"^\[?([\w.-]{1,80})\]?:?(?=[ \t]+(?:helpful|harmful))(?:[ \t]+helpful[ =:]*(\d+),?)?(?:[ \t]+harmful[ =:]*(\d+))?",
    re.MULTILINE,
)
_QUESTION = re.compile(r"^Question:", re.MULTILINE)
_SECTIONS = re.compile(r"^Sections:(.+)$", re.MULTILINE)
_OPERATION = re.compile(r'\{"type":[ ]?"([A-Z]+)"')

PLAIN = "plain"
_FORMS = (
    ("curator", re.compile(r'"operations":')),
    ("refiner", re.compile(r'"operation":')),
    ("reflector", re.compile(r'"(?:key_insight|bullet_tags)":')),
    ("rewriter", re.compile(r'"playbook":')),
    ("generator", re.compile(r'"final_answer":')),
    ("extractor", re.compile(r'"memory_items":')),
    ("judge", re.compile(r'"verdict":')),
    ("self_reflection", re.compile(r'"reflection":')),
    ("self_judge", re.compile(r'"success":')),
    ("inducer", re.compile(r'"workflows":')),
    ("cheatsheet", re.compile(r"</cheatsheet>")),
    ("tagged", re.compile(r"</answer>")),
)
"""Fields and tags that show the reply form, and thereby the role; the first that occurs counts."""


class PromptParts(msgspec.Struct, frozen=True, kw_only=True):
    """``blocks`` holds the tagged parts of a prompt, ``plain`` the rest; ``form`` is the reply form it asks for.

    ``collapse`` is the reader's setting of that name.
    """

    form: str
    plain: str
    blocks: Mapping[str, str]
    collapse: int | None = None

    def get(self, tag: str) -> str:
        """Text of a tagged part, "" if the prompt has none."""
        return self.blocks.get(tag, "")

    @property
    def question(self) -> str:
        """The question; a prompt without tags is a question as a whole."""
        return self.blocks.get("question", self.plain)

    @property
    def reflection(self) -> str:
        """The reflections; of a Reflector's whole reply, which the authors' loops show, the texts of its fields."""
        return "\n".join(_texts_of(reply) for reply in _SAMPLE.split(self.get("reflection")))

    @property
    def bullets(self) -> tuple[Entry, ...]:
        """The playbook's bullets with their counters, in the order of the prompt."""
        return read_playbook(self.get("playbook"), self.get("counters"))

    @property
    def sections(self) -> tuple[str, ...]:
        """Names of the playbook sections the prompt allows."""
        match = _SECTIONS.search(self.plain)
        if match is None:  # in the authors' layout only the playbook's own titles name them
            titles = _TITLE.findall(self.get("playbook"))
            return tuple(_NOT_WORD.sub("_", title.lower().replace("&", "and")).strip("_") for title in titles)
        return tuple(filter(None, (name.strip(" \t.") for name in match[1].split(","))))

    @property
    def operations(self) -> frozenset[str]:
        """Types of operation the prompt lists."""
        return frozenset(_OPERATION.findall(self.plain))


def _texts_of(reflection: str) -> str:
    try:
        reply = json.loads(reflection)
    except (ValueError, RecursionError):
        return reflection
    return (
        "\n".join(text for text in reply.values() if isinstance(text, str)) if isinstance(reply, dict) else reflection
    )


def parse_prompt(messages: Sequence[Message]) -> PromptParts:
    """Find the reply form and the tagged parts in all messages except the model's own."""
    text = "\n".join(message.content for message in messages if message.role != "assistant")
    blocks: dict[str, str] = {}
    outside, position = [], 0
    for opening in _OPEN.finditer(text):
        closing = text.find(f"\n</{opening[1]}>", opening.end())
        if closing >= 0 and opening.start() >= position:
            outside.append(text[position : opening.start()])
            if opening[1] == _FIRST and _FIRST in blocks:
                blocks.clear()  # what stood before was a worked example
            blocks.setdefault(opening[1], text[opening.end() : closing].strip("\n"))
            position = closing + len(opening[1]) + 4
    plain = "".join([*outside, text[position:]])
    form = _form(plain)
    if not blocks and form is not PLAIN:
        parts, remainder = parts_under_headings(plain)
        blocks.update(parts)
        if _form(remainder) is not PLAIN:  # the reply form may be in the last part
            form, plain = _form(remainder), remainder
    return PromptParts(form=form, plain=plain, blocks=blocks)


def _form(plain: str) -> str:
    return next((form for form, mark in _FORMS if mark.search(plain)), PLAIN)


@lru_cache(maxsize=8)
def read_playbook(playbook: str, counters: str) -> tuple[Entry, ...]:
    """Bullets of a playbook; counters in a separate block replace those beside the bullets."""
    counts = {id_: (int(helpful or 0), int(harmful or 0)) for id_, helpful, harmful in _COUNTER.findall(counters)}
    return tuple(
        replace(bullet, helpful=count[0], harmful=count[1]) if (count := counts.get(bullet.id)) else bullet
        for bullet in read_bullets(playbook)
    )


@lru_cache(maxsize=8)
def read_bullets(text: str) -> tuple[Entry, ...]:
    """Read ``[id] (section) content`` and ``[id] helpful=X harmful=Y :: content`` lines.

    A content ends before the next such line or section title.
    """
    return tuple(
        Entry(
            id=start[1],
            section=start[2] or "",
            content=_TITLE.split(behind, maxsplit=1)[0].strip(),
            helpful=int(start[3] or 0),
            harmful=int(start[4] or 0),
        )
        for start, behind in pieces(_BULLET, text)
    )


@lru_cache(maxsize=16)
def read_demonstrations(text: str) -> tuple[tuple[str, str], ...]:
    """Pairs of question and answer in a block of demonstrations."""
    parts = [part.partition("\nAnswer:") for part in _QUESTION.split(text)[1:]]
    return tuple(
        (question.partition("\nReasoning:")[0].strip(), answer.strip()) for question, label, answer in parts if label
    )


@lru_cache(maxsize=16)
def read_past_answers(text: str) -> tuple[tuple[str, str], ...]:
    """Pairs of question and answer in a block of earlier answers, without those that were wrong."""
    pairs = ((question, *answer.partition("\nFeedback:")) for question, answer in read_demonstrations(text))
    return tuple((question, answer) for question, answer, _, feedback in pairs if verdict(feedback) is not False)


def verdict(feedback: str) -> bool | None:
    """Read the verdict of an environment's feedback; ``None`` if it does not say right or wrong."""
    lowered = feedback.lower()
    if "not correct" in lowered or "incorrect" in lowered or "does not match" in lowered:
        return False
    return True if "correct" in lowered or "matches" in lowered else None


_STYLES = (
    re.compile(r"^[ \t]*(?:#{1,6}[ \t]*)?\*\*([^*\n:]{2,90}):?\*\*:?[ \t]*(.*)$", re.MULTILINE),
    re.compile(r"^[ \t]*#{1,6}[ \t]+([^\n:*]{2,90}):?[ \t]*()$", re.MULTILINE),
    re.compile(r"^[ \t]*[=-]{2,}[ \t]*([^\n:=-]{2,90}?):?[ \t]*[=-]{2,}[ \t]*()$", re.MULTILINE),
    re.compile(r"^[ \t]*</?([A-Za-z][\w -]{1,60})>[ \t]*()$", re.MULTILINE),
    re.compile(r"^[ \t]*(?:\d+[.)] |[-*] )?([A-Z][^\n:]{1,90}):[ \t]*(.*)$", re.MULTILINE),
)
_ASIDE = re.compile(r"\([^()]*\)|[^a-z ]")
_KINDS = tuple(
    (tag, re.compile(pattern))
    for tag, pattern in (
        ("bullets_used", r"(playbook|bullets).*\b(used|relied|cited)\b|\b(used|relied|cited)\b.*(playbook|bullets)"),
        ("", r"\b(stats|statistics|size|budget|rules|instructions?|format|progress|examples?|steps|note|training)\b"),
        ("playbook", r"^(\w+ ){0,3}playbook$"),
        ("reflection", r"\breflection\b"),
        ("reference_solution", r"\bsolution\b|(truth|reference) code"),
        ("reference_answer", r"\btruth\b|\b(reference|correct|expected|gold|true) answer"),
        ("predicted_answer", r"\b(predicted|prediction)\b|\b(models?|generators?)( s)? answer"),
        ("reasoning", r"\b(reasoning|rationale)\b"),
        ("environment_feedback", r"\b(feedback|report|execution error)\b"),
        ("trajectory", r"\b(trajectory|transcript|conversation|(generated|final) code)\b|final generated code"),
        ("task", r"\b(docs|documentation)\b"),
        ("question", r"^(\w+ ){0,3}(question|query)( context)?$|^(\w+ )?problem$"),
        ("", r"^(\w+ )?context$|\b(answers?|outputs?|reply|respond|response|json|task|guidelines|requirements)\b"),
    )
)
"""The part that a heading announces: the first tag whose keywords match, "" if it only ends the part before."""
_FEWEST = 2
_RULES = re.compile(r"\n[ \t]*(?:-{3,}|={3,}|\*{3,})[ \t]*\Z")
_FENCED = re.compile(r"\A(?:```\w*|\"{3})[ \t]*\n(.*?)\n?(?:```|\"{3})\Z", re.DOTALL)
_ASKED = re.compile(r"^(?:Task|Question): (\S.*)$", re.MULTILINE)


def parts_under_headings(text: str) -> tuple[Mapping[str, str], str]:
    """Return the parts of a prompt by the tags of the default prompts, and the rest of the text.

    There are none if fewer than two headings of one style announce a part.
    """
    best = max((_headings(text, style) for style in _STYLES), key=_count_parts)
    if _count_parts(best) < _FEWEST:
        return {}, text
    parts: dict[str, str] = {}
    outside, position = [], 0
    ends = [*(start for start, _, _ in best), len(text)][1:]
    for (_, body, tag), end in zip(best, ends, strict=True):
        if tag:
            parts[tag] = _strip_fence(text[body:end])
            outside.append(text[position:body])
            position = end
    outside.append(text[position:])
    match = _ASKED.search(parts.get("trajectory", ""))
    if match:
        parts.setdefault("question", match[1])
    return parts, "\n".join(outside)


def _count_parts(headings: list[tuple[int, int, str]]) -> int:
    return sum(tag != "" for _, _, tag in headings)


def _headings(text: str, style: re.Pattern[str]) -> list[tuple[int, int, str]]:
    """Headings of a style as (start, start of the part, tag); the first heading of a tag counts."""
    headings: list[tuple[int, int, str]] = []
    used_tags = {""}
    for match in style.finditer(text):
        tag = tag_of_heading(match[1])
        if match[0].lstrip().startswith("</"):
            tag = "" if headings and tag == headings[-1][2] else None
        if tag is None or (tag and tag in used_tags) or (tag == "" and match[2]):
            continue
        used_tags.add(tag)
        headings.append((match.start(), match.start(2) if match[2] else match.end(), tag))
    return headings


def tag_of_heading(heading: str) -> str | None:
    """Return the tag that a heading announces, "" if it only ends the part before, ``None`` for other headings."""
    title = " ".join(_ASIDE.sub(" ", heading.lower().replace("_", " ")).split())
    return next((tag for tag, kind in _KINDS if kind.search(title)), None)


def _strip_fence(text: str) -> str:
    """Remove a rule below a part and a fence around it."""
    inner = _RULES.sub("", text.strip()).strip()
    fenced = _FENCED.match(inner)
    return fenced[1] if fenced else inner
