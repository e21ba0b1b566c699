"""Calls of Reflectors and Curators about an attempt, and how often a sample is tried again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import Arena, Learning
from ace_bench.core.prompts import PromptParts, Transcript, send_within_limit
from ace_bench.core.types import Attempt, Fault, Labels, Message, Record, Rollout

REFLECTOR, CURATOR = "reflector", "curator"
NOTHING = "(none)"

_SHARED = frozenset(("labels", "trajectory", "conversation"))
REFLECTOR_FIELDS = _SHARED | {
    "reasoning",
    "reply",
    "answer",
    "gold",
    "correct",
    "feedback",
    "report",
    "cited",
    "bullets",
}
CURATOR_FIELDS = _SHARED | {"sections", "step", "total", "size", "tokens", "token_budget", "reflection"}
"""Fields of the prompts of a Reflector and of a Curator, beside the sample's and the playbook's."""


P = TypeVar("P", bound=Context)
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class RoleCall(Generic[P]):
    """A role's call about a rollout; its prompt shows ``playbook``.

    The rollout was made under ``attempted_under``, by default the same playbook, and was shown ``reflection``.
    ``fields`` are what the role's prompt shows beside the attempt and the playbook, which it is given.
    """

    arena: Arena
    role: str
    template: str
    session: str
    rollout: Rollout
    playbook: P
    reflection: str | None
    fields: Callable[[P], Record]
    attempted_under: P | None = None

    def send(self, read: Callable[[Lm, Sequence[Message]], R]) -> tuple[R | None, tuple[Record, ...]]:
        """Ask, and return what ``read`` makes of the reply, with events about the call.

        A prompt that is too long shows less of the steps, then less of the playbook. Where the model fails (``read``
        raises ``RolloutFault``), there is no reply.
        """
        lm = self.arena.lm(self.role, self.session)

        def send(shown: PromptParts[Transcript, P]) -> R:
            fields = {**self._attempt_fields(shown.first, shown.second), **self.fields(shown.second)}
            return read(lm, self.arena.prompts.render(self.template, fields))

        parts = PromptParts(Transcript(self.rollout.attempt.trajectory), self.playbook)
        try:
            reply, dropped = send_within_limit(parts, send)
        except RolloutFault as error:
            return None, (fault_event(self.role, error.fault),)
        return reply, dropped_event(self.role, dropped)

    def _attempt_fields(self, steps: Transcript, playbook: P) -> Record:
        seen = replace(self.rollout, attempt=replace(self.rollout.attempt, trajectory=steps.shown))
        return {
            **seen.sample.inputs,
            **playbook.render(seen.sample),
            "labels": self.arena.labels.value,
            "trajectory": steps.text,
            "conversation": partial(
                self.arena.conversation, seen, self.attempted_under or playbook, reflection=self.reflection
            ),
        }


class Quotable(Protocol):
    """A playbook that can show some of its bullets."""

    def excerpt(self, ids: Sequence[str]) -> str:
        """Show the bullets with the given ids."""
        ...


def reflector_fields(rollout: Rollout, playbook: Quotable) -> Record:
    """Return what a Reflector is shown of a rollout."""
    attempt, feedback = rollout.attempt, rollout.feedback
    return {
        "reasoning": attempt.reasoning or NOTHING,
        "reply": attempt.reply,
        "answer": attempt.answer,
        "gold": feedback.gold,
        "correct": feedback.correct,
        "feedback": feedback.message or NOTHING,
        "report": feedback.report,
        "cited": attempt.cited,
        "bullets": playbook.excerpt(attempt.cited),
    }


def curator_fields(
    playbook: Context, sections: Sequence[str], step: tuple[int, int], token_budget: int, reflection: str
) -> Record:
    """Return what a Curator is shown; ``step`` is the number of the step, from 1, and of all steps."""
    return {
        "sections": sections,
        "step": step[0],
        "total": step[1],
        "size": playbook.size,
        "tokens": playbook.tokens,
        "token_budget": token_budget,
        "reflection": reflection,
    }


def fault_event(role: str, fault: Fault) -> Record:
    """Describe a failed role call for the journal."""
    return {"event": "fault", "role": role, "owner": fault.owner, "kind": fault.kind, "message": fault.message}


def dropped_event(role: str, items: int) -> tuple[Record, ...]:
    """Return an event with the number of items left out of a role's prompt; none if nothing was left out."""
    return ({"event": "dropped_from_prompt", "role": role, "items": items},) if items else ()


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

    def limits_in(self, arena: Arena, learning: Learning) -> tuple[int, int]:
        """Return the limits for the samples of a run."""
        shown = arena.labels is not Labels.NONE and learning.split != "test"
        return self.limits(acts=learning.acts, shown=shown)

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
