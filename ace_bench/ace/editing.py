"""What a step of ACE gathers and changes: the insight from the attempts at a sample, and the playbook being edited."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ace_bench.ace.replies import BulletTag, Delta, Lesson, parse_operations
from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import Attempt, Record, Rollout, Sample, Step
from ace_bench.playbook.apply import Applied, Limits, Operation, apply, reject
from ace_bench.playbook.bullets import age
from ace_bench.playbook.playbook import Playbook
from ace_bench.playbook.refine import Refiner

VOTES_ONLY = Limits(kinds=("TAG",))
"""Operations of the Reflector on a playbook. They do not depend on what the Curator may do."""


class Insight(msgspec.Struct, frozen=True, kw_only=True):
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
        return _join(self.lessons[-self.window :])

    @property
    def advice_before(self) -> str:
        """What the last attempt was shown."""
        return _join(self.lessons[:-1][-self.window :])

    def join_recent(self, recent: Sequence[str], window: int) -> str:
        """Return the last lesson after recent lessons on other samples. At most ``window`` lessons are returned."""
        return _join((*recent, self.lessons[-1])[-window:])

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


def _join(lessons: Sequence[str]) -> str:
    return "\n\n".join(lessons)


def used_bullets(playbook: Playbook, attempt: Attempt) -> Playbook:
    """Return the bullets that an attempt used, or all for an agent's steps (paper, figures 10 and 13)."""
    if attempt.trajectory:
        return playbook
    index = playbook.index
    used = [index[cited] for cited in dict.fromkeys(attempt.cited) if cited in index]
    return playbook.with_bullets(sorted(used, key=age))


def count_tags(tags: Sequence[BulletTag], used: Sequence[str]) -> tuple[tuple[Operation, ...], tuple[Record, ...]]:
    """Return the votes of the tags on used bullets, the first on each, and events about the other tags."""
    first = {tag.id: tag for tag in reversed(tags) if tag.id in used}
    votes, malformed = parse_operations([_as_operation(tag) for tag in reversed(first.values())])
    unused = [reject(_as_operation(tag), "not a bullet used") for tag in tags if tag.id not in used]
    return votes, (*malformed, *unused)


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
        return self._apply_operations([insight.sample], insight.votes, VOTES_ONLY).playbook

    def count_votes(self, *insights: Insight) -> None:
        """Count the Reflector's votes, sample by sample."""
        for insight in insights:
            self._apply([insight.sample], insight.votes, VOTES_ONLY, insight.events)

    def apply_delta(self, insights: Sequence[Insight], delta: Delta, limits: Limits) -> None:
        """Apply the Curator's operations for the samples of some insights."""
        self._apply([insight.sample for insight in insights], delta.operations, limits, delta.events)

    def remove_bullets(self) -> None:
        """Remove all bullets, for a playbook that is written anew."""
        self.playbook = self.playbook.with_bullets(())

    def refine(self, refiner: Refiner) -> None:
        """Refine the playbook."""
        refined = refiner.refine(self.playbook, self.touched, step=self._step)
        self.playbook = refined.playbook
        self.events += refined.events

    def remember(self, insights: Sequence[Insight], keep: int) -> None:
        """Keep the last ``keep`` lessons on samples, for the prompts of later steps."""
        recent = (*self.playbook.recent, *(insight.lessons[-1] for insight in insights if insight.lessons))
        self.playbook = self.playbook.replace_fields(recent=recent[max(0, len(recent) - keep) :])

    def _apply(
        self, samples: Sequence[Sample], operations: Sequence[Operation], limits: Limits, events: Sequence[Record]
    ) -> None:
        """Apply operations that come from samples. The samples' own events are recorded first."""
        self.playbook, touched, applied_events = self._apply_operations(samples, operations, limits)
        self.touched += touched
        ids = [sample.id for sample in samples]
        origin = {"sample": ids[0]} if len(ids) == 1 else {"samples": ids}
        self.events += [{**origin, **event} for event in (*events, *applied_events)]

    def _apply_operations(self, samples: Sequence[Sample], operations: Sequence[Operation], limits: Limits) -> Applied:
        sources = [sample.id for sample in samples]
        return apply(self.playbook, operations, step=self._step, sources=sources, limits=limits, count=self._count)
