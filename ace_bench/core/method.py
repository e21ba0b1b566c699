"""The ways to build a context, and what one of their steps made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from ace_bench.core.arena import Arena
from ace_bench.core.context import Context
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Sample, Step

C = TypeVar("C", bound=Context)
C_co = TypeVar("C_co", bound=Context, covariant=True)

Adaptation = Literal["none", "steps", "fit"]
"""How a method adapts its context: not at all, step by step from rollouts, or offline in one piece."""


@dataclass(frozen=True, kw_only=True)
class ContextUpdate(Generic[C_co]):
    """What one adaptation step made: the new context and what happened, for the journal and the reports."""

    context: C_co
    events: tuple[Record, ...] = ()


class Method(Protocol[C]):
    """Context in, context out. ``ace_bench.methods.base.BaseMethod`` has a default for all but the first two."""

    generator: GeneratorSpec

    def start(self, arena: Arena) -> C:
        """Return the context before any adaptation; makes no calls."""
        ...

    @property
    def adaptation(self) -> Adaptation:
        """Which of ``update`` and ``fit`` the runner calls; with ``none`` the start context is evaluated."""
        ...

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles it asks besides the generator, and the prompt templates each is asked with."""
        ...

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of each template in ``roles``; ``inputs`` are those of a sample, ``shown`` of the context.

        A prompt set that asks for another field is refused before any call.
        """
        ...

    @property
    def context_file(self) -> str | None:
        """The file that holds the context to evaluate, for a method that only evaluates one."""
        ...

    def baseline(self, arena: Arena) -> C:
        """Return what ``mode=evaluate`` compares a saved context with; makes no calls."""
        ...

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` where nothing can be learnt with these settings, samples and labels; no calls."""
        ...

    def select(self, context: C, sample: Sample) -> C:
        """Return the part of a context that the generator is shown for a sample (paper, section 3.1).

        What is learnt, kept and counted is still the whole context.
        """
        ...

    def prepare(self, context: C, samples: Sequence[Sample], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Return the context that these samples are attempted under; pure apart from calls, like ``update``."""
        ...

    def update(self, context: C, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Learn from one batch. Pure apart from calls through the arena: a step replayed gives the same update."""
        ...

    def fit(self, context: C, arena: Arena) -> ContextUpdate[C]:
        """Return the optimised context. Repeating it replays every paid call and rollout."""
        ...

    def expected_rollouts(self, arena: Arena) -> int | None:
        """About how many rollouts ``fit`` asks for, for estimates; ``None``: in proportion to the samples."""
        ...
