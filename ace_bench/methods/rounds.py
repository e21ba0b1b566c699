"""How often a sample is tried again with a reflection, and when there is no point in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ace_bench.core.types import Attempt, Rollout

_LEARNT = ("train", "val")
"""Splits whose environments may be tried again: every method may learn from them as often as it likes."""


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """The most rounds of reflection on a question, and the most new attempts of an agent (``retries``).

    A question is answered again after every reflection. An agent's attempt resets an environment, and its last one is
    reflected on, too. ``auto`` gives no method more of the environment than others get: ``reflections - 1`` new
    attempts at training tasks whose outcome is shown (as the official code with ground truth), none at others.
    """

    reflections: int
    retries: int | Literal["auto"]

    def limits(self, *, acts: bool, shown: bool) -> tuple[int, int]:
        """Return the most reflections on a sample and the most new attempts at it.

        ``acts``: attempts act in an environment; ``shown``: they show the outcome of a training task.
        """
        if not acts:
            return max(1, self.reflections), self.reflections
        retries = self.retries
        if retries == "auto":
            retries = self.reflections - 1 if shown else 0
        return retries + 1, retries

    def limits_for(self, rollout: Rollout) -> tuple[int, int]:
        """Return the limits for the sample of its first rollout."""
        shown = rollout.feedback.correct is not None and rollout.sample.split in _LEARNT
        return self.limits(acts=rollout.attempt.ended is not None, shown=shown)


def is_settled(previous: Rollout, latest: Rollout) -> bool:
    """Whether a new rollout is right or, where ``labels`` hides that, repeats the one before."""
    if latest.feedback.correct is None:
        return _answer_and_actions(latest.attempt) == _answer_and_actions(previous.attempt)
    return latest.feedback.correct


def _answer_and_actions(attempt: Attempt) -> tuple[str | None, ...]:
    return (attempt.answer, *(turn.action for turn in attempt.trajectory))
