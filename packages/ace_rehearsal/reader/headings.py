"""Finds the parts of prompts with headings instead of tags, such as the authors' layout.

Keywords of a heading decide which part it announces, so no fixed wording is needed. Only the heading style that
announces most parts counts; lines in other styles, such as the section titles of a playbook, belong to the content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_STYLES = (
    re.compile(r"^[ \t]*(?:#{1,6}[ \t]*)?\*\*([^*\n:]{2,90}):?\*\*:?[ \t]*(.*)$", re.MULTILINE),
    re.compile(r"^[ \t]*#{1,6}[ \t]+([^\n:*]{2,90}):?[ \t]*()$", re.MULTILINE),
    re.compile(r"^[ \t]*[=-]{2,}[ \t]*([^\n:=-]{2,90}?):?[ \t]*[=-]{2,}[ \t]*()$", re.MULTILINE),
    re.compile(r"^[ \t]*</?([A-Za-z][\w -]{1,60})>[ \t]*()$", re.MULTILINE),
    re.compile(r"^[ \t]*(?:\d+[.)] |[-*] )?([A-Z][^\n:]{1,90}):[ \t]*(.*)$", re.MULTILINE),
)
_ASIDE = re.compile(r"\([^()]*\)|[^a-z ]")
_KINDS = tuple(
    (tag, re.compile(words))
    for tag, words in (
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
    best: list[tuple[int, int, str]] = []
    for style in _STYLES:
        found = _headings(text, style)
        if _parts(found) > _parts(best):
            best = found
    if _parts(best) < _FEWEST:
        return {}, text
    parts: dict[str, str] = {}
    outside, position = [], 0
    ends = [*(start for start, _, _ in best), len(text)][1:]
    for (_, body, tag), end in zip(best, ends, strict=True):
        if tag:
            parts[tag] = _bare(text[body:end])
            outside.append(text[position:body])
            position = end
    outside.append(text[position:])
    asked = _ASKED.search(parts.get("trajectory", ""))
    if asked:
        parts.setdefault("question", asked[1])
    return parts, "\n".join(outside)


def _parts(headings: list[tuple[int, int, str]]) -> int:
    return sum(tag != "" for _, _, tag in headings)


def _headings(text: str, style: re.Pattern[str]) -> list[tuple[int, int, str]]:
    """Headings of a style as (start, start of the part, tag); the first heading of a tag counts."""
    found: list[tuple[int, int, str]] = []
    seen = {""}
    for match in style.finditer(text):
        tag = announced(match[1])
        if match[0].lstrip().startswith("</"):
            tag = "" if found and tag == found[-1][2] else None
        if tag is None or (tag and tag in seen) or (tag == "" and match[2]):
            continue
        seen.add(tag)
        found.append((match.start(), match.start(2) if match[2] else match.end(), tag))
    return found


def announced(heading: str) -> str | None:
    """Return the tag that a heading announces, "" if it only ends the part before, ``None`` for other headings."""
    words = " ".join(_ASIDE.sub(" ", heading.lower().replace("_", " ")).split())
    return next((tag for tag, kind in _KINDS if kind.search(words)), None)


def _bare(text: str) -> str:
    """Remove a rule below a part and a fence around it."""
    inner = _RULES.sub("", text.strip()).strip()
    fenced = _FENCED.match(inner)
    return fenced[1] if fenced else inner
