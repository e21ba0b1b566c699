"""What methods use to call models and run samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from ace_bench.core.backbones import Lm, TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.prompts import Prompts
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import Labels, Message, Rollout, Sample

T = TypeVar("T")
R = TypeVar("R")


class Arena(Protocol):
    """Gives a method its samples, rollouts and model calls; the run counts, limits and records all of them."""

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
    def tools(self) -> ToolRules | None:
        """What the agent's tools do; ``None`` for agents that answer without acting, and where nothing is declared."""
        ...

    @property
    def learns_unreadable(self) -> bool:
        """Whether a role's reply that cannot be read is used as it is, as in the authors' code, or is a fault."""
        ...

    @property
    def seed(self) -> int:
        """The run's seed, for a method's random choices."""
        ...

    def samples(self, split: str) -> Sequence[Sample]:
        """Return the samples of a split, cut to ``limit``."""
        ...

    def reference(self, sample: Sample) -> str:
        """Return the reference answer of a training or validation sample; makes no calls.

        Raises ``ConfigError`` for other splits and unless ``labels`` is ``gold``.
        """
        ...

    def rollout(self, sample: Sample, context: Context, *, trial: int = 0, reflection: str | None = None) -> Rollout:
        """Make a rollout, or return the recorded one; ``trial`` numbers the rollouts of a sample from 0.

        ``reflection`` is the advice shown, ``None`` for none; a model may have replied with an empty one.
        """
        ...

    def conversation(self, rollout: Rollout, context: Context, *, reflection: str | None = None) -> tuple[Message, ...]:
        """Return the messages of a rollout, made with the same arguments, up to its last reply.

        Empty for agents that lead no conversation.
        """
        ...

    def rollouts(self, samples: Sequence[Sample], context: Context) -> Sequence[Rollout]:
        """Make the first rollout of each sample in parallel; results in the order of ``samples``."""
        ...

    def lm(self, role: str, session: str) -> Lm:
        """Return the role's backbone, bound to one session."""
        ...

    def counter(self, role: str) -> TokenCounter:
        """Return the token counter of the role's backbone."""
        ...

    def context_length(self, role: str) -> int | None:
        """Return the most tokens of a prompt and its reply for the role's backbone; ``None`` if unknown."""
        ...

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Apply a function to items in parallel, within the run's concurrency; results in input order."""
        ...
