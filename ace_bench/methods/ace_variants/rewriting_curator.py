"""ACE without incremental updates (table 18 and appendix A.5 of the paper): ``method.update=rewrite``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ace_bench.contexts.playbook.deltas import Add
from ace_bench.core.backbones import Lm
from ace_bench.core.method import Arena
from ace_bench.core.replies import ask
from ace_bench.core.types import Message, Step
from ace_bench.methods.ace import Curator
from ace_bench.methods.ace_parts.replies import RewriterReply
from ace_bench.methods.ace_parts.step import Delta, Insight, PlaybookEditor

_ENTRY = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?\((?P<section>[^)]*)\)\s*(?P<content>.*)$")


class RewritingCurator(Curator):
    """Writes the whole playbook anew for each sample; an empty text changes nothing."""

    templates = ("rewriter",)

    def curate(self, editor: PlaybookEditor, insights: Sequence[Insight], step: Step, arena: Arena) -> None:
        """Rewrite sample by sample: each rewriting replaces the one before."""
        for insight in insights:
            editor.count_votes(insight)
            if not insight.lessons:
                continue
            text, events = self.call(editor.playbook, insight, step, arena).send(_ask_for_playbook)
            entries = tuple(read_entries(text or ""))
            if entries:
                editor.remove_bullets()
            editor.apply_delta(insight, Delta(entries, events), self.limits)


def _ask_for_playbook(lm: Lm, messages: Sequence[Message]) -> str:
    return ask(lm, messages, RewriterReply).playbook


def read_entries(text: str) -> list[Add]:
    """Read the entries of a playbook, one per line: ``(section) text``.

    Lines without a section continue the entry before them; text before the first entry goes to ``others``.
    """
    entries: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        match = _ENTRY.match(line)
        if match:
            entries.append((match["section"], [match["content"]]))
        elif entries:
            entries[-1][1].append(line)
        elif line.strip():
            entries.append(("others", [line]))
    return [Add(section=section, content="\n".join(lines).strip()) for section, lines in entries]
