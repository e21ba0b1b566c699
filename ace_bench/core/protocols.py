"""The seams of the harness: what tasks, agents, methods and backbones offer, and the door between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from ace_bench.core.backbones import Lm, TokenCounter
from ace_bench.core.types import (
    Attempt,
    GeneratorSpec,
    Grade,
    Labels,
    Message,
    Record,
    Rollout,
    Sample,
    Step,
)

T = TypeVar("T")
R = TypeVar("R")


class Session(Protocol):
    """One live attempt at a sample's environment."""

    @property
    def finished(self) -> bool:
        """Whether the environment takes no more actions because the attempt declared itself complete."""
        ...

    def step(self, action: str) -> str:
        """Run one action and return what the environment shows.

        Raises ``RolloutFault``: owner ``model`` where the task takes no actions, owner ``task`` where the environment
        itself broke, which gives the rollout a second try.
        """
        ...

    def grade(self, answer: str | None) -> Grade:
        """Grade the final answer; ``None`` (no answer, or a fault) grades as wrong with full weight."""
        ...


class Task(Protocol):
    """A benchmark: it owns samples, sessions and the official metric."""

    name: str
    prompt_group: str
    """Which shared prompts fit: ``prompts/<set>/<name>/`` comes first, then ``prompts/<set>/<prompt_group>/``."""
    headline: str
    """The key of ``score`` that stands for the task in tables."""
    source: str
    """``real`` or ``sample``: what data the scores are about."""
    checksums: Mapping[str, str]
    """SHA-256 of every data file read, by file name."""
    sections: tuple[str, ...]
    """Playbook sections that suit the task (paper, appendix F)."""

    def samples(self, split: str) -> Sequence[Sample]:
        """All samples of a split in file order; an unknown split raises ``ConfigError``."""
        ...

    def open(self, sample: Sample) -> AbstractContextManager[Session]:
        """Start a session for one attempt."""
        ...

    def forfeit(self, sample: Sample) -> Grade:
        """Grade a sample whose session could not even be opened: wrong, with full weight."""
        ...

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return the official metrics in percent over the grades of a split."""
        ...


@runtime_checkable
class Judged(Protocol):
    """A task whose grades may rest on a model's verdict, too (LLM-as-judge; paper, section 4.1: BIRD-SQL)."""

    judge_template: str | None
    """The template that the judge is asked with; ``None`` where this run asks no judge."""

    def judge(self, sample: Sample, answer: str | None, grade: Grade, prompts: Prompts, lm: Lm) -> Grade:
        """Complete a session's grade with a verdict; raises ``RolloutFault``, which leaves the grade as it was."""
        ...


@runtime_checkable
class Lifecycle(Protocol):
    """A backbone, task or agent that must be made ready before the first call and put away after the last: a server."""

    def start(self, say: Callable[[str], None]) -> None:
        """Get ready, telling progress in short lines; raises ``BackboneUnavailable`` or ``ConfigError``."""
        ...

    def close(self) -> None:
        """Put away; must be safe to call at any time and more than once."""
        ...


@runtime_checkable
class Confining(Protocol):
    """A task or agent that runs code of a model on this machine."""

    @property
    def confinement(self) -> Sequence[str] | None:
        """The layers that confined such code so far, least first (see ``core.confine``); ``None``: none was run."""
        ...


class Context(Protocol):
    """What a method evolves: an immutable value."""

    kind: str
    """Names the class in dumps; each kind has one class."""

    @classmethod
    def load(cls, record: Record) -> Context:
        """Restore what ``dump`` gave, exactly; raises ``DataError``."""
        ...

    @property
    def digest(self) -> str:
        """Content address; equal digests render equally."""
        ...

    @property
    def tokens(self) -> int:
        """Size as a prompt sees it."""
        ...

    @property
    def size(self) -> int:
        """Number of items: bullets, demonstrations; 0 when empty."""
        ...

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the prompt fields this context fills for a sample."""
        ...

    def dump(self) -> Record:
        """Return the whole value as a JSON object with a ``kind``."""
        ...

    def patch(self, earlier: Context) -> Record:
        """Return what changed since ``earlier``, as small as the change itself."""
        ...

    def patched(self, patch: Record) -> Context:
        """Apply a ``patch`` made against this value."""
        ...


class Prompts(Protocol):
    """A prompt set bound to a task: templates by role."""

    def render(self, role: str, fields: Mapping[str, Any]) -> tuple[Message, ...]:
        """Render a role's messages; an undefined field is an error."""
        ...

    @property
    def digest(self) -> str:
        """Checksum over all templates of the set."""
        ...

    def require(self, roles: Iterable[str]) -> None:
        """Raise ``ConfigError`` where a template is missing or cannot be used."""
        ...


@runtime_checkable
class Prompting(Protocol):
    """A part that asks by templates and says which fields it fills, so that a prompt set is checked before any call."""

    def prompt_fields(self, inputs: frozenset[str], shown: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of each template; ``inputs`` are those of a sample, ``shown`` those of the context."""
        ...


class Agent(Protocol):
    """Solves one sample under a context."""

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str) -> Attempt:
        """Attempt the sample; ``reflection`` is advice for a retry ("" on the first try).

        Raises ``RolloutFault`` when the attempt fails; never grades.
        """
        ...


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


@dataclass(frozen=True, kw_only=True)
class Update:
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
class Reducible(Protocol):
    """What can give something up when a prompt is too long for the backbone: a context, a transcript."""

    def shrink(self) -> Self | None:
        """Return a smaller version without the least useful part; ``None`` when nothing is left to drop."""
        ...


@runtime_checkable
class StepLearner(Method, Protocol):
    """Learns step by step from rollouts: ACE, Dynamic Cheatsheet."""

    def update(self, context: Context, rollouts: Sequence[Rollout], step: Step, arena: Arena) -> Update:
        """Learn from one batch. Pure apart from calls through the arena: a step replayed gives the same update."""
        ...


@runtime_checkable
class Preparing(StepLearner, Protocol):
    """Learns a second time, before samples are attempted, from what they ask: Dynamic Cheatsheet with retrieval."""

    def prepare(self, context: Context, samples: Sequence[Sample], step: Step, arena: Arena) -> Update:
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

    def fit(self, context: Context, arena: Arena) -> Update:
        """Return the optimised context. Repeating it replays every paid call and rollout."""
        ...
