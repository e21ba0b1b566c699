"""The Curator: from a reflection to operations, or, as an ablation, to a whole new playbook."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.deltas import Add, Operation, parse_operations
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.arena import Arena
from ace_bench.core.errors import RolloutFault
from ace_bench.core.prompt_limit import PromptParts, send_within_limit
from ace_bench.core.replies import ask
from ace_bench.core.transcript import Transcript
from ace_bench.core.types import Record
from ace_bench.methods.ace.reflector import SampleReflection, dropped_event, fault_event, joint
from ace_bench.methods.ace.replies import CuratorReply, MergerReply, RewriterReply

ROLE = "curator"
FIELDS = frozenset(
    (
        "trajectory",
        "conversation",
        "labels",
        "sections",
        "step",
        "total",
        "size",
        "tokens",
        "token_budget",
        "reflection",
    )
)
"""Fields of the prompts of Curator and rewriter beside the sample's and the playbook's."""
_Shown = PromptParts[Transcript, Playbook]
_ENTRY = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?\((?P<section>[^)]*)\)\s*(?P<content>.*)$")


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The Curator's operations; ``events`` hold the rejected ones."""

    operations: tuple[Operation, ...] = ()
    events: tuple[Record, ...] = ()


NO_PROPOSAL = Proposal()


@dataclass(frozen=True, kw_only=True)
class Curator:
    """The Curator at step ``step`` of ``total``. A fault of the model costs one proposal, not the step."""

    arena: Arena
    step: int
    total: int
    token_budget: int
    window: int

    def propose(self, reflected: SampleReflection, playbook: Playbook, kinds: Sequence[str]) -> Proposal:
        """Ask for operations of the given kinds on a playbook in which the Reflector's tags are counted."""
        if not reflected.reflections:
            return NO_PROPOSAL

        def send(shown: _Shown) -> CuratorReply:
            fields = {**self._fields(reflected, playbook, shown), "operations": list(kinds)}
            return ask(
                self.arena.lm(ROLE, reflected.rollout.key), self.arena.prompts.render("curator", fields), CuratorReply
            )

        try:
            reply, dropped = send_within_limit(_Shown(Transcript(reflected.studied.trajectory), playbook), send)
        except RolloutFault as error:
            return Proposal(events=(fault_event(ROLE, error.fault),))
        operations, rejections = parse_operations(reply.operations)
        events = [rejection.record() for rejection in rejections]
        return Proposal(operations=operations, events=(*events, *dropped_event(ROLE, dropped)))

    def rewrite(self, reflected: SampleReflection, playbook: Playbook) -> Proposal:
        """Ask for a whole new playbook and read its entries, one per line: ``(section) text``.

        Lines without a section continue the entry before them; text before the first entry goes to ``others``.
        """
        if not reflected.reflections:
            return NO_PROPOSAL

        def send(shown: _Shown) -> RewriterReply:
            messages = self.arena.prompts.render("rewriter", self._fields(reflected, playbook, shown))
            return ask(self.arena.lm(ROLE, reflected.rollout.key), messages, RewriterReply)

        try:
            reply, dropped = send_within_limit(_Shown(Transcript(reflected.studied.trajectory), playbook), send)
        except RolloutFault as error:
            return Proposal(events=(fault_event(ROLE, error.fault),))
        return Proposal(operations=tuple(_entries(reply.playbook)), events=dropped_event(ROLE, dropped))

    def wording(self, session: str) -> Callable[[Sequence[Bullet]], str]:
        """Return a function that words a merged bullet, for ``Refiner.refine``; "" where the model fails."""

        def word(bullets: Sequence[Bullet]) -> str:
            fields = {"bullets": "\n".join(bullet.line for bullet in bullets)}
            messages = self.arena.prompts.render("merger", fields)
            try:
                return ask(self.arena.lm(ROLE, session), messages, MergerReply).content
            except RolloutFault:
                return ""

        return word

    def _fields(self, reflected: SampleReflection, playbook: Playbook, shown: _Shown) -> dict[str, Any]:
        sample = reflected.rollout.sample
        studied = replace(reflected.rollout, attempt=replace(reflected.studied, trajectory=shown.first.shown))
        advice = joint(reflected.reflections[:-1], self.window)
        return {
            **sample.inputs,
            **shown.second.render(sample),
            "trajectory": shown.first.text,
            "conversation": partial(self.arena.conversation, studied, shown.second, reflection=advice),
            "labels": self.arena.labels.value,
            "sections": playbook.sections,
            "step": self.step,
            "total": self.total,
            "size": playbook.size,
            "tokens": playbook.tokens,
            "token_budget": self.token_budget,
            "reflection": joint((*playbook.recent, *reflected.reflections[-1:]), self.window),
        }


def _entries(text: str) -> list[Add]:
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
