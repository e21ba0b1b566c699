"""Grow-and-refine (paper, section 3.2): filters harmful bullets, merges similar ones, prunes to the token budget.

It needs no model: similarity comes from embeddings, and merging adds counters. It runs after each delta
(``when="delta"``) or only when the playbook exceeds its budget (``"budget"``), the paper's two variants.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec
import numpy as np

from ace_bench.core.errors import SettingError
from ace_bench.core.settings import Count, Similarity
from ace_bench.core.types import Record
from ace_bench.playbook.bullets import Bullet, BulletIndex, age, join_bullets
from ace_bench.playbook.embeddings import Embedder, EmbeddingMemo
from ace_bench.playbook.playbook import Playbook

RefineWhen = Literal["delta", "budget", "never"]

Similar = dict[int, list[tuple[float, int]]]
"""For each bullet's index, the oldest first: similarity and index of all bullets at or above the threshold."""

_Changed = tuple[BulletIndex, Sequence[Record]]
"""Bullets after one stage of the refinement, and its events."""

_DECIMALS = 5
"""Similarities are rounded, so that equal ones tie on machines that sum in different orders."""
_BLOCK = 256


class Refined(msgspec.Struct, frozen=True, kw_only=True):
    """The refined playbook, and an event for each merge and removal; without events it is the old playbook."""

    playbook: Playbook
    events: tuple[Record, ...]


