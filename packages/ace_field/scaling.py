"""ReasoningBank's memory-aware test-time scaling (MaTTS): several attempts at a sample teach together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal

from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import Arena, Learning, Workload, exactly
from ace_bench.core.prompts import Transcript
from ace_bench.core.settings import Count
from ace_bench.core.types import GeneratorSpec, Rollout
from ace_field.attempts import (
    SELF_JUDGE,
    Judged,
    ShownAttempt,
    ShownAttempts,
    attempt_fields,
    judge,
    judge_calls,
    steps_text,
)
from ace_field.reasoning_bank import ROLE, Extracted, ReasoningBank, ReasoningItems

CONTRAST = "contrast"
"""Template of the extraction from several attempts."""
RECHECKED = GeneratorSpec(template="rechecked", answer_format="json")
"""Of attempts that look the one before over again."""
_FIELDS = frozenset(("attempts", "gold", "most", "markdown", "sequential"))


@dataclass(frozen=True, kw_only=True)
class _Attempt(ShownAttempt):
    judged: Judged

    def fields(self) -> Mapping[str, Any]:
        """Return it as the template of the extraction shows it."""
        rollout = self.judged.rollout
        own = {"reply": rollout.attempt.reply, "success": self.judged.success, "reasons": self.judged.reasons}
        return {**attempt_fields(rollout, self.steps), **own}


@dataclass(kw_only=True, eq=False)
class Matts(ReasoningBank):
    """ReasoningBank that makes ``attempts`` at a sample and extracts from all of them at once.

    ``parallel`` ones are independent draws, which the extractor contrasts. Of ``sequential`` ones each looks the one
    before over again. The first attempt is the sample's answer. With ``protocol=authors`` nobody judges the attempts.
    """

    roles = MappingProxyType({ROLE: (CONTRAST,), SELF_JUDGE: (SELF_JUDGE,)})

    scaling: Literal["parallel", "sequential"]
    attempts: Count

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for settings that exclude each other."""
        super().__post_init__()
        if self.attempts == 1:
            raise SettingError("attempts=1 leaves nothing to compare: use more, or method=reasoning_bank")
        self._sequential = self.scaling == "sequential"
        if self._sequential:
            if self.protocol == "authors":
                raise SettingError("protocol=authors: their code runs scaling=parallel alone")
            self.generator = RECHECKED

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` also where all draws would be the same reply."""
        super().check(arena)
        if not self._sequential and arena.draws("generator") is False:
            raise ConfigError(
                "method.scaling=parallel: at temperature 0 all attempts are the same; raise "
                "sampling.generator.temperature, or use method.scaling=sequential"
            )

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the extractor's and of the judge's template."""
        return {**super().prompt_fields(inputs, context_fields), CONTRAST: inputs | _FIELDS}

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return all attempts, one extraction a sample, and the judge's calls."""
        samples, made = exactly(learning.samples), learning.samples * self.attempts
        judged = {} if self.protocol == "authors" else judge_calls(arena, made)
        return Workload(rollouts=exactly(made), roles={ROLE: samples, **judged}, shown_samples=self.top_k)

    def judged_attempts(
        self, context: ReasoningItems, rollouts: Sequence[Rollout], arena: Arena
    ) -> Sequence[Sequence[Judged]]:
        """Make the other attempts at each sample, and judge them all."""
        made = [*chain.from_iterable(self._attempt_again(context, rollouts, arena))]
        if self.protocol == "authors":
            judged = [Judged(rollout=rollout, success=rollout.feedback.correct) for rollout in made]
        else:
            judged = judge(made, arena)
        return [judged[at : at + self.attempts] for at in range(0, len(judged), self.attempts)]

    def _attempt_again(
        self, context: ReasoningItems, first: Sequence[Rollout], arena: Arena
    ) -> Sequence[Sequence[Rollout]]:
        trials = range(1, self.attempts)
        if not self._sequential:
            asked = [(rollout.sample, trial) for rollout in first for trial in trials]
            drawn = iter(arena.map(lambda one: arena.rollout(one[0], context, trial=one[1]), asked))
            return [(rollout, *(next(drawn) for _ in trials)) for rollout in first]

        def recheck(rollout: Rollout) -> Sequence[Rollout]:
            made = [rollout]
            for trial in trials:
                made.append(arena.rollout(rollout.sample, context, trial=trial, reflection=_format_attempt(made[-1])))
            return made

        return arena.map(recheck, first)

    def extract(self, group: Sequence[Judged], arena: Arena) -> Extracted:
        """Return what all attempts at a sample that were finished teach together."""
        finished = [one for one in group if one.rollout.fault is None]
        if not finished:
            return None, ({"event": "skipped"},)
        successes = sum(one.success is True for one in finished)
        learnt = {"event": "contrasted", "attempts": len(finished), "successes": successes}
        attempts = [_Attempt(judged=one, steps=Transcript(one.rollout.attempt.trajectory)) for one in finished]
        own = {**group[0].rollout.sample.inputs, "sequential": self._sequential}
        return self.ask(
            CONTRAST,
            group,
            ShownAttempts(tuple(attempts)),
            lambda shown: {**own, "attempts": [one.fields() for one in shown.items]},
            learnt,
            arena,
        )


def _format_attempt(rollout: Rollout) -> str:
    """Return an attempt as the next one is shown it."""
    attempt = rollout.attempt
    if rollout.fault is not None:
        return f"(It ended with an error: {rollout.fault.kind}.)"
    if attempt.ended is not None:
        return steps_text(attempt)
    return "\n\n".join(filter(None, (attempt.reasoning, f"Answer: {attempt.answer or '(none)'}")))
