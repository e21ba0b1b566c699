"""Best of k: Reflexion's control, which draws independent answers and reflects on none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ace_bench.contexts.base import NoContext
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Span, Workload, exactly
from ace_bench.core.types import Labels, Record, Rollout, Step
from ace_bench.methods.field.reflexion import TrialMethod, chosen_event


@dataclass(kw_only=True, eq=False)
class BestOfK(TrialMethod):
    """Answers a sample again and again with the same prompt, each time by another seed, and chooses one answer.

    With the verdict there are at most ``trials`` draws, as many looks at it as Reflexion has. They
    end with the first right one, as Reflexion's trials do: an oracle's choice.

    Where ``labels`` hides the verdict, there are as many draws as Reflexion makes calls for a sample at most:
    ``3 * trials - 2``, with those of its reflector and judge. An agent has ``trials`` attempts: one takes many calls, a
    reflection one. The answer of most draws counts (self-consistency); where the environment shows what became of an
    answer, as for a query, that is compared. The earliest wins a tie.
    """

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` if all draws would be the same reply."""
        if self.trials > 1 and arena.draws("generator") is False:
            raise ConfigError(
                "method=best_of_k: at temperature 0 all draws are the same reply; set sampling.generator.temperature "
                "above 0"
            )

    def update(
        self, context: NoContext, rollouts: Sequence[Rollout], step: Step, arena: Arena
    ) -> ContextUpdate[NoContext]:
        """Draw more answers to the samples of a batch, side by side, and choose one for each."""
        if arena.labels is Labels.NONE:
            events = self._vote(rollouts, context, arena)
        else:
            events = arena.map(lambda first: self._draw_until_right(first, context, arena), rollouts)
        return ContextUpdate(context=context, events=tuple(events))

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return all draws, or with the verdict from one draw to all."""
        most = self._limit(arena.labels, acts=learning.acts)
        per_sample = exactly(most) if arena.labels is Labels.NONE else Span(1, most)
        return Workload(rollouts=exactly(learning.samples).times(per_sample), roles={})

    def _limit(self, labels: Labels, *, acts: bool) -> int:
        """Return how many draws a sample has at most."""
        further_draws = 3 if labels is Labels.NONE and not acts else 1
        return 1 + further_draws * (self.trials - 1)

    def _draw_until_right(self, first: Rollout, context: NoContext, arena: Arena) -> Record:
        draws = [first]
        while not (latest := draws[-1]).feedback.correct and len(draws) < self._limit(arena.labels, acts=_acts(draws)):
            draws.append(arena.rollout(first.sample, context, trial=latest.trial + 1))
        finished = [draw for draw in draws if draw.fault is None]
        return chosen_event(first, (finished or draws)[-1], len(draws))

    def _vote(self, rollouts: Sequence[Rollout], context: NoContext, arena: Arena) -> list[Record]:
        requests = [
            (first, trial) for first in rollouts for trial in range(1, self._limit(arena.labels, acts=_acts([first])))
        ]
        repeated = arena.map(lambda request: arena.rollout(request[0].sample, context, trial=request[1]), requests)
        events: list[Record] = []
        for first in rollouts:
            draws = [first, *(draw for draw in repeated if draw.sample == first.sample)]
            chosen, votes = _most_common(draws)
            events += [{"event": "voted", "votes": votes}, chosen_event(first, chosen, len(draws))]
        return events


def _acts(draws: Sequence[Rollout]) -> bool:
    return any(draw.attempt.ended is not None for draw in draws)


def _most_common(draws: Sequence[Rollout]) -> tuple[Rollout, int]:
    """Return the earliest draw with the most common outcome, and its votes; of agents only completed attempts vote."""
    voters = [draw for draw in draws if draw.attempt.answer is not None and draw.attempt.ended in (None, "completed")]
    counts = Counter(map(_outcome, voters))
    chosen = max(voters, key=lambda draw: counts[_outcome(draw)], default=draws[0])
    return chosen, counts[_outcome(chosen)]


def _outcome(draw: Rollout) -> str:
    message = "" if _acts([draw]) else draw.feedback.message
    return " ".join((message or draw.attempt.answer or "").casefold().split())