class Refiner:
    """Keeps a playbook compact.

    ``threshold`` is the cosine similarity from which two bullets are merged (paper, table 20: 0.5 to 0.9) and
    ``max_tokens`` the largest size (table 21: 10K to 100K; ``None``: any, as in the official code).
    ``harmful_min`` is the number of harmful votes from which a bullet with more harmful than helpful votes is
    filtered (appendix A.4); ``None`` switches the filter off.

    A refiner caches embeddings and has no other state, so the same playbook is always refined the same way.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        threshold: Similarity = 0.9,
        when: RefineWhen = "delta",
        max_tokens: Count | None = 80_000,
        harmful_min: Count | None = 3,
    ):
        if max_tokens is None and when == "budget":
            raise SettingError("when=budget needs max_tokens: give it a number, or choose another when")
        self.memo = EmbeddingMemo(embedder)
        self._threshold = threshold
        self._when = when
        self._max_tokens = max_tokens
        self._most = math.inf if max_tokens is None else max_tokens
        self._harmful_min = harmful_min

    @property
    def when(self) -> RefineWhen:
        """When it runs."""
        return self._when

    @property
    def max_tokens(self) -> int | None:
        """The largest size of a refined playbook; ``None``: any."""
        return self._max_tokens

    def refine(
        self,
        playbook: Playbook,
        touched: Collection[str],
        *,
        step: int,
    ) -> Refined:
        """Filter, merge, prune, in this order; afterwards the playbook fits the budget.

        ``touched`` are the ids of bullets with new or changed content (``Applied.touched``): ``"delta"`` compares them
        with all others, ``"budget"`` compares all with all once the playbook is too large. Of merged bullets the
        older content stays.
        """
        bullets, events = self._filter(playbook.index)
        subjects = self._to_compare(bullets, touched)
        near = self._find_similar(bullets, subjects) if subjects else {}
        if near:
            groups, joins = _group(bullets.bullets, near, threshold=self._threshold)
            bullets, filtered = self._filter(_merge_groups(bullets, groups, step=step))  # which sums the votes
            events = [*events, *joins, *filtered]
        bullets, pruned = self._prune(bullets)
        events = [*events, *pruned]
        return Refined(playbook=playbook.with_index(bullets) if events else playbook, events=tuple(events))

    def _filter(self, bullets: BulletIndex) -> _Changed:
        least = self._harmful_min
        if least is None:
            return bullets, []
        harmful = [bullet for block in bullets.blocks for bullet in block.harmful if bullet.harmful >= least]
        events = [_event("filtered", b.id, reason=f"harmful {b.harmful}, helpful {b.helpful}") for b in harmful]
        return bullets.changed(gone=[bullet.id for bullet in harmful]) if harmful else bullets, events

    def _to_compare(self, bullets: BulletIndex, touched: Collection[str]) -> Sequence[int]:
        """Return the places of the bullets to compare with all others, the oldest first."""
        if self._when == "delta":
            return _find_places(bullets, frozenset(touched))
        if self._when == "budget" and bullets.tokens > self._most:
            return range(len(bullets))
        return ()

    def _find_similar(self, bullets: BulletIndex, subjects: Sequence[int]) -> Similar:
        """Find all others at or above the threshold, for each subject that has any.

        Compute one matrix product. Many subjects are computed in blocks.
        """
        rows = self.memo.rows_of(bullets.blocks)
        near: Similar = {}
        for start in range(0, len(subjects), _BLOCK):
            block = subjects[start : start + _BLOCK]
            similarities = np.round(self.memo.similarities(self.memo.matrix[rows[block]])[:, rows], _DECIMALS)
            for line, column in np.argwhere(similarities >= self._threshold).tolist():
                if column != block[line]:
                    near.setdefault(block[line], []).append((float(similarities[line, column]), column))
        return near

    def _prune(self, index: BulletIndex) -> _Changed:
        """Remove the least useful bullets, of equal ones those unchanged for longest, until the rest fits."""
        most, total = self._most, index.tokens
        if total <= most:
            return index, []
        bullets = index.bullets
        events: list[Record] = []
        removed: dict[str, None] = {}
        for bullet in bullets:
            if bullet.tokens > most:
                total -= bullet.tokens
                removed[bullet.id] = None
                reason = f"alone it takes {bullet.tokens} tokens of at most {most}"
                events.append(_event("pruned", bullet.id, reason=reason))
        for bullet in sorted(bullets, key=lambda bullet: (bullet.utility, bullet.changed, bullet.number)):
            if total <= most:
                break
            if bullet.id not in removed:
                total -= bullet.tokens
                removed[bullet.id] = None
                reason = f"utility {bullet.utility}, unchanged since step {bullet.changed}, over the token budget"
                events.append(_event("pruned", bullet.id, reason=reason))
        return index.changed(gone=removed), events


def _find_places(bullets: BulletIndex, ids: Collection[str]) -> list[int]:
    indices: list[int] = []
    start = 0
    for block in bullets.blocks:
        if not block.by_id.keys().isdisjoint(ids):
            indices += [index for index, bullet_id in enumerate(block.by_id, start) if bullet_id in ids]
        start += len(block.by_id)
    return indices


def _group(
    bullets: Sequence[Bullet], near: Similar, *, threshold: float
) -> tuple[Sequence[Sequence[Bullet]], Sequence[Record]]:
    """Return groups of similar bullets; the oldest leads each group.

    Each compared bullet, the oldest first, is merged with the most similar remaining one (of equally similar ones the
    oldest), the younger into the older, until it is gone itself or no similar one remains. Only the leader's embedding
    represents a group, so a chain of similar bullets is merged only as far as they are similar to the leader.
    """
    compared = {
        index for subject, neighbors in near.items() for index in (subject, *(neighbor for _, neighbor in neighbors))
    }
    groups = {index: [bullets[index]] for index in sorted(compared)}
    events: list[Record] = []
    for subject in near:
        while subject in groups:
            candidates = [(-similarity, index) for similarity, index in near[subject] if index in groups]
            if not candidates:
                break
            lost, nearest = min(candidates)
            older, younger = sorted((subject, nearest))
            groups[older] += groups.pop(younger)
            reason = f"similarity {-lost:.3f} is at least {threshold:g}"
            events.append(_event("merged", bullets[older].id, merged=[bullets[younger].id], reason=reason))
    return [sorted(group, key=age) for group in groups.values() if len(group) > 1], events


def _merge_groups(bullets: BulletIndex, groups: Sequence[Sequence[Bullet]], *, step: int) -> BulletIndex:
    """Merge each group into its oldest bullet."""
    merged_away = [bullet.id for group in groups for bullet in group[1:]]
    return bullets.changed(put=[join_bullets(group, step=step) for group in groups], gone=merged_away)


def _event(event: str, bullet: str, *, reason: str, merged: Sequence[str] = ()) -> Record:
    record: dict[str, object] = {"event": event, "bullet": bullet, "reason": reason}
    if merged:
        record["merged"] = list(merged)
    return record
