"""A Curator that sees the bullets that matter instead of the whole playbook: ``method.curator_sees=40``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from ace_bench.ace.ace import Curator
from ace_bench.ace.editing import Insight
from ace_bench.ace.replies import Delta, ask_curator
from ace_bench.core.method import Arena
from ace_bench.core.types import Step
from ace_bench.playbook.apply import Add, Merge, Operation, reject
from ace_bench.playbook.embeddings import Embedder, EmbeddingMemo
from ace_bench.playbook.playbook import Playbook


class NearestBullets(msgspec.Struct, frozen=True, kw_only=True):
    """The ``top_k`` bullets most similar to the lessons and questions of a step.

    The Curator also sees the bullets that the attempts cited, as the lessons are about them.
    """

    memo: EmbeddingMemo
    top_k: int

    def show(self, playbook: Playbook, insights: Sequence[Insight]) -> Playbook:
        """Return the part for some insights, each with a lesson; all of a playbook with at most ``top_k`` bullets."""
        if playbook.size <= self.top_k:
            return playbook
        texts = [f"{insight.sample.asked}\n{insight.lessons[-1]}" for insight in insights]
        rows = self.memo.rows_of(playbook.index.blocks)
        best_scores: dict[int, float] = {}
        for vector in self.memo.embed(texts):
            nearest = self.memo.nearest(rows, vector, self.top_k)
            for index, score in zip(nearest.places.tolist(), nearest.scores.tolist(), strict=True):
                best_scores[index] = max(score, best_scores.get(index, score))
        ranked = sorted(best_scores, key=lambda bullet: (-best_scores[bullet], bullet))[: self.top_k]
        cited = (
            bullet_id for insight in insights for rollout in insight.rollouts for bullet_id in rollout.attempt.cited
        )
        return playbook.only({*(playbook.bullets[index].id for index in ranked), *cited})


@dataclass(frozen=True, kw_only=True)
class NearestCurator(Curator):
    """Works on what ``view`` shows of the playbook; bullets that it was not shown stay as they are."""

    view: NearestBullets

    @property
    def embedders(self) -> Sequence[Embedder]:
        """The embedder of the view."""
        return (self.view.memo.embedder,)

    def propose(self, playbook: Playbook, insight: Insight, step: Step, arena: Arena) -> Delta:
        """Return the operations for one sample: none without a lesson, or if the model fails."""
        if not insight.lessons:
            return Delta()
        selected = self.view.show(playbook, [insight])
        call = replace(self.call(playbook, insight, step, arena), playbook=selected, attempted_under=playbook)
        delta = self.without_echoes(ask_curator(call, self.limits), [insight], arena)
        return only_on(selected, delta)


def only_on(selected: Playbook, delta: Delta) -> Delta:
    """Refuse the operations on bullets that a partial playbook did not show: they were proposed blindly."""
    kept, events = list[Operation](), list(delta.events)
    for operation in delta.operations:
        own_id = () if isinstance(operation, Add | Merge) else (operation.id,)
        bullet_ids = operation.ids if isinstance(operation, Merge) else own_id
        unseen = [bullet_id for bullet_id in bullet_ids if bullet_id not in selected.index]
        if selected.partial and unseen:
            events.append(reject(operation, f"the Curator was not shown bullet {unseen[0][:80]!r}"))
        else:
            kept.append(operation)
    return Delta(tuple(kept), tuple(events))
