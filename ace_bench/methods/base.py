"""What methods share: their base class, calls of Reflectors and Curators about an attempt, and rounds of reflection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Generic, Literal, TypeVar

import msgspec

from ace_bench.contexts.loading import load_context
from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context, HasBullets
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.method import Adaptation, Arena, C, ContextUpdate, Learning, Method, Workload
from ace_bench.core.prompts import Sized, Transcript, send_within_limit, shrink
from ace_bench.core.types import Attempt, Fault, GeneratorSpec, Labels, Message, Record, Rollout, Sample, Step

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
CURATOR_FIELDS = _SHARED | {"sections", "step", "total", "size", "tokens", "token_budget", "reflection", "operations"}
"""Fields of the prompts of a Reflector and of a Curator, beside the sample's and the playbook's."""


P = TypeVar("P", bound=Context)
R = TypeVar("R")
S = TypeVar("S", bound=Sized)


class BaseMethod(ABC, Generic[C]):
    """A method over contexts of one type.

    A subclass sets ``generator``, implements ``start`` and, beside it, ``update`` to learn step by step from rollouts
    or ``fit`` to optimise offline in one piece; with neither its start context is evaluated. ``core.method.Method``
    documents each part.
    """

    generator: GeneratorSpec
    scores_last_trial: bool = False
    follows: str = ""
    """State of the authors' code that ``method.protocol=authors`` follows, as OWNER/NAME@COMMIT."""

    @abstractmethod
    def start(self, arena: Arena) -> C:
        """Return the context before any adaptation; makes no calls."""

    @property
    def adaptation(self) -> Adaptation:
        """Which of ``update`` and ``fit`` the subclass implements."""
        if type(self).fit is not BaseMethod.fit:
            return "fit"
        return "none" if type(self).update is BaseMethod.update else "steps"

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles besides the generator, with their templates: none by default."""
        return MappingProxyType({})

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """No templates but the generator's, which the agent knows."""
        return {}

    @property
    def context_file(self) -> str | None:
        """No file."""
        return None

    @property
    def embedders(self) -> Sequence[object]:
        """No embedder."""
        return ()

    def baseline(self, arena: Arena) -> C:
        """Return the start context."""
        return self.start(arena)

    def load(self, path: Path, like: C, arena: Arena) -> C:
        """Load the file as ``load_context`` does."""
        kind = type(like)
        context = load_context(path, kind, sections=arena.sections, count=arena.counter("generator"))
        if not isinstance(context, kind):
            raise ConfigError(
                f"{path} holds a context of kind {context.kind}, but {type(self).__name__} works with kind "
                f"{like.kind}; choose the method that made it, or method=frozen"
            )
        return context

    def check(self, arena: Arena) -> None:
        """Accept all settings, samples and labels."""

    def check_batch(self, size: int) -> None:
        """Accept batches of any size."""

    def select(self, context: C, sample: Sample) -> C:
        """Show the whole context."""
        return context

    def prepare(self, context: C, samples: Sequence[Sample], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Attempt samples with the unchanged context."""
        return ContextUpdate(context=context)

    def update(self, context: C, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Learn from one batch of rollouts; an optimiser fits in its only step."""
        return self.fit(context, arena)

    def fit(self, context: C, arena: Arena) -> ContextUpdate[C]:
        """Optimise in one piece."""
        raise NotImplementedError

    @property
    def rehearsed(self) -> Method[C]:
        """The method itself."""
        return self

    def workload(self, arena: Arena, learning: Learning) -> Workload | None:
        """Estimate in proportion to the samples."""
        return None


@dataclass(frozen=True, kw_only=True)
class RoleCall(Generic[P]):
    """A role's call about a rollout, to be sent by ``ask_role``; its prompt shows ``playbook``.

    The rollout was made under ``attempted_under``, by default the same playbook, and was shown ``reflection``.
    ``fields`` are what the role's prompt shows beside the attempt and the playbook, which it is given. A prompt that is
    too long shows less of the steps (``hidden`` outputs), then less of the playbook.
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
    hidden: int = 0

    @property
    def steps(self) -> Transcript:
        """The steps as the prompt shows them."""
        return Transcript(self.rollout.attempt.trajectory, self.hidden)

    @property
    def size(self) -> int:
        """Number of outputs and of items of the playbook."""
        return self.steps.size + self.playbook.size

    def shrink(self) -> RoleCall[P] | None:
        """Show less of the steps or, if that is not possible, of the playbook."""
        if (steps := self.steps.shrink()) is not None:
            return replace(self, hidden=steps.hidden)
        playbook = shrink(self.playbook)
        return None if playbook is None else replace(self, playbook=playbook)

    @property
    def lm(self) -> Lm:
        """The role's backbone."""
        return self.arena.lm(self.role, self.session)

    @property
    def messages(self) -> Sequence[Message]:
        """The prompt."""
        steps, under = self.steps, self.attempted_under or self.playbook
        shortened = replace(self.rollout, attempt=replace(self.rollout.attempt, trajectory=steps.shown))
        fields = {
            **shortened.sample.inputs,
            **self.playbook.render(shortened.sample),
            "labels": self.arena.labels.value,
            "trajectory": steps.text,
            "conversation": partial(self.arena.conversation, shortened, under, reflection=self.reflection),
            **self.fields(self.playbook),
        }
        return self.arena.prompts.render(self.template, fields)


def ask_role(role: str, part: S, send: Callable[[S], R]) -> tuple[R | None, tuple[Record, ...]]:
    """Send a role's prompt, shortened until it fits; also return events about the call.

    There is no reply if ``send`` raises ``RolloutFault``, that is, if the model fails.
    """
    try:
        reply, dropped = send_within_limit(part, send)
    except RolloutFault as error:
        return None, (fault_event(role, error.fault),)
    return reply, dropped_event(role, dropped)


def reflector_fields(rollout: Rollout, playbook: HasBullets) -> Record:
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


def curator_fields(  # noqa: PLR0913 - what a prompt shows
    playbook: Context,
    sections: Sequence[str],
    step: tuple[int, int],
    token_budget: int,
    *,
    reflection: str,
    operations: Sequence[str],
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
        "operations": list(operations),
    }


def fault_event(role: str, fault: Fault) -> Record:
    """Describe a failed role call for the journal."""
    return {"event": "fault", "role": role, "owner": fault.owner, "kind": fault.kind, "message": fault.message}


def dropped_event(role: str, items: int) -> tuple[Record, ...]:
    """Return an event with the number of items left out of a role's prompt; none if nothing was left out."""
    return ({"event": "dropped_from_prompt", "role": role, "items": items},) if items else ()


_LEARNT = ("train", "val")
"""Splits whose environments may be tried again: every method may learn from them as often as it likes."""


class Rounds(msgspec.Struct, frozen=True, kw_only=True):
    """The most rounds of reflection on a question, and the most new attempts of an agent (``retries``).

    A question is answered again after every reflection. An agent's attempt resets the environment. The last attempt
    also gets a reflection. ``auto`` gives no method more of the environment than others get: ``reflections - 1`` new
    attempts at training tasks whose outcome is shown (as the official code with ground truth), none at others.
    """

    reflections: int
    retries: int | Literal["auto"]

    def limits(self, *, acts: bool, judged: bool) -> tuple[int, int]:
        """Return the most reflections on a sample and the most new attempts at it.

        ``acts``: attempts act in an environment; ``judged``: they show the outcome of a training task.
        """
        if not acts:
            return max(1, self.reflections), self.reflections
        retries = self.retries
        if retries == "auto":
            retries = self.reflections - 1 if judged else 0
        return retries + 1, retries

    def limits_in(self, arena: Arena, learning: Learning) -> tuple[int, int]:
        """Return the limits for the samples of a run."""
        judged = arena.labels is not Labels.NONE and learning.split != "test"
        return self.limits(acts=learning.acts, judged=judged)

    def limits_for(self, rollout: Rollout) -> tuple[int, int]:
        """Return the limits for the sample of its first rollout."""
        judged = rollout.feedback.correct is not None and rollout.sample.split in _LEARNT
        return self.limits(acts=rollout.attempt.ended is not None, judged=judged)


def is_settled(previous: Rollout, latest: Rollout) -> bool:
    """Whether a new rollout is right or, where ``labels`` hides that, repeats the one before."""
    if latest.feedback.correct is None:
        return _answer_and_actions(latest.attempt) == _answer_and_actions(previous.attempt)
    return latest.feedback.correct


def _answer_and_actions(attempt: Attempt) -> tuple[str | None, ...]:
    return (attempt.answer, *(turn.action for turn in attempt.trajectory))
