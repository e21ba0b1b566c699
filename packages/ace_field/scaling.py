"""ReasoningBank's memory-aware test-time scaling (MaTTS): several attempts at a sample teach together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Workload, exactly
from ace_bench.core.prompts import Transcript
from ace_bench.core.settings import Count
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Step
from ace_bench.methods.base import ask_role
from ace_field.attempts import SELF_JUDGE, Judged, ShownAttempts, attempt_fields, judge, judge_calls, steps_text
from ace_field.reasoning_bank import ROLE, Experience, ExtractorReply, ReasoningBank, ReasoningItems

CONTRAST = "contrast"
"""Template of the extraction from several attempts."""
RECHECKED = GeneratorSpec(template="rechecked", answer_format="json")
"""Of attempts that look the one before over again."""
_FIELDS = frozenset(("attempts", "gold", "most", "markdown", "sequential"))


@dataclass(frozen=True)
class _Attempt:
    """An attempt with its verdict, and the steps that a prompt shows."""

    judged: Judged
    steps: Transcript

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

    def update(
        self, context: ReasoningItems, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[ReasoningItems]:
        """Make the other attempts at each sample of a batch, and append what all of a sample teach together."""
        groups = self._attempt_again(context, rollouts, arena)
        made = [rollout for group in groups for rollout in group]
        if self.extractor.as_written:
            judged = [Judged(rollout=rollout, success=rollout.feedback.correct) for rollout in made]
        else:
            judged = judge(made, arena)
        size = self.attempts
        of_samples = [judged[at : at + size] for at in range(0, len(judged), size)]
        memory, events = context, list[Record]()
        learnt = arena.map(lambda group: self._extract(group, arena), of_samples)
        for group, (experience, told) in zip(of_samples, learnt, strict=True):
            memory = memory if experience is None else memory.with_experience(experience)
            happened = (*(event for one in group for event in one.events), *told)
            events += [{"sample": group[0].rollout.sample.id, **event} for event in happened]
        return ContextUpdate(context=memory, events=tuple(events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return all attempts, one extraction a sample, and the judge's calls."""
        samples, made = exactly(learning.samples), learning.samples * self.attempts
        judged = {} if self.extractor.as_written else judge_calls(arena, made)
        return Workload(rollouts=exactly(made), roles={ROLE: samples, **judged}, shown_samples=self.top_k)

    def _attempt_again(
        self, context: ReasoningItems, first: Sequence[Rollout], arena: Arena
    ) -> Sequence[Sequence[Rollout]]:
        trials = range(1, self.attempts)
        if not self._sequential:
            asked = [(rollout.sample, trial) for rollout in first for trial in trials]
            drawn = iter(arena.map(lambda one: arena.rollout(one[0], context, trial=one[1], own_seed=True), asked))
            return [(rollout, *(next(drawn) for _ in trials)) for rollout in first]

        def recheck(rollout: Rollout) -> Sequence[Rollout]:
            made = [rollout]
            for trial in trials:
                made.append(arena.rollout(rollout.sample, context, trial=trial, reflection=_reviewed(made[-1])))
            return made

        return arena.map(recheck, first)

    def _extract(self, group: Sequence[Judged], arena: Arena) -> tuple[Experience | None, tuple[Record, ...]]:
        finished = [one for one in group if one.rollout.fault is None]
        if not finished:
            return None, ({"event": "skipped"},)
        rollout, success = finished[0].rollout, any(one.success for one in finished)
        gold = rollout.feedback.gold if self.reference and not success else None

        def send(shown: ShownAttempts[_Attempt]) -> ExtractorReply | str:
            attempts = [one.fields() for one in shown.items]
            fields = {**rollout.sample.inputs, "attempts": attempts, "gold": gold, "sequential": self._sequential}
            return self.extractor.ask(CONTRAST, fields, group[0].rollout.key, arena)

        shown = ShownAttempts(tuple(_Attempt(one, Transcript(one.rollout.attempt.trajectory)) for one in finished))
        told = ask_role(ROLE, shown, send)
        successes = sum(one.success is True for one in finished)
        learnt: Record = {"event": "contrasted", "attempts": len(finished), "successes": successes}
        return self.extractor.read(told, rollout, arena, success=success, learnt=learnt)


def _reviewed(rollout: Rollout) -> str:
    """Return an attempt as the next one is shown it."""
    attempt = rollout.attempt
    if rollout.fault is not None:
        return f"(It ended with an error: {rollout.fault.kind}.)"
    if attempt.ended is not None:
        return steps_text(attempt)
    return "\n\n".join(filter(None, (attempt.reasoning, f"Answer: {attempt.answer or '(none)'}")))
