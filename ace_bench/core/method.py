"""The interface of methods, the harness API that they get (``Arena``), and what an estimate asks of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from ace_bench.core.backbones import Lm, TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.prompts import Prompts
from ace_bench.core.tool_rules import ToolRules
from ace_bench.core.types import GeneratorSpec, Labels, Message, Record, Rollout, Sample, Step

T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C", bound=Context)
C_co = TypeVar("C_co", bound=Context, covariant=True)

Adaptation = Literal["none", "steps", "fit"]
"""How a method adapts its context: not at all, step by step from rollouts, or offline in one step without rollouts."""

POST_UPDATE_ROLLOUT = "after_curation"
"""Kind of an event with the keys of a sample's rollouts before (``first``) and after (``again``) learning from it."""

VERIFIED = "verified"
"""Kind of an event about a change of the context that was checked: whether it was ``kept``, the ``reason``, and the
keys of the rollouts that the check took (``attempts``)."""

FINAL_TRIAL = "last_trial"
"""Kind of an event of a method that ``scores_last_trial``: the keys of a sample's ``first`` trial and of the one that
counts (``last``), and the number of ``trials``."""


@dataclass(frozen=True, kw_only=True)
class ContextUpdate(Generic[C_co]):
    """The result of one adaptation step: the new context, and events for the journal and the reports."""

    context: C_co
    events: tuple[Record, ...] = ()


def may_draw(part: object) -> bool:
    """Whether a part of a run may draw something by the run's seed: an order, samples, demonstrations.

    ``draws_from_seed = False`` in its class says that it does not. A part without this attribute counts as drawing.
    What it inherits from the class of another package is not believed, because it may draw in what it overrides.
    ``part`` may be the class.
    """
    kind = part if isinstance(part, type) else type(part)
    declaring = next((base for base in kind.__mro__ if "draws_from_seed" in vars(base)), None)
    if declaring is None or _package_of(declaring) != _package_of(kind):
        return True
    return bool(getattr(part, "draws_from_seed", True))


def _package_of(kind: type) -> str:
    return kind.__module__.partition(".")[0]


