"""Prompts whose parts stand under headings rather than in tags: the authors' layout, and others like it.

What a heading announces is told by its words, so that no particular wording is needed. Of the styles of heading that a
prompt uses, only the one that announces most of what a role is shown counts: lines that look like headings in another
style, such as the section titles of a playbook, belong to what is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_STYLES = (
    re.compile(r"^[ \t]*(?:#{1,6}[ \t]*)?\*\*([^*\n:]{2,90}):?\*\*:?[ \t]*(.*)$", re.MULTILINE),
    re.compile(r"^[ \t]*#{1,6}[ \t]+([^\n:*]{2,90}):?[ \t]*()$", re.MULTILINE),
    re.compile(r"^[ \t]*[=-]{2,}[ \t]*([^\n:=-]{2,90}?):?[ \t]*[=-]{2,}[ \t]*()$", re.MULTILINE),
    re.compile(r"^[ \t]*</?([A-Za-z][\w -]{1,60})>[ \t]*()$", re.MULTILINE),
    re.compile(r"^[ \t]*(?:\d+[.)] |[-*] )?([A-Z][^\n:]{1,90}):[ \t]*(.*)$", re.MULTILINE),
)
_WORD = re.compile(r"[a-z]+")
_ASIDE = re.compile(r"\([^()]*\)")
_ENDS = frozenset(
    """answer answers output reply respond response format json instruction instructions task rules guidelines
    statistics stats training budget progress requirements example examples steps important note""".split()  # noqa: SIM905
)
"""Words of headings that announce something else, and so end what stood before."""


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """Headings of one kind: the words they have, of which some they have one, and how long they may be."""

    tag: str
    all_of: frozenset[str] = frozenset()
    any_of: frozenset[str] = frozenset()
    others: int = 5


def _kind(tag: str, all_of: str = "", any_of: str = "", others: int = 5) -> _Kind:
    return _Kind(tag=tag, all_of=frozenset(all_of.split()), any_of=frozenset(any_of.split()), others=others)


_KINDS = (
    _kind("bullets_used", "playbook", "used part parts relied cited", 13),
    _kind("bullets_used", "bullets", "used relied cited", 13),
    _kind("", "playbook", "stats statistics size budget rules instructions"),
    _kind("playbook", "playbook", others=3),
    _kind("", "reflection", "instructions format rules"),
    _kind("reflection", "reflection", others=3),
    _kind("reference_solution", "", "solution"),
    _kind("reference_solution", "code", "truth reference"),
    _kind("reference_answer", "truth"),
    _kind("reference_answer", "answer", "reference correct expected gold true"),
    _kind("predicted_answer", "", "predicted prediction"),
    _kind("predicted_answer", "answer", "model models generator generators"),
    _kind("reasoning", "", "reasoning rationale"),
    _kind("environment_feedback", "", "feedback report"),
    _kind("environment_feedback", "execution error"),
    _kind("trajectory", "", "trajectory transcript conversation"),
    _kind("trajectory", "code", "generated final"),
    _kind("task", "", "docs documentation"),
    _kind("", "question", "answer answering instructions format output"),
    _kind("question", "", "question query", 3),
    _kind("question", "problem", others=1),
    _kind("", "context", others=1),
)
"""The first that fits tells what a heading announces."""
_FEWEST = 2
_RULES = re.compile(r"\n[ \t]*(?:-{3,}|={3,}|\*{3,})[ \t]*\Z")
_FENCED = re.compile(r"\A(?:```\w*|\"{3})[ \t]*\n(.*?)\n?(?:```|\"{3})\Z", re.DOTALL)
_ASKED = re.compile(r"^(?:Task|Question): (\S.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class _Heading:
    """Where a heading begins, where its part begins, and what it announces, "" for what ends a part."""

    start: int
    body: int
    tag: str


def parts_under_headings(text: str) -> tuple[Mapping[str, str], str]:
    """Return the parts of a prompt by the tags that our own prompts would put them in, and the rest of the text.

    There are none where fewer than two headings of one style announce a part.
    """
    best: tuple[_Heading, ...] = ()
    for style in _STYLES:
        found = tuple(_headings(text, style))
        if len({heading.tag for heading in found if heading.tag}) > len({one.tag for one in best if one.tag}):
            best = found
    if len({heading.tag for heading in best if heading.tag}) < _FEWEST:
        return {}, text
    parts: dict[str, str] = {}
    outside, position = [], 0
    ends = [*(heading.start for heading in best), len(text)][1:]
    for heading, end in zip(best, ends, strict=True):
        if heading.tag:
            parts[heading.tag] = _bare(text[heading.body : end])
            outside.append(text[position : heading.body])
            position = end
    outside.append(text[position:])
    asked = _ASKED.search(parts.get("trajectory", ""))
    if asked:
        parts.setdefault("question", asked[1])
    return parts, "\n".join(outside)


def _headings(text: str, style: re.Pattern[str]) -> Iterator[_Heading]:
    """Yield the headings of a style; what was announced before is announced no second time."""
    seen = {""}
    within = ""
    for match in style.finditer(text):
        tag = announced(match[1])
        closing = match[0].lstrip().startswith("</")
        if closing:
            tag = "" if tag == within else None
        if tag is None or (tag and tag in seen) or (tag == "" and match[2]):
            continue
        seen.add(tag)
        within = tag
        yield _Heading(start=match.start(), body=match.start(2) if match[2] else match.end(), tag=tag)


def announced(heading: str) -> str | None:
    """Return the tag of what a heading announces, "" where it ends what came before, ``None`` where it is none."""
    words = frozenset(_WORD.findall(_ASIDE.sub(" ", heading.lower())))
    for kind in _KINDS:
        named = kind.all_of | (words & kind.any_of)
        if kind.all_of <= words and (words & kind.any_of or not kind.any_of) and len(words - named) <= kind.others:
            return kind.tag
    return "" if words & _ENDS else None


def _bare(text: str) -> str:
    """Take off a rule below a part and a fence around it."""
    inner = _RULES.sub("", text.strip()).strip()
    fenced = _FENCED.match(inner)
    return fenced[1] if fenced else inner
