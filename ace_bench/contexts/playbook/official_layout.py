"""A playbook's bullets as imported prompts show them: in the authors' text format, as their code would hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.layout import Layout
from ace_bench.contexts.playbook.text_syntax import bullet_head
from ace_bench.contexts.playbook_text.dialects import Dialect, title_of
from ace_bench.contexts.playbook_text.operations import excerpt, statistics


def official_fields(sections: Iterable[str], bullets: Sequence[Bullet], layout: Layout | None) -> Mapping[str, Any]:
    """Return the fields ``official_playbook``, ``official_excerpt`` and ``statistics``.

    They are functions, so that only templates that show them spend time on it.
    """

    @cache
    def playbook(*, counters: bool = True) -> str:
        return official_text(sections, bullets, layout, "finance" if counters else "appworld")

    return {
        "official_playbook": playbook,
        "official_excerpt": lambda ids: excerpt(playbook(), ids, "finance"),
        "statistics": cache(lambda: statistics(playbook(), "finance")),
    }


def official_text(sections: Iterable[str], bullets: Sequence[Bullet], layout: Layout | None, dialect: Dialect) -> str:
    """Return the bullets by section, under the authors' headings or those of the imported text.

    Neutral votes, which their format lacks, are not shown.
    """

    def text_of(bullet: Bullet) -> str:
        written = (layout and layout.imported(bullet)) or f" {bullet.content}"
        return bullet_head(bullet, counters=dialect == "finance") + written

    def heading_of(section: str) -> str:
        return f"## {title_of(section, dialect)}"

    if layout is not None:
        return layout.fill(bullets, text_of=text_of, heading_of=heading_of)
    lines = {section: [heading_of(section)] for section in sections}
    for bullet in bullets:
        lines[bullet.section].append(text_of(bullet))
    return "\n\n".join(map("\n".join, lines.values()))