class Method(Protocol[C]):
    """Improves a context. ``ace_bench.methods.base.BaseMethod`` has defaults for all but the first two members."""

    generator: GeneratorSpec

    def start(self, arena: Arena) -> C:
        """Return the context before any adaptation; makes no calls."""

    @property
    def adaptation(self) -> Adaptation:
        """How it adapts its context; with ``none`` the start context is evaluated."""

    @property
    def scores_last_trial(self) -> bool:
        """Whether a sample's answer comes from its last trial, which an event ``FINAL_TRIAL`` names (Reflexion)."""

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The roles that it calls besides the generator, and the prompt templates of each."""

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of each template in ``roles``, given the fields of a sample and of the context.

        A prompt set that uses another field is refused before the first call.
        """

    @property
    def context_file(self) -> str | None:
        """The file that holds the context to evaluate, for a method that only evaluates one."""

    @property
    def embedders(self) -> Sequence[object]:
        """The embedders it uses; the run connects an endpoint's (``EndpointEmbedder``) before the first call."""

    def baseline(self, arena: Arena) -> C:
        """Return the context that ``mode=evaluate`` compares a saved one with; makes no calls."""

    def load(self, path: Path, like: C, arena: Arena) -> C:
        """Load a context to evaluate, of the same kind as ``like``; raises ``DataError`` or ``ConfigError``."""

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` if the method cannot work with these settings, samples and labels; makes no calls."""

    def check_batch(self, size: int) -> None:
        """Raise ``ConfigError`` if the method cannot learn from ``mode.batch_size`` samples a step."""

    def select(self, context: C, sample: Sample) -> C:
        """Return the part of a context that the generator is shown for a sample (paper, section 3.1).

        Learning, saving and counting still use the whole context.
        """

    def prepare(self, context: C, samples: Sequence[Sample], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Return the context for the rollouts of these samples; like ``update``, pure apart from calls."""

    def update(self, context: C, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> ContextUpdate[C]:
        """Learn from one batch. Pure apart from calls through the arena: replaying a step gives the same update.

        An optimiser (``fit``) gets no rollouts and makes its own; a continued run replays the recorded ones.
        """

    @property
    def rehearsed(self) -> Method[C]:
        """The method that an estimate runs with a few samples: without parts that keep its context small."""

    def workload(self, arena: Arena, learning: Learning) -> Workload | None:
        """Return what adaptation takes, for estimates: all steps of ``learning``, or the whole of ``fit``.

        ``None``: in proportion to what a rehearsal with a few samples takes.
        """


class Arena(Protocol):
    """The harness API that a method gets: samples, rollouts and model calls, all counted, limited and recorded."""

    @property
    def labels(self) -> Labels:
        """What adaptation may see."""

    @property
    def prompts(self) -> Prompts:
        """The run's prompt set, bound to its task."""

    @property
    def sections(self) -> tuple[str, ...]:
        """Playbook sections that suit the task."""

    @property
    def tools(self) -> ToolRules | None:
        """What the agent's tools do; ``None`` for agents that answer without acting, and where nothing is declared."""

    @property
    def learns_unreadable(self) -> bool:
        """Whether a role's reply that cannot be read is used as it is, as in the authors' code, or is a fault."""

    @property
    def seed(self) -> int:
        """The run's seed, for a method's random choices."""

    def samples(self, split: str) -> Sequence[Sample]:
        """Return the samples of a split, cut to ``limit``."""

    def gold_answer(self, sample: Sample) -> str:
        """Return the reference answer of a training or validation sample; makes no calls.

        Raises ``ConfigError`` for other splits and unless ``labels`` is ``gold``.
        """

    def rollout(self, sample: Sample, context: Context, *, trial: int = 0, reflection: str | None = None) -> Rollout:
        """Make a rollout, or return the recorded one; ``trial`` numbers the rollouts of a sample from 0.

        ``reflection`` is the advice shown, ``None`` for none; a model may have replied with an empty one.
        """

    def conversation(self, rollout: Rollout, context: Context, *, reflection: str | None = None) -> tuple[Message, ...]:
        """Return the messages of a rollout, made with the same arguments, up to its last reply.

        Empty for agents that lead no conversation.
        """

    def rollouts(self, samples: Sequence[Sample], context: Context) -> Sequence[Rollout]:
        """Make the first rollout of each sample in parallel; results in the order of ``samples``."""

    def lm(self, role: str, session: str) -> Lm:
        """Return the role's backbone, bound to one session."""

    def draws(self, role: str) -> bool | None:
        """Whether the role's backbone draws its replies at random; ``None`` if unknown."""

    def counter(self, role: str) -> TokenCounter:
        """Return the token counter of the role's backbone."""

    def context_length(self, role: str) -> int | None:
        """Return the most tokens of a prompt and its reply for the role's backbone; ``None`` if unknown."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Apply a function to items in parallel, within the run's concurrency; results in input order."""


class Span(msgspec.Struct, frozen=True):
    """Bounds of a count, both included."""

    low: float
    high: float

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.high + other.high)

    def times(self, factor: Span) -> Span:
        """Return the bounds of the product with another count."""
        return Span(self.low * factor.low, self.high * factor.high)


def exactly(count: float) -> Span:
    """Return a count that is known."""
    return Span(count, count)


class Learning(msgspec.Struct, frozen=True, kw_only=True):
    """What a method learns from: ``samples`` of a split, each pass counted, in ``steps``.

    ``acts`` says whether attempts act in an environment of their own, as on AppWorld.
    """

    samples: int
    steps: int
    split: str
    acts: bool = False


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What adaptation takes: rollouts of the generator, calls of the other ``roles``.

    Calls to ask again for an unreadable reply come on top; roles that do so are known by their schemas, or named in
    ``asked_again``. ``context_tokens`` is the most that the context may grow to, ``None`` without a limit. The replies
    of ``writers`` hold the whole context. A prompt shows at most what the last ``shown_samples`` samples added.
    ``None`` means all samples.
    """

    rollouts: Span
    roles: Mapping[str, Span]
    context_tokens: int | None = None
    writers: Collection[str] = ()
    asked_again: Collection[str] = ()
    shown_samples: int | None = None
