"""A playbook's bullets as imported prompts show them: in the authors' text format, as their code would hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook_text.dialects import Dialect, Line, title_of, write_line
from ace_bench.contexts.playbook_text.operations import excerpt, statistics


def official_fields(sections: Iterable[str], bullets: Iterable[Bullet]) -> Mapping[str, Any]:
    """Return the fields ``official_playbook``, ``official_excerpt`` and ``statistics``.

    They are functions, so that only templates that show them spend time on it.
    """

    @cache
    def playbook(*, counters: bool = True) -> str:
        return official_text(sections, bullets, "finance" if counters else "appworld")

    return {
        "official_playbook": playbook,
        "official_excerpt": lambda ids: excerpt(playbook(), ids, "finance"),
        "statistics": cache(lambda: statistics(playbook(), "finance")),
    }


def official_text(sections: Iterable[str], bullets: Iterable[Bullet], dialect: Dialect) -> str:
    """Return the bullets by section, under the authors' headings; neutral votes, which theirs lacks, are not shown."""
    lines = {section: [f"## {title_of(section, dialect)}"] for section in sections}
    for bullet in bullets:
        lines[bullet.section].append(
            write_line(Line(bullet.id, bullet.helpful, bullet.harmful, bullet.content), dialect)
        )
    return "\n\n".join(map("\n".join, lines.values()))
