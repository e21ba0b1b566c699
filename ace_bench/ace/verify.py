"""Lessons that are checked before they stay, ``method.verify=true`` (ours: the paper keeps every lesson)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from ace_bench.ace.editing import Insight, PlaybookEditor
from ace_bench.ace.replies import Delta
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import VERIFIED, Arena, Span
from ace_bench.core.types import Labels, Record, Rollout, Sample, Step
from ace_bench.playbook.apply import Limits, Tag, reject
from ace_bench.playbook.embeddings import EmbeddingMemo
from ace_bench.playbook.playbook import Playbook

SIMILAR = 2
"""Samples most like the one that taught a lesson. All of them must turn right where that one does not."""


class Finding(NamedTuple):
    """Whether a change of the playbook stays and why, the verdicts that are known now, and the keys of the attempts."""

    kept: bool
    reason: str
    verdicts: Mapping[str, bool]
    attempts: Sequence[str]

    def event(self) -> Record:
        """Return what the journal says."""
        return {"event": VERIFIED, "kept": self.kept, "reason": self.reason, "attempts": list(self.attempts)}


class Verifier(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts samples of adaptation again with a changed playbook.

    A change stays if the sample that taught it turns right with it, or the ``SIMILAR`` wrong ones most like it do, and
    none of ``guard`` others turns wrong. Those are drawn by the run's seed from the samples that were answered right.
    Samples that adaptation has not seen yet take no part. ``memo`` embeds the questions.
    """

    memo: EmbeddingMemo
    guard: int

    @property
    def attempts(self) -> Span:
        """The attempts of one check. A sample that seems to change is also attempted without the change."""
        return Span(0, 1 + 2 * SIMILAR + 2 * self.guard)

    def check(self, arena: Arena) -> None:
        """Reject runs that show no verdicts."""
        if arena.labels is Labels.NONE:
            raise ConfigError(
                "method.verify=true needs to know whether an answer is right, which labels=none hides: set labels=gold "
                "or labels=correctness, or method.verify=false"
            )

    def judge(self, trial: Trial, samples: Sequence[Sample], step: int, arena: Arena) -> Finding:
        """Try what the lessons on some samples changed."""
        known, own_ids = dict(trial.without.verdicts), {sample.id for sample in samples}
        others = [sample for sample in arena.samples(samples[0].split) if sample.id in known.keys() - own_ids]
        turned = trial.turned([sample for sample in samples if known.get(sample.id) is False], right=True, sure=True)
        if not turned:
            alike = self._most_alike(samples, [sample for sample in others if not known[sample.id]])
            turned = trial.turned(alike, right=True)
            turned = turned if len(turned) == SIMILAR else []
        if not turned:
            return trial.finding(kept=False, reason="no sample turns right with it")
        right = [sample for sample in others if known[sample.id]]
        draw = random.Random(f"{arena.seed}/verify/{step}/{samples[0].id}")
        broken = trial.turned(draw.sample(right, min(self.guard, len(right))), right=False)
        if broken:
            return trial.finding(kept=False, reason=f"{broken[0].id} turns wrong with it")
        trial.verdicts.update((sample.id, True) for sample in turned)
        return trial.finding(kept=True, reason=f"{turned[0].id} turns right with it")

    def _most_alike(self, samples: Sequence[Sample], wrong: Sequence[Sample]) -> Sequence[Sample]:
        """Return the wrong samples most like those that taught the lesson, none if there are too few."""
        if len(wrong) < SIMILAR:
            return ()
        rows = self.memo.rows([sample.asked for sample in wrong])
        vector = self.memo.embed(["\n".join(sample.asked for sample in samples)])[0]
        return [wrong[place] for place in self.memo.nearest(rows, vector, SIMILAR).places.tolist()]


