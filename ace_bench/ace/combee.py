"""Combee: lessons of a batch are found in parallel, and a model merges them in two levels (arXiv 2604.04247).

Generator and Reflector work on all samples of a batch under one playbook, as in ACE. Each lesson is copied ``copies``
times, the copies are shuffled and dealt to groups (the square root of the number of lessons), and a Curator proposes
operations for each group. A merger makes one delta of the proposals. So no call reads many more lessons than the
square root of the batch.

This follows the paper, and ``methods/official/combee.py`` the authors' code; docs/fidelity.md says what differs. Their
controller fits a power law to measured delays and chooses the size of batches by it. Here the size is a setting, so
that runs can be repeated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import msgspec

from ace_bench.ace.ace import Ace, Curator
from ace_bench.ace.editing import Insight, PlaybookEditor
from ace_bench.ace.nearest import NearestBullets, only_on
from ace_bench.ace.replies import CuratorReply, Delta, ask_for_operations
from ace_bench.ace.settings import AceSettings
from ace_bench.core.errors import SettingError
from ace_bench.core.method import Arena, Learning, Span
from ace_bench.core.settings import Count
from ace_bench.core.types import Step
from ace_bench.methods.base import CURATOR, CURATOR_FIELDS, ask_role, curator_fields
from ace_bench.playbook.apply import Operation
from ace_bench.playbook.embeddings import Embedder
from ace_bench.playbook.playbook import Playbook

MERGER = "merger"
"""The role that makes one delta of the groups' proposals."""
_GROUP, _MERGE = "group_curator", "delta_merger"
_NOT_SHOWN = frozenset(("trajectory", "conversation", "reflection"))
"""Fields of ACE's Curator that are about one sample."""


@dataclass(frozen=True, kw_only=True)
class CombeeCurator(Curator):
    """A Curator for each group of lessons, and a merger; ``groups`` replaces the square root.

    Each Curator sees what ``view`` shows of the playbook, and the merger what any of them saw; all of it without one.
    """

    draws_from_seed = True
    templates = (_GROUP,)
    copies: int
    groups: int | None
    view: NearestBullets | None = None

    @property
    def embedders(self) -> Sequence[Embedder]:
        """The embedder of the view."""
        return (self.view.memo.embedder,) if self.view else ()

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The Curator of a group, and the merger."""
        return {CURATOR: self.templates, MERGER: (_MERGE,)}

    def prompt_fields(self, shared: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of both templates. The field ``lessons`` also holds the questions."""
        fields = (shared | CURATOR_FIELDS) - _NOT_SHOWN
        return {_GROUP: fields | {"lessons"}, _MERGE: fields | {"proposals"}}

    def calls(self, learning: Learning) -> Mapping[str, Span]:
        """Return the calls for all steps: the roots of batches add up to at most the root of samples by steps."""
        steps = min(learning.steps, learning.samples)
        groups = math.isqrt(learning.samples * steps) if self.groups is None else self.groups * steps
        groups = min(groups, learning.samples)
        return {CURATOR: Span(steps, groups), MERGER: Span(0, min(steps, groups - steps))}

    def curate(self, editor: PlaybookEditor, insights: Sequence[Insight], step: Step, arena: Arena) -> None:
        """Count all votes, propose for all groups in parallel, merge the proposals, and apply the one delta.

        A group whose call fails proposes nothing. If the merger's call fails, nothing is applied.
        """
        editor.count_votes(*insights)
        taught = [insight for insight in insights if insight.lessons]
        if not taught:
            return
        propose = partial(self._ask, playbook=editor.playbook, step=step, arena=arena)
        groups = self.deal(taught, f"{arena.seed}/combee/{step.index}")
        parts = [self.view.show(editor.playbook, group) if self.view else editor.playbook for group in groups]
        deltas = arena.map(
            lambda asked: propose(CURATOR, *asked, lessons=join_lessons(asked[0])), zip(groups, parts, strict=True)
        )
        proposals = [delta for delta in deltas if delta.operations]
        events = tuple(event for delta in deltas for event in delta.events)
        if len(proposals) > 1:
            shown_ids = {bullet_id for part in parts for bullet_id in part.index}
            part = editor.playbook.only(shown_ids) if parts[0].partial else editor.playbook
            merged = propose(MERGER, taught, part, proposals=join_proposals(proposals))
            proposals, events = [merged], (*events, *merged.events)
        operations = proposals[0].operations if proposals else ()
        editor.apply_delta(taught, Delta(operations, events), self.limits)

    def deal(self, insights: Sequence[Insight], seed: str) -> list[Sequence[Insight]]:
        """Copy, shuffle and deal the insights to groups; a single group is shown each of them once."""
        count = min(self.groups or math.isqrt(len(insights)), len(insights))
        if count == 1:
            return [insights]
        copies = [insight for insight in insights for _ in range(self.copies)]
        random.Random(seed).shuffle(copies)
        return [copies[start::count] for start in range(count)]

    def _ask(  # noqa: PLR0913 - all but the three operands are keyword-only
        self,
        role: str,
        insights: Sequence[Insight],
        part: Playbook,
        *,
        playbook: Playbook,
        step: Step,
        arena: Arena,
        **texts: str,
    ) -> Delta:
        """Ask for operations, given a part of the playbook; a prompt that is too long shows less of it."""
        sample, lm = insights[0].sample, arena.lm(role, insights[0].session)
        fields = {**sample.inputs, "labels": arena.labels.value, **texts}

        def send(playbook_shown: Playbook) -> CuratorReply:
            full_playbook, step_count = (
                playbook if playbook_shown.partial else playbook_shown,
                (step.index + 1, step.total),
            )
            budget, kinds = self.token_budget, self.limits.kinds
            size = curator_fields(
                full_playbook, full_playbook.sections, step_count, budget, reflection="", operations=kinds
            )
            messages = arena.prompts.render(self.roles[role][0], {**fields, **playbook_shown.render(sample), **size})
            return ask_for_operations(lm, messages, playbook_shown, self.limits)

        delta = Delta.parse(*ask_role(role, part, send))
        return only_on(part, self.without_echoes(delta, insights, arena))


