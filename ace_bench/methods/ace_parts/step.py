"""What a step of ACE learns from each sample, and the playbook that it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ace_bench.contexts.playbook.apply import Applied, Limits, apply
from ace_bench.contexts.playbook.deltas import Operation, parse_operations
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import Attempt, Record, Rollout, Sample, Step
from ace_bench.methods.ace_parts.replies import BulletTag, Lesson

VOTES_ONLY = Limits(kinds=("TAG",))
"""What the Reflector may do to a playbook, whatever the Curator may."""


@dataclass(frozen=True, kw_only=True)
class Insight:
    """The lessons from the attempts at a sample, before curation.

    ``session`` names the calls about the sample, and ``window`` is the number of lessons that a new attempt is shown.
    ``rollouts`` are the attempts that were reflected on, ``lessons`` the reflections on them as text, ``votes`` the
    operations that count the Reflector's tags.
    """

    session: str
    sample: Sample
    window: int = 1
    rollouts: tuple[Rollout, ...] = ()
    lessons: tuple[str, ...] = ()
    votes: tuple[Operation, ...] = ()
    events: tuple[Record, ...] = ()

    @classmethod
    def begin(cls, first: Rollout, window: int) -> Insight:
        """Return an insight without lessons, for a sample's first rollout."""
        return cls(session=first.key, sample=first.sample, window=window)

    @property
    def advice(self) -> str:
        """The last lessons as one text, for a new attempt."""
        return join_lessons(self.lessons, self.window)

    def with_lesson(self, rollout: Rollout, lesson: Lesson | None, events: Sequence[Record] = ()) -> Insight:
        """Return the insight with the lesson from one more rollout; its tags count on bullets that the rollout used."""
        if lesson is None:
            return replace(self, events=(*self.events, *events))
        votes, rejected = count_tags(lesson.tags, rollout.attempt.cited)
        return replace(
            self,
            rollouts=(*self.rollouts, rollout),
            lessons=(*self.lessons, lesson.text),
            votes=(*self.votes, *votes),
            events=(*self.events, *rejected, *lesson.events, *events),
        )


class Delta(NamedTuple):
    """The Curator's operations, and events about what cannot be read."""

    operations: tuple[Operation, ...] = ()
    events: tuple[Record, ...] = ()


def parse_delta(raw_operations: Sequence[Any], events: Sequence[Record] = ()) -> Delta:
    """Return the operations of a reply; those that cannot be read are events."""
    operations, rejections = parse_operations(raw_operations)
    return Delta(operations, (*(rejection.record() for rejection in rejections), *events))


def join_lessons(lessons: Sequence[str], window: int) -> str:
    """Return the last lessons as one text, the oldest first."""
    return "\n\n".join(lessons[-window:])


def used_bullets(playbook: Playbook, attempt: Attempt) -> Playbook:
    """Return the bullets that an attempt used, or all for an agent's steps (paper, figures 10 and 13)."""
    if attempt.trajectory:
        return playbook
    index = playbook.index
    used = [index[cited] for cited in dict.fromkeys(attempt.cited) if cited in index]
    return playbook.with_bullets(sorted(used, key=lambda bullet: (bullet.number, bullet.id)))


def count_tags(tags: Sequence[BulletTag], used: Sequence[str]) -> tuple[tuple[Operation, ...], tuple[Record, ...]]:
    """Return the votes of the tags on used bullets, the first on each, and events about the other tags."""
    first = {tag.id: tag for tag in reversed(tags) if tag.id in used}
    votes, malformed = parse_operations([_as_operation(tag) for tag in reversed(first.values())])
    unused = [
        {"event": "rejected", "operation": _as_operation(tag), "reason": "not a bullet used"}
        for tag in tags
        if tag.id not in used
    ]
    return votes, (*(rejection.record() for rejection in malformed), *unused)


def _as_operation(tag: BulletTag) -> Record:
    return {"type": "TAG", "id": tag.id, "tag": tag.tag}


class PlaybookEditor:
    """A playbook with what a step has done to it: ``touched`` bullets, and ``events`` for the journal."""

    def __init__(self, playbook: Playbook, *, step: Step, count: TokenCounter):
        self.playbook = playbook
        self.touched: list[str] = []
        self.events: list[Record] = []
        self._step = step.index
        self._count = count

    def preview_votes(self, insight: Insight) -> Playbook:
        """Return the playbook with the Reflector's votes counted; the editor's own does not change."""
        return self._applied(insight.sample, insight.votes, VOTES_ONLY).playbook

    def count_votes(self, *insights: Insight) -> None:
        """Count the Reflector's votes, sample by sample."""
        for insight in insights:
            self._apply(insight.sample, insight.votes, VOTES_ONLY, insight.events)

    def apply_delta(self, insight: Insight, delta: Delta, limits: Limits) -> None:
        """Apply the Curator's operations for a sample."""
        self._apply(insight.sample, delta.operations, limits, delta.events)

    def remove_bullets(self) -> None:
        """Remove all bullets, for a playbook that is written anew."""
        self.playbook = self.playbook.with_bullets(())

    def _apply(self, sample: Sample, operations: Sequence[Operation], limits: Limits, events: Sequence[Record]) -> None:
        """Apply a sample's operations, and note its events before theirs."""
        applied = self._applied(sample, operations, limits)
        self.playbook = applied.playbook
        self.touched += applied.touched
        self.events += [{"sample": sample.id, **event} for event in (*events, *applied.events())]

    def _applied(self, sample: Sample, operations: Sequence[Operation], limits: Limits) -> Applied:
        return apply(self.playbook, operations, step=self._step, source=sample.id, limits=limits, count=self._count)