class Trial:
    """Attempts with and without a change of the playbook.

    ``verdicts`` are those that turned out to be out of date: earlier changes of the playbook had changed the answer.
    """

    def __init__(self, without: Playbook, changed: Playbook, arena: Arena):
        self.verdicts: dict[str, bool] = {}
        self.without = without
        self._changed = changed
        self._arena = arena
        self._attempts: dict[str, None] = {}

    def turned(self, samples: Sequence[Sample], *, right: bool, sure: bool = False) -> Sequence[Sample]:
        """Return the samples that the change turns right, or wrong.

        Unless it is ``sure`` what they were before, another attempt without the change says so.
        """
        with_change = self._attempt(samples, self._changed)
        turned = [sample for sample in samples if with_change[sample.id] is right]
        if sure:
            return turned
        without = self._attempt(turned, self.without)
        self.verdicts.update((sample.id, right) for sample in turned if without[sample.id] is right)
        return [sample for sample in turned if without[sample.id] is (not right)]

    def finding(self, *, kept: bool, reason: str) -> Finding:
        """Return what came of it."""
        return Finding(kept, reason, self.verdicts, tuple(self._attempts))

    def _attempt(self, samples: Sequence[Sample], playbook: Playbook) -> Mapping[str, bool | None]:
        rollouts = self._arena.map(lambda sample: self._arena.rollout(sample, playbook), samples)
        self._attempts.update(dict.fromkeys(rollout.key for rollout in rollouts))
        return {rollout.sample.id: verdict_on(rollout) for rollout in rollouts}


def verdict_on(rollout: Rollout) -> bool | None:
    """Return whether an attempt is right, ``None`` where it failed for another reason than its answer."""
    return None if rollout.fault is not None else rollout.feedback.correct


class VerifyingEditor(PlaybookEditor):
    """Applies a delta if its check says so, and else only the votes in it.

    ``rollouts`` are the step's first attempts, whose verdicts the playbook keeps for the checks.
    """

    def __init__(self, playbook: Playbook, rollouts: Sequence[Rollout], verifier: Verifier, step: Step, arena: Arena):
        super().__init__(playbook, step=step, count=arena.counter("generator"))
        self._verifier = verifier
        self._arena = arena
        verdicts = {rollout.sample.id: verdict_on(rollout) for rollout in rollouts}
        self._know({sample: verdict for sample, verdict in verdicts.items() if verdict is not None})

    def apply_delta(self, insights: Sequence[Insight], delta: Delta, limits: Limits) -> None:
        """Check the operations, unless they only vote."""
        samples = [insight.sample for insight in insights]
        tried = self._apply_operations(samples, delta.operations, limits)
        if not any(event["event"] == "accepted" and event["type"] != "TAG" for event in tried.events):
            super().apply_delta(insights, delta, limits)
            return
        trial = Trial(self.playbook, tried.playbook, self._arena)
        finding = self._verifier.judge(trial, samples, self._step, self._arena)
        self._know(finding.verdicts)
        checked = Delta(delta.operations, (*delta.events, finding.event()))
        stays = checked if finding.kept else _votes_of(checked, tried.events, finding.reason)
        super().apply_delta(insights, stays, limits)

    def _know(self, verdicts: Mapping[str, bool]) -> None:
        known = {**dict(self.playbook.verdicts), **verdicts}
        self.playbook = self.playbook.replace_fields(verdicts=tuple(known.items()))


def _votes_of(delta: Delta, events: Sequence[Record], reason: str) -> Delta:
    """Return the votes of a refused delta; ``events`` say which of its operations could not be applied anyway."""
    unusable = [event for event in events if event["event"] == "rejected" and event["operation"]["type"] != "TAG"]
    echoes = [event["operation"] for event in unusable]
    changes = [operation for operation in delta.operations if not isinstance(operation, Tag)]
    refused = [reject(operation, f"not kept by the check: {reason}") for operation in changes]
    votes = tuple(operation for operation in delta.operations if isinstance(operation, Tag))
    return Delta(votes, (*delta.events, *unusable, *(event for event in refused if event["operation"] not in echoes)))
