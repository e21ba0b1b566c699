"""Combee in the authors' finance code (ace-agent/ace at bcb7cea): reflections of a batch, dealt to Curators in turn.

All samples of a batch are reflected on side by side, each under the playbook from before the batch. Then their tags are
counted at once: of several tags on a bullet the last counts. Each reflection is copied. The copies are shuffled, and
one Curator after another reads a part of them. A sample about which a call fails changes nothing. If an attempt after
the batch fails, the whole batch changes nothing. That state asks a function ``is_api_error`` which failures these are,
and defines it nowhere: here they are all calls without a reply.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload
from ace_bench.core.settings import Count
from ace_bench.core.types import Rollout, Step
from ace_bench.methods.base import CURATOR
from ace_bench.methods.official.finance import FinanceLesson, OfficialFinance, got_no_reply, post_update_events
from ace_bench.methods.official.playbook import TextPlaybook
from ace_bench.playbook.apply import reject

_RULE = "\n\n---\n\n"
_UNDONE = reject({"type": "all of the batch"}, "an attempt after the batch failed, so the authors' code undoes it")


@dataclass(frozen=True, kw_only=True)
class OfficialCombee(OfficialFinance):
    """ACE on batches as the finance code runs it.

    ``copies`` is how often each reflection is dealt (their ``augmented_shuffling_factor``), and ``curator_batch_size``
    how many of the copies a Curator reads.
    """

    copies: Count
    curator_batch_size: Count

    draws_from_seed = True
    follows = "ace-agent/ace@bcb7cea"

    def check(self, arena: Arena) -> None:
        """Refuse AppWorld, whose parallel agent is other code, and settings that the authors' batches ignore."""
        if self.dialect(arena) == "appworld":
            raise ConfigError(
                "method=combee with protocol=official follows the authors' finance code, not their parallel AppWorld "
                "agent: leave protocol=official out"
            )
        if self.curator_every > 1:
            raise ConfigError("method.curator_every: the authors' batches are curated at every step; leave it out")

    def check_batch(self, size: int) -> None:
        """Refuse batches of one, for which the authors' code takes ACE's loop."""
        if size == 1:
            raise ConfigError(
                "mode.batch_size=1 is method=ace in the authors' code: set it to 2 or more, such as mode.batch_size=8"
            )

    def update(
        self, context: TextPlaybook, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[TextPlaybook]:
        """Reflect on all samples, count their tags, curate part by part, and measure the gain."""
        lessons = [FinanceLesson(method=self, arena=arena, step=step, playbook=context) for _ in rollouts]
        learnt = arena.map(lambda pair: pair[0].reflect_on(pair[1]), [*zip(lessons, rollouts, strict=True)])
        noted = [*chain.from_iterable(lesson.events for lesson in lessons)]
        answered = [
            (first, reflections[-1:], lesson.tags)
            for first, (_, reflections), lesson in zip(rollouts, learnt, lessons, strict=True)
            if not lesson.failed
        ]
        tags = [*chain.from_iterable(tags for *_, tags in answered)]
        counted = context.with_tags(tags, count=arena.counter("generator"))
        curating = FinanceLesson(method=self, arena=arena, step=step, playbook=counted)
        taught = [(first, reflection) for first, last, _ in answered for reflection in last]
        self._curate(curating, self._deal(taught, f"{arena.seed}/combee/{step.index}"))
        kept = [first for first, *_ in answered]
        repeated = self.attempt_again(curating.playbook, kept, arena)
        noted += post_update_events(kept, repeated)
        if any(map(got_no_reply, repeated)):
            samples = [first.sample.id for first in kept]
            return ContextUpdate(context=context, events=(*noted, {**_UNDONE, "samples": samples}))
        return ContextUpdate(context=curating.playbook, events=(*noted, *curating.events))

    def _deal(self, taught: Sequence[tuple[Rollout, str]], seed: str) -> Sequence[tuple[Rollout, str]]:
        copies = [lesson for lesson in taught for _ in range(self.copies)]
        if self.copies > 1:
            random.Random(seed).shuffle(copies)
        return copies

    def _curate(self, lesson: FinanceLesson, dealt: Sequence[tuple[Rollout, str]]) -> None:
        """Curate from part after part, each under the playbook that the one before has left.

        The step that their prompt names goes on with the copies, so it can pass the number of samples.
        """
        step = lesson.step
        for start in range(0, len(dealt), self.curator_batch_size):
            part = dealt[start : start + self.curator_batch_size]
            numbered = _RULE.join(f"[Sample {number}] {text}" for number, (_, text) in enumerate(part, start + 1))
            named_step = step.samples_before + start + len(part) - 1
            prompt_values = lesson.curator_fields(named_step, step.samples, numbered)
            lesson.curate(part[-1][0], dealt[0][0], prompt_values, before_last="")

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return ACE's workload, with a call of the Curator for each part of each batch."""
        of_samples = super().workload(arena, learning)
        parts = -(-learning.samples * self.copies // self.curator_batch_size)
        return Workload(
            rollouts=of_samples.rollouts,
            roles={**of_samples.roles, CURATOR: Span(parts, parts + learning.steps)},
        )
