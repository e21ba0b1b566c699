"""The one counted door to model and environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from ace_bench.core.backbones import Lm, TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.prompts import Prompts
from ace_bench.core.types import Labels, Rollout, Sample

T = TypeVar("T")
R = TypeVar("R")


class Arena(Protocol):
    """The one counted door to model and environment."""

    @property
    def labels(self) -> Labels:
        """What adaptation may see."""
        ...

    @property
    def prompts(self) -> Prompts:
        """The run's prompt set, bound to its task."""
        ...

    @property
    def sections(self) -> tuple[str, ...]:
        """Playbook sections that suit the task."""
        ...

    @property
    def seed(self) -> int:
        """The run's seed, for whatever a method draws."""
        ...

    def samples(self, split: str) -> Sequence[Sample]:
        """The samples this run may use of a split, after ``limit``."""
        ...

    def reference(self, sample: Sample) -> str:
        """The reference answer of a training or validation sample, at no cost.

        Raises ``ConfigError`` for other splits, and where ``labels`` does not show gold answers.
        """
        ...

    def rollout(self, sample: Sample, context: Context, *, trial: int = 0, reflection: str = "") -> Rollout:
        """One rollout, or the recorded one where the run already paid for it."""
        ...

    def rollouts(self, samples: Sequence[Sample], context: Context) -> Sequence[Rollout]:
        """First-try rollouts in parallel, returned in the order of ``samples``."""
        ...

    def lm(self, role: str, session: str) -> Lm:
        """Return the role's backbone for one session."""
        ...

    def counter(self, role: str) -> TokenCounter:
        """Return the token counter of the role's backbone."""
        ...

    def context_length(self, role: str) -> int | None:
        """Most tokens of a prompt and its reply for the role's backbone; ``None`` where it is not known."""
        ...

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Apply in parallel within the run's concurrency; results in input order."""
        ...
