"""Base class of methods, with defaults for all hooks but ``generator`` and ``start``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Generic

from ace_bench.contexts.loading import load_context
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Adaptation, Arena, C, ContextUpdate, Learning, Workload
from ace_bench.core.types import GeneratorSpec, Rollout, Sample, Step


class BaseMethod(ABC, Generic[C]):
    """A method over contexts of one type.

    A subclass sets ``generator``, implements ``start`` and, beside it, ``update`` to learn step by step from rollouts
    or ``fit`` to optimise offline in one piece; with neither its start context is evaluated. ``core.method.Method``
    says what each part must do.
    """

    generator: GeneratorSpec
    scores_last_trial: bool = False

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
        """No role but the generator."""
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

    def select(self, context: C, sample: Sample) -> C:
        """Show the whole context."""
        return context

    def prepare(self, context: C, samples: Sequence[Sample], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Attempt samples under the context as it is."""
        return ContextUpdate(context=context)

    def update(self, context: C, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Learn from one batch of rollouts; an optimiser fits in its only step."""
        return self.fit(context, arena)

    def fit(self, context: C, arena: Arena) -> ContextUpdate[C]:
        """Optimise in one piece."""
        raise NotImplementedError

    def workload(self, arena: Arena, learning: Learning) -> Workload | None:
        """Estimate in proportion to the samples."""
        return None
