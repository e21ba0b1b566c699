"""Grow-and-refine (paper, section 3.2): filter what harms, join what repeats, prune to the budget.

No model is needed: similarity comes from embeddings, merging adds counters. It may run after each delta
(``when="delta"``) or only when the playbook has outgrown its budget (``"budget"``), the paper's two ways.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from ace_bench.contexts.playbook.bullets import Bullet, joined, measured
from ace_bench.contexts.playbook.embed import Embedder, EmbeddingMemo, Matrix
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.wording import clean, comparable
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.settings import Count, Similarity
from ace_bench.core.types import Record

When = Literal["delta", "budget", "never"]

Word = Callable[[Sequence[Bullet]], str]
"""Words one content for bullets that say the same, the oldest first (the curator role; optional)."""

Similar = dict[int, list[tuple[float, int]]]
"""By place of a bullet, the oldest first: similarities and places of the bullets as similar as the threshold."""

_Changed = tuple[Sequence[Bullet], Sequence[Record]]
"""Bullets after a part of the refinement, and its events."""

_DECIMALS = 5
"""Similarities are rounded to this, so that equal ones tie whatever the order a machine sums in."""
_BLOCK = 256
_FEW = 8


@dataclass(frozen=True, kw_only=True)
class Refined:
    """The refined playbook, which is the old one if ``events`` is empty, and every merge and removal."""

    playbook: Playbook
    events: tuple[Record, ...]


class Refiner:
    """Keeps a playbook compact.

    ``threshold`` is the cosine similarity from which two bullets say the same (paper, table 20: 0.5 to 0.9);
    ``max_tokens`` the size never exceeded (table 21: 10K to 100K), and once it would be, pruning goes on until the
    share ``headroom`` of it is free: every removal costs a prompt cache all that follows it, so fewer, larger
    prunings are cheaper. ``harmful_min`` is the number of harmful votes from which a bullet with more harmful
    than helpful votes is filtered (appendix A.4); ``None`` switches the filter off.

    A refiner remembers embeddings, nothing else: the same playbook is always refined the same way.
    """

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        embedder: Embedder,
        *,
        threshold: Similarity = 0.9,
        when: When = "delta",
        max_tokens: Count = 80_000,
        headroom: Annotated[float, Meta(ge=0, lt=1)] = 0.0,
        harmful_min: Count | None = 3,
    ):
        self._memo = EmbeddingMemo(embedder)
        self._threshold = threshold
        self._when = when
        self.max_tokens = max_tokens
        self._headroom = headroom
        self._harmful_min = harmful_min

    def prepare(self) -> None:
        """Make the embedder ready, so that one that cannot be loaded fails before anything is paid for."""
        self._memo.rows([""])

    def refine(
        self,
        playbook: Playbook,
        touched: Collection[str],
        *,
        step: int,
        count: TokenCounter,
        word: Word | None = None,
    ) -> Refined:
        """Filter, join, prune, in this order; afterwards the playbook fits the budget.

        ``touched`` are the ids of bullets with a new or changed content (``Applied.touched``), which ``"delta"``
        compares with all others; ``"budget"`` compares all with all once the playbook is too large. ``word``
        words joint contents; without it, or where it fails to give a usable one, the older bullet's stays.
        ``count`` measures what it words.
        """
        bullets, events = self._filtered(playbook.bullets)
        subjects = self._subjects(bullets, touched)
        near = self._similar(bullets, subjects) if subjects else {}
        if near:
            groups, joins = _grouped(bullets, near, threshold=self._threshold)
            bullets, wordings = _merged(groups, step=step, word=word, count=count)
            bullets, filtered = self._filtered(bullets)  # now that the votes are in one place
            events = [*events, *joins, *wordings, *filtered]
        bullets, pruned = self._pruned(bullets)
        events = [*events, *pruned]
        return Refined(playbook=playbook.with_bullets(bullets) if events else playbook, events=tuple(events))

    def _filtered(self, bullets: Sequence[Bullet]) -> _Changed:
        least = self._harmful_min
        if least is None:
            return bullets, []
        kept = [b for b in bullets if b.harmful < least or b.harmful <= b.helpful]
        if len(kept) == len(bullets):
            return kept, []
        gone = [b for b in bullets if b.harmful >= least and b.harmful > b.helpful]
        return kept, [_event("filtered", b.id, reason=f"harmful {b.harmful}, helpful {b.helpful}") for b in gone]

    def _subjects(self, bullets: Sequence[Bullet], touched: Collection[str]) -> Sequence[int]:
        """Places of the bullets to compare with all others, the oldest first."""
        if self._when == "delta":
            wanted = frozenset(touched)
            return [place for place, bullet in enumerate(bullets) if bullet.id in wanted]
        if self._when == "budget" and sum([bullet.tokens for bullet in bullets]) > self.max_tokens:
            return range(len(bullets))
        return ()

    def _similar(self, bullets: Sequence[Bullet], subjects: Sequence[int]) -> Similar:
        """Find all others at or above the threshold, for each subject that has any.

        One matrix product, in blocks where there are many subjects.
        """
        rows = self._memo.rows([bullet.content for bullet in bullets])
        matrix = self._memo.matrix
        near: Similar = {}
        for start in range(0, len(subjects), _BLOCK):
            block = subjects[start : start + _BLOCK]
            similarities = np.round(_products(matrix[rows[block]], matrix)[:, rows], _DECIMALS)
            for line, place in np.argwhere(similarities >= self._threshold).tolist():
                if place != block[line]:
                    near.setdefault(block[line], []).append((float(similarities[line, place]), place))
        return near

    def _pruned(self, bullets: Sequence[Bullet]) -> _Changed:
        """Remove the least useful, of equally useful ones those unchanged for longest, until the rest fits."""
        total = sum([bullet.tokens for bullet in bullets])
        if total <= self.max_tokens:
            return bullets, []
        events: list[Record] = []
        gone: set[str] = set()
        for bullet in bullets:
            if bullet.tokens > self.max_tokens:
                total -= bullet.tokens
                gone.add(bullet.id)
                reason = f"alone it takes {bullet.tokens} tokens of at most {self.max_tokens}"
                events.append(_event("pruned", bullet.id, reason=reason))
        target = self.max_tokens if total <= self.max_tokens else int(self.max_tokens * (1 - self._headroom))
        for bullet in sorted(bullets, key=lambda bullet: (bullet.utility, bullet.changed, bullet.number)):
            if total <= target:
                break
            if bullet.id not in gone:
                total -= bullet.tokens
                gone.add(bullet.id)
                reason = f"utility {bullet.utility}, unchanged since step {bullet.changed}, over the token budget"
                events.append(_event("pruned", bullet.id, reason=reason))
        return [bullet for bullet in bullets if bullet.id not in gone], events


def _products(some: Matrix, all_rows: Matrix) -> Matrix:
    """Multiply every row of ``some`` with every row of ``all_rows``.

    A few rows are not worth BLAS, whose threads wait longer for each other on a busy machine than the work takes.
    """
    if len(some) <= _FEW:
        few: Matrix = np.einsum("ij,kj->ik", some, all_rows)
        return few
    return some @ all_rows.T


def _grouped(
    bullets: Sequence[Bullet], near: Similar, *, threshold: float
) -> tuple[Sequence[Sequence[Bullet]], Sequence[Record]]:
    """Group bullets that say the same, each group led by its oldest; most groups are single bullets.

    Each subject in turn, the oldest first, is joined with the most similar bullet still there (of equally similar
    ones the oldest), the younger of the two into the older, until it has gone itself or nothing as similar is left.
    A group is judged by its leader's embedding alone: a chain of similar bullets is joined only as far as each link is
    similar to the leader it meets.
    """
    groups = {place: [bullet] for place, bullet in enumerate(bullets)}
    events: list[Record] = []
    for subject in near:
        while subject in groups:
            candidates = [(-similarity, place) for similarity, place in near[subject] if place in groups]
            if not candidates:
                break
            lost, nearest = min(candidates)
            older, younger = sorted((subject, nearest))
            groups[older] += groups.pop(younger)
            reason = f"similarity {-lost:.3f} is at least {threshold:g}"
            events.append(_event("merged", bullets[older].id, merged=[bullets[younger].id], reason=reason))
    return list(groups.values()), events


def _merged(groups: Sequence[Sequence[Bullet]], *, step: int, word: Word | None, count: TokenCounter) -> _Changed:
    """Make each group one bullet, in order of creation."""
    result = [_joint(group, step) for group in groups]
    events: list[Record] = []
    if word is None:
        return result, events
    for place, group in enumerate(groups):
        if len(group) > 1:
            others = (*result[:place], *result[place + 1 :])
            content = clean(word(sorted(group, key=_age)))
            result[place], event = _worded(result[place], content, others, count=count)
            events.append(event)
    return result, events


def _joint(group: Sequence[Bullet], step: int) -> Bullet:
    return joined(sorted(group, key=_age), step=step) if len(group) > 1 else group[0]


def _worded(bullet: Bullet, content: str, others: Sequence[Bullet], *, count: TokenCounter) -> tuple[Bullet, Record]:
    if not content or any(comparable(content) == other.comparable for other in others):
        problem = "repeats another bullet" if content else "is empty"
        return bullet, _event("not_worded", bullet.id, reason=f"the joint content {problem}; the older one stays")
    event = _event("worded", bullet.id, reason="one content for the merged bullets")
    return measured(replace(bullet, content=content), count), event


def _age(bullet: Bullet) -> tuple[int, str]:
    return bullet.number, bullet.id


def _event(event: str, bullet: str, *, reason: str, merged: Sequence[str] = ()) -> Record:
    record: dict[str, object] = {"event": event, "bullet": bullet, "reason": reason}
    if merged:
        record["merged"] = list(merged)
    return record