def join_lessons(insights: Sequence[Insight]) -> str:
    """Return each sample's question with the last lesson on it."""
    return "\n\n".join(f"Question: {insight.sample.asked}\n{insight.lessons[-1]}" for insight in insights)


def join_proposals(proposals: Sequence[Delta]) -> str:
    """Return a line for each operation, with the number of its proposal."""
    numbered = ((number, operation) for number, delta in enumerate(proposals, 1) for operation in delta.operations)
    return "\n".join(f"{number}. {describe_operation(operation)}" for number, operation in numbered)


def describe_operation(operation: Operation) -> str:
    """Return an operation as a line: ``ADD (section: formulas): text``."""
    fields = msgspec.to_builtins(operation)
    kind, content = fields.pop("type"), fields.pop("content", None) or ""
    described = ", ".join(f"{name}: {value}" for name, value in fields.items() if name != "votes" or kind == "TAG")
    return f"{kind} ({described}): {content}"


@dataclass(frozen=True, kw_only=True)
class CombeeSettings(AceSettings):
    """What ``configs/method/combee.yaml`` sets beside ACE's settings."""

    copies: Count
    """How often each lesson is dealt to groups. Paper: 2."""
    groups: Count | None
    """Groups of a batch; ``None``: the square root of its lessons (the paper), 1: one Curator reads all lessons."""

    def __post_init__(self) -> None:
        """Raise ``SettingError`` also for parts of ACE that make no delta of a model's."""
        super().__post_init__()
        if self.update == "rewrite" or self.reflector == "rules":
            overrides = f"update={self.update} and reflector={self.reflector}"
            raise SettingError(
                f"{overrides}: method=combee merges deltas of a model: set update=delta, reflector=on or off"
            )

    def make_curator(self) -> Curator:
        """Return the Curator of groups with the settings of ACE's."""
        return CombeeCurator(**vars(super().make_curator()), copies=self.copies, groups=self.groups)


def make_combee(**settings: Annotated[Any, CombeeSettings]) -> Ace:
    """Return Combee over ACE."""
    return CombeeSettings(**settings).make()
