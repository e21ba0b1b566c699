"""The authors' playbook text: its two dialects, and what their code reads in it.

Finance (ace-agent/ace) writes ``[id] helpful=X harmful=Y :: content``, AppWorld (ace-agent/ace-appworld)
``[id] content``. Both read a text line by line: only the first line of a content belongs to its bullet, and every line
that begins with ``##`` is a heading. ``excerpt`` and ``statistics`` equal ``playbook_utils.py`` (finance) and
``playbook.py`` (AppWorld), byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from ace_bench.playbook.bullets import Bullet

Dialect = Literal["finance", "appworld"]

NO_SECTION = "general"
"""The section of operations that name none, and in the statistics of bullets before the first heading."""
_NO_IDS = "(No bullets used by generator)"
_NONE_FOUND = "(Generator referenced bullet IDs but none were found in playbook)"
_LONGEST_NUMBER = 4_000
"""Python reads no longer numbers; such counters stop the authors' code, here their line is not a bullet."""

_COUNTED = re.compile(
    rf"\[([^\]]+)\]\s*helpful=(\d{{1,{_LONGEST_NUMBER}}})\s*harmful=(\d{{1,{_LONGEST_NUMBER}}})\s*::\s*(.*)"
)
_PLAIN = re.compile(r"\[([^\]]+)\]\s*(.*)")

_PREFIXES: Mapping[Dialect, Mapping[str, str]] = {
    "finance": {
        "financial_strategies_and_insights": "fin",
        "formulas_and_calculations": "calc",
        "code_snippets_and_templates": "code",
        "common_mistakes_to_avoid": "err",
        "problem_solving_heuristics": "prob",
        "context_clues_and_indicators": "ctx",
        "others": "misc",
        "meta_strategies": "meta",
    },
    "appworld": {
        "strategies_and_hard_rules": "shr",
        "hard_rules": "hr",
        "strategies_and_insights": "si",
        "apis_to_use_for_specific_information": "api",
        "useful_code_snippets_and_templates": "code",
        "code_snippets_and_templates": "code",
        "common_mistakes_and_correct_strategies": "cms",
        "common_mistakes_to_avoid": "err",
        "problem_solving_heuristics_and_workflows": "psw",
        "problem_solving_heuristics": "prob",
        "verification_checklist": "vc",
        "troubleshooting_and_pitfalls": "ts",
        "others": "misc",
        "meta_strategies": "meta",
    },
}
"""Prefixes of ids by section; other sections get their initials."""


def dialect_of(sections: Iterable[str]) -> Dialect:
    """Return the dialect of a task by its playbook sections: AppWorld's are all known to the authors' AppWorld code."""
    return "appworld" if all(section in _PREFIXES["appworld"] for section in sections) else "finance"


class Line(NamedTuple):
    """A line that the authors' code reads as a bullet; AppWorld's counters are never written."""

    id: str
    helpful: int
    harmful: int
    content: str


def read_line(line: str, dialect: Dialect) -> Line | None:
    """Read a bullet's first line; ``None`` for any other line."""
    text = line.strip()
    if match := _COUNTED.match(text):
        return Line(match[1], int(match[2]), int(match[3]), match[4])
    if dialect == "appworld" and (match := _PLAIN.match(text)):
        return Line(match[1], 0, 0, match[2].strip())
    return None


def write_head(bullet: Line | Bullet, *, counters: bool) -> str:
    """Write what stands before a content: the id and, in the finance dialect, two counters."""
    return f"[{bullet.id}] helpful={bullet.helpful} harmful={bullet.harmful} ::" if counters else f"[{bullet.id}]"


def write_line(bullet: Line, dialect: Dialect) -> str:
    """Write a bullet's first line."""
    return f"{write_head(bullet, counters=dialect == 'finance')} {bullet.content}"


def heading_of(line: str) -> str | None:
    """Return the title of a heading, which may be empty; ``None`` for any other line."""
    text = line.strip()
    return text[2:].strip() if text.startswith("##") else None


def section_key(name: str, dialect: Dialect) -> str:
    """Return the form in which titles and the sections of operations are compared. Hyphens stay."""
    key = name.lower().replace(" ", "_").replace("&", "and")
    return key.rstrip(":") if dialect == "appworld" else key


def id_prefix(key: str, dialect: Dialect) -> str:
    """Return the first part of the ids of a section: a known one, else initials or the start of the only word.

    Raises ``IndexError``, as the authors' code does, for a name with two underscores side by side or one at its end.
    """
    name = section_key(key.lower().strip(), dialect)
    name_parts = name.split("_")
    return _PREFIXES[dialect].get(name) or ("".join(word[0] for word in name_parts[:5]) if name_parts[1:] else name[:4])


def title_of(section: str, dialect: Dialect) -> str:
    """Return a section's title as the authors' initial playbooks write it."""
    title = section.replace("_", " ").upper().replace("PROBLEM SOLVING", "PROBLEM-SOLVING")
    if dialect == "finance":
        return title.replace(" AND ", " & ")
    return {"TROUBLESHOOTING AND PITFALLS": f"{title}:"}.get(title, title.replace("APIS ", "APIs "))


def bullet_lines(text: str, dialect: Dialect) -> list[Line]:
    """Return all lines that are bullets for the authors' code, in their order."""
    bullets = (read_line(line, dialect) for line in text.strip().split("\n"))
    return [bullet for bullet in bullets if bullet is not None]


def excerpt(text: str, ids: Iterable[object], dialect: Dialect) -> str:
    """Return the bullets with the given ids for the Reflector, in the order of the text; duplicates included."""
    wanted = list(ids)
    if not wanted:
        return _NO_IDS
    return (
        "\n".join(write_line(bullet, dialect) for bullet in bullet_lines(text, dialect) if bullet.id in wanted)
        or _NONE_FOUND
    )


def statistics(text: str, dialect: Dialect) -> str:
    """Return the counts that the Curator's prompt shows, as indented JSON: in total and by section."""
    total = dict.fromkeys(["total_bullets", "high_performing", "problematic", "unused"], 0)
    by_section: dict[str, dict[str, int]] = {}
    section = NO_SECTION
    for line in text.strip().split("\n"):
        title = heading_of(line)
        if title is not None:
            section = title
        elif (bullet := read_line(line, dialect)) is not None:
            total["total_bullets"] += 1
            if quality := _quality(bullet):
                total[quality] += 1
            counts = by_section.setdefault(section, dict.fromkeys(["count", "helpful", "harmful"], 0))
            counts["count"] += 1
            counts["helpful"] += bullet.helpful
            counts["harmful"] += bullet.harmful
    if dialect == "appworld":
        plain = {name: {"count": counts["count"]} for name, counts in by_section.items()}
        return json.dumps({"total_bullets": total["total_bullets"], "by_section": plain}, indent=2)
    return json.dumps({**total, "by_section": by_section}, indent=2)


def _quality(bullet: Line) -> str | None:
    if bullet.helpful > 5 and bullet.harmful < 2:
        return "high_performing"
    if bullet.harmful >= bullet.helpful and bullet.harmful > 0:
        return "problematic"
    return "unused" if bullet.helpful + bullet.harmful == 0 else None
