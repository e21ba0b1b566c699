"""The ways to build a context, and what one of their steps made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ace_bench.core.arena import Arena
from ace_bench.core.context import Context
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Sample, Step


@dataclass(frozen=True, kw_only=True)
class ContextUpdate:
    """What one adaptation step made: the new context and what happened, for the journal and the reports."""

    context: Context
    events: tuple[Record, ...] = field(default=())


class Method(Protocol):
    """Context in, context out. A method that neither learns nor fits evaluates its start context."""

    generator: GeneratorSpec

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles it asks besides the generator, and the prompt templates each is asked with."""
        ...

    def start(self, arena: Arena) -> Context:
        """Return the context before any adaptation; makes no calls."""
        ...


@runtime_checkable
class Given(Method, Protocol):
    """A method that starts from the context in ``file`` and changes nothing in it."""

    file: str

    def without(self, arena: Arena) -> Context:
        """Return what it would start from without the file's content, to compare with."""
        ...


@runtime_checkable
class ContextSelector(Protocol):
    """A method that has the Generator shown only what of a context matters for a sample (paper, section 3.1)."""

    def shown(self, context: Context, sample: Sample) -> Context:
        """Return the part to show; what is learnt, kept and counted is still the whole context."""
        ...


@runtime_checkable
class StepLearner(Method, Protocol):
    """Learns step by step from rollouts: ACE, Dynamic Cheatsheet."""

    def update(self, context: Context, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> ContextUpdate:
        """Learn from one batch. Pure apart from calls through the arena: a step replayed gives the same update."""
        ...


@runtime_checkable
class Preparing(StepLearner, Protocol):
    """Learns a second time, before samples are attempted, from what they ask: Dynamic Cheatsheet with retrieval."""

    def prepare(self, context: Context, samples: Sequence[Sample], step: Step, arena: Arena) -> ContextUpdate:
        """Return the context that these samples are attempted under; pure apart from calls, like ``update``."""
        ...


@runtime_checkable
class Optimiser(Method, Protocol):
    """Optimises offline in one piece: ICL, MIPROv2, GEPA."""

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` where nothing can be optimised with these settings, samples and labels; no calls."""
        ...

    def attempts(self, arena: Arena) -> int:
        """About how many rollouts a fit asks for, for estimates; makes no calls."""
        ...

    def fit(self, context: Context, arena: Arena) -> ContextUpdate:
        """Return the optimised context. Repeating it replays every paid call and rollout."""
        ...
