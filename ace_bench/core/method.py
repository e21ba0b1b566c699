"""The interface of methods, and the result of one adaptation step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from ace_bench.core.arena import Arena
from ace_bench.core.context import Context
from ace_bench.core.types import GeneratorSpec, Record, Rollout, Sample, Step
from ace_bench.core.workload import Learning, Workload

C = TypeVar("C", bound=Context)
C_co = TypeVar("C_co", bound=Context, covariant=True)

Adaptation = Literal["none", "steps", "fit"]
"""How a method adapts its context: not at all, step by step from rollouts, or offline in one step without rollouts."""

AFTER_CURATION = "after_curation"
"""Kind of an event with the keys of a sample's rollouts before (``first``) and after (``again``) learning from it."""

LAST_TRIAL = "last_trial"
"""Kind of an event of a method that ``retries``: the keys of a sample's ``first`` trial and of the one that counts
(``last``), and the number of ``trials``."""


@dataclass(frozen=True, kw_only=True)
class ContextUpdate(Generic[C_co]):
    """The result of one adaptation step: the new context, and events for the journal and the reports."""

    context: C_co
    events: tuple[Record, ...] = ()


class Method(Protocol[C]):
    """Improves a context. ``ace_bench.methods.base.BaseMethod`` has defaults for all but the first two members."""

    generator: GeneratorSpec

    def start(self, arena: Arena) -> C:
        """Return the context before any adaptation; makes no calls."""
        ...

    @property
    def adaptation(self) -> Adaptation:
        """How it adapts its context; with ``none`` the start context is evaluated."""
        ...

    @property
    def retries(self) -> bool:
        """Whether a sample's answer is that of its last trial, which an event ``LAST_TRIAL`` names (Reflexion)."""
        ...

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles that it calls besides the generator, and the prompt templates of each."""
        ...

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of each template in ``roles``; ``inputs`` are those of a sample, ``shown`` of the context.

        A prompt set that uses another field is refused before the first call.
        """
        ...

    @property
    def context_file(self) -> str | None:
        """The file that holds the context to evaluate, for a method that only evaluates one."""
        ...

    @property
    def embedders(self) -> Sequence[object]:
        """The embedders it uses; the run connects those of an endpoint (``EndpointEmbedder``) before the first call."""
        ...

    def baseline(self, arena: Arena) -> C:
        """Return the context that ``mode=evaluate`` compares a saved one with; makes no calls."""
        ...

    def load(self, path: Path, like: C, arena: Arena) -> C:
        """Load a context to evaluate, of the same kind as ``like``; raises ``DataError`` or ``ConfigError``."""
        ...

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` if the method cannot work with these settings, samples and labels; makes no calls."""
        ...

    def select(self, context: C, sample: Sample) -> C:
        """Return the part of a context that the generator is shown for a sample (paper, section 3.1).

        Learning, saving and counting still use the whole context.
        """
        ...

    def prepare(self, context: C, samples: Sequence[Sample], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Return the context for the rollouts of these samples; like ``update``, pure apart from calls."""
        ...

    def update(self, context: C, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Learn from one batch. Pure apart from calls through the arena: replaying a step gives the same update.

        An optimiser (``fit``) gets no rollouts and makes its own; a continued run replays the recorded ones.
        """
        ...

    def workload(self, arena: Arena, learning: Learning) -> Workload | None:
        """Return what adaptation takes, for estimates: all steps of ``learning``, or the whole of ``fit``.

        ``None``: in proportion to what a rehearsal with a few samples takes.
        """
        ...
