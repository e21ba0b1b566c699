"""The Curator: from a reflection to operations, or, as an ablation, to a whole new playbook."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.deltas import Add, Operation, Tag, Votes, parse_operations
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.wording import comparable
from ace_bench.contexts.playbook_text.text_playbook import TextPlaybook
from ace_bench.core.arena import Arena
from ace_bench.core.backbones import Lm
from ace_bench.core.errors import RolloutFault
from ace_bench.core.prompt_limit import PromptParts, send_within_limit
from ace_bench.core.replies import ask, ask_once
from ace_bench.core.transcript import Transcript
from ace_bench.core.types import Fault, Message, Record
from ace_bench.methods.ace.official_replies import official_operations
from ace_bench.methods.ace.playbooks import AnyPlaybook, recent_of, sections_of
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
_Shown = PromptParts[Transcript, AnyPlaybook]
_ENTRY = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?\((?P<section>[^)]*)\)\s*(?P<content>.*)$")


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The Curator's operations, and as the reply holds them: ``listed``, ``None`` without a reply that can be read.

    ``events`` hold the operations that cannot be read.
    """

    operations: tuple[Operation, ...] = ()
    listed: tuple[Any, ...] | None = None
    events: tuple[Record, ...] = ()


NO_PROPOSAL = Proposal()


def propose_strategies(reflected: SampleReflection, playbook: Playbook) -> Proposal:
    """Propose what rules have learnt: bullets for new strategies, and votes for those that worked again.

    A bullet that the attempt used has its vote by the outcome.
    """
    operations: list[Operation] = []
    for strategy in dict.fromkeys(reflected.strategies):
        votes = Votes(helpful=int(strategy.worked))
        bullet = playbook.index.saying(comparable(strategy.content))
        if bullet is None:
            operations.append(Add(section=strategy.category, content=strategy.content, votes=votes))
        elif strategy.worked and bullet not in reflected.studied.cited:
            operations.append(Tag(id=bullet, votes=votes))
    return Proposal(operations=tuple(operations))


@dataclass(frozen=True, kw_only=True)
class Curator:
    """The Curator at step ``step`` of ``total``. A fault of the model costs one proposal, not the step.

    With ``replies=official`` a reply is asked for once and taken as a whole or not at all, as in the authors' code.
    """

    arena: Arena
    step: int
    total: int
    token_budget: int
    window: int
    replies: Literal["repaired", "official"]

    def propose(self, reflected: SampleReflection, playbook: AnyPlaybook, kinds: Sequence[str]) -> Proposal:
        """Ask for operations of the given kinds on a playbook in which the Reflector's tags are counted."""
        if not reflected.reflections:
            return NO_PROPOSAL

        def send(shown: _Shown) -> list[Any]:
            fields = {**self._fields(reflected, playbook, shown), "operations": list(kinds)}
            lm, messages = self.arena.lm(ROLE, reflected.rollout.key), self.arena.prompts.render("curator", fields)
            return _official(lm, messages) if self.replies == "official" else ask(lm, messages, CuratorReply).operations

        try:
            listed, dropped = send_within_limit(_Shown(Transcript(reflected.studied.trajectory), playbook), send)
        except RolloutFault as error:
            return Proposal(events=(fault_event(ROLE, error.fault),))
        if isinstance(playbook, TextPlaybook):
            return Proposal(listed=tuple(listed), events=dropped_event(ROLE, dropped))
        operations, rejections = parse_operations(listed)
        events = [rejection.record() for rejection in rejections]
        return Proposal(operations=operations, events=(*events, *dropped_event(ROLE, dropped)))

    def rewrite(self, reflected: SampleReflection, playbook: AnyPlaybook) -> Proposal:
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

    def _fields(self, reflected: SampleReflection, playbook: AnyPlaybook, shown: _Shown) -> dict[str, Any]:
        sample = reflected.rollout.sample
        studied = replace(reflected.rollout, attempt=replace(reflected.studied, trajectory=shown.first.shown))
        advice = joint(reflected.reflections[:-1], self.window)
        return {
            **sample.inputs,
            **shown.second.render(sample),
            "trajectory": shown.first.text,
            "conversation": partial(self.arena.conversation, studied, shown.second, reflection=advice),
            "labels": self.arena.labels.value,
            "sections": sections_of(playbook, self.arena),
            "step": self.step,
            "total": self.total,
            "size": playbook.size,
            "tokens": playbook.tokens,
            "token_budget": self.token_budget,
            "reflection": joint((*recent_of(playbook), *reflected.reflections[-1:]), self.window),
        }


def _official(lm: Lm, messages: Sequence[Message]) -> list[Any]:
    try:
        return [*official_operations(ask_once(lm, messages))]
    except ValueError as error:
        fault = Fault(owner="model", kind="unreadable_reply", message=f"the official code drops this reply: {error}")
        raise RolloutFault(fault) from error


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
