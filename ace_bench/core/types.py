"""Values that travel between tasks, methods and runners. All frozen; equality is by content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeVar

_Number = TypeVar("_Number", int, float)

Record = Mapping[str, Any]
"""A JSON object: what the store writes and reads."""


class Stage(StrEnum):
    """When a call or rollout happened: every one belongs to exactly one stage."""

    ADAPT = "adapt"
    EVALUATE = "evaluate"


class Labels(StrEnum):
    """What adaptation may see of the truth (paper: the "GT labels" column)."""

    GOLD = "gold"
    CORRECTNESS = "correctness"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One question. ``inputs`` are the fields prompts may show; the gold answer is never among them.

    Inputs by convention: ``background`` (text shared by all samples of the task, may be empty) and
    ``question`` (this sample's own text).
    """

    id: str
    split: str
    inputs: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Grade:
    """The whole truth about one answer, as a session knows it; a method never sees this.

    ``score`` is the share of the sample's points in [0, 1], ``correct`` is the sample-level verdict,
    ``observed`` what the environment itself shows without any label (execution output; may be empty),
    ``gold`` the reference answer as text, ``report`` what graders write beside it, such as the result of each unit
    test, ``detail`` task-specific numbers that ``Task.score`` sums up. Samples of one ``group`` (AppWorld: scenario)
    depend on each other, so intervals resample them together; "" is a group of its own for each sample.
    """

    score: float
    correct: bool
    observed: str
    gold: str
    report: str = ""
    group: str = ""
    detail: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """What adaptation may see of a rollout's grade; ``None`` means withheld.

    ``score`` is the share of the sample's points where the gold answer is shown, else 1.0 or 0.0 by the verdict.
    """

    correct: bool | None
    message: str
    gold: str | None
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class Message:
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens and dollars of one or many calls; ``None`` is unknown, which is not zero."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Sum field by field; a sum with an unknown part is unknown."""
        return Usage(
            prompt=_sum(self.prompt, other.prompt),
            completion=_sum(self.completion, other.completion),
            cached=_sum(self.cached, other.cached),
            usd=_sum(self.usd, other.usd),
        )


def _sum(a: _Number | None, b: _Number | None) -> _Number | None:
    return None if a is None or b is None else a + b


NO_USAGE = Usage(prompt=0, completion=0, cached=0, usd=0.0)
"""The neutral element of addition: the usage of no call at all."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A backbone's reply.

    ``seconds`` is the latency of the attempt that was answered, ``waited`` all the time that went into failed
    attempts and pauses before it, ``retries`` the number of those attempts.
    """

    text: str
    usage: Usage
    seconds: float
    waited: float = 0.0
    retries: int = 0
    model: str = ""
    replayed: bool = False


@dataclass(frozen=True, kw_only=True)
class CacheCounters:
    """A server's own prefix-cache counters since it started, in tokens looked up and tokens found."""

    queries: int
    hits: int


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What one tiny call found out about a backbone: facts in words, such as "model: Qwen3-0.6B", for the console."""

    facts: Mapping[str, str]
    usage: Usage


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why something failed and whose fault it is: ``model``, ``task``, ``backbone`` or ``harness``.

    The owner ``backbone`` means that there is no answer at all. A prompt that is too long for the model is a fault of
    the ``model``: asked again, it would be too long again.
    """

    owner: str
    kind: str
    message: str

    @property
    def unanswered(self) -> bool:
        """Whether the backbone gave no answer, so that nothing is known about the model."""
        return self.owner == "backbone"


@dataclass(frozen=True, kw_only=True)
class GeneratorSpec:
    """How a method wants samples put to the model: which template, and in what form the reply comes.

    ``json`` is one object, ``text`` the answer and nothing else, ``tagged`` any text with the answer between answer
    tags. A tagged reply may ask for code to be run, ``code_runs`` times in an attempt.
    """

    template: str
    reply: Literal["json", "text", "tagged"]
    code_runs: int = 0


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One step of an agent: what it thought and did ("" where it did nothing), and what the environment answered."""

    action: str
    observation: str
    thought: str = ""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The agent's part of a rollout, before it is graded.

    ``dropped`` counts items of the context that were left out because the prompt was too long for the backbone;
    ``counters`` are an agent's own figures by name, such as its steps, which metrics sum up.
    """

    answer: str | None
    reasoning: str = ""
    cited: tuple[str, ...] = ()
    dropped: int = 0
    trajectory: tuple[Turn, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One complete attempt at a sample under a context, as a method may see it.

    ``key`` names the rollout within its run and is its backbone session id; ``trial`` counts repetitions on
    the same sample (0 = the first rollout); ``cited`` holds the ids of the context items the agent says it used;
    ``calls`` counts the requests it took; ``seconds`` is its wall time.
    """

    key: str
    sample: Sample
    context_digest: str
    trial: int
    attempt: Attempt
    feedback: Feedback
    fault: Fault | None
    calls: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Step:
    """Where adaptation stands: ``index`` counts steps over all epochs from 0, ``total`` is their number."""

    index: int
    total: int
    epoch: int


def reveal(grade: Grade, labels: Labels) -> Feedback:
    """Reduce a grade to what ``labels`` lets adaptation see: the only place where truth becomes feedback."""
    if labels is Labels.NONE:
        return Feedback(correct=None, message=grade.observed, gold=None)
    verdict = "The answer is correct." if grade.correct else "The answer is not correct."
    shown = [grade.observed, verdict]
    if labels is Labels.CORRECTNESS:
        return Feedback(correct=grade.correct, message=_lines(shown), gold=None, score=float(grade.correct))
    report = _lines([*shown, grade.report])
    return Feedback(correct=grade.correct, message=report, gold=grade.gold, score=grade.score)


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(filter(None, parts))
