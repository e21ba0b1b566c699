"""Values that travel between tasks, methods and runners. All frozen; equality is by content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, Literal, TypeVar

_Number = TypeVar("_Number", int, float, Fraction)

Record = Mapping[str, Any]
"""A JSON object: what the store writes and reads."""


class Stage(StrEnum):
    """The stage of a call or rollout; each belongs to exactly one."""

    ADAPT = "adapt"
    EVALUATE = "evaluate"


class Labels(StrEnum):
    """What adaptation may see of grades and gold answers (paper: the "GT labels" column)."""

    GOLD = "gold"
    CORRECTNESS = "correctness"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One question. ``inputs`` are the fields that prompts may show; the gold answer is never among them.

    By convention they are ``background`` (text shared by all samples of the task, may be empty) and ``question``
    (the sample's own text). Where ``question`` repeats what many samples share, as a database schema, ``asked`` is
    the rest.
    """

    id: str
    split: str
    inputs: Mapping[str, str]

    @property
    def asked(self) -> str:
        """What memories keep of the sample and find similar samples by."""
        return self.inputs.get("asked") or self.inputs["question"]


@dataclass(frozen=True, kw_only=True)
class Grade:
    """All that a session knows about one answer; a method never sees it.

    ``score`` is the share of the sample's points in [0, 1] and ``correct`` the verdict on the whole sample.
    ``observed`` is what the environment shows without labels (execution output; may be empty), ``gold`` the reference
    answer as text, ``report`` the grader's report, such as the result of each unit test, and ``detail`` holds the
    numbers that ``Task.score`` sums up. Samples of one ``group`` (AppWorld: scenario) depend on each other, so
    intervals resample them together; a sample with the group "" is its own group. ``judged`` is false where nobody
    knows how good the answer is: then ``score`` and ``correct`` say nothing.
    """

    score: float
    correct: bool
    observed: str
    gold: str
    report: str = ""
    group: str = ""
    judged: bool = True
    detail: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """What adaptation may see of a rollout's grade; ``None`` means withheld.

    ``score`` is the share of the sample's points if the gold answer is shown, else 1.0 or 0.0 by the verdict.
    ``report`` is the grader's report. ``message`` ends with it.
    """

    correct: bool | None
    message: str
    gold: str | None
    score: float | None = None
    report: str | None = None


@dataclass(frozen=True, kw_only=True)
class Message:
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens and dollars of one or many calls; ``None`` means unknown, not zero."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    usd: float | None = None

    @property
    def tokens(self) -> int | None:
        """Tokens in and out."""
        return add_known(self.prompt, self.completion)

    def __add__(self, other: Usage) -> Usage:
        """Add field by field. A sum with an unknown term is unknown."""
        return Usage(**{name: add_known(value, getattr(other, name)) for name, value in vars(self).items()})


def add_known(a: _Number | None, b: _Number | None) -> _Number | None:
    """Add two numbers; a sum with an unknown term is unknown."""
    return None if a is None or b is None else a + b


NO_USAGE = Usage(prompt=0, completion=0, cached=0, usd=0.0)
"""The usage of zero calls, to which other usage is added."""


_MANY_BLANKS = 40
"""Characters of white space at the end of a reply that are more than an indented line begins with."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A backbone's reply.

    ``seconds`` is the latency of the successful request, and ``retries`` the number of failed requests before it.
    ``waited`` is the time lost to those, to pauses, and in our own queue: for a slot, or room in the budget.
    ``cut``: the reply ended at the limit of its length.
    ``asked_again`` counts replies before this one that were paid for, and empty or unreadable. ``thoughts`` are what a
    reasoning model wrote beside its reply, or in it (``core.thoughts``): they are kept in the record, and no role sees
    them. ``written`` is the text as it came, "" if ``text`` is all of it. ``several``: it holds different objects that
    fit, of which the last counts.
    """

    text: str
    usage: Usage
    seconds: float
    waited: float = 0.0
    retries: int = 0
    model: str = ""
    replayed: bool = False
    cut: bool = False
    asked_again: int = 0
    thoughts: str = ""
    written: str = ""
    several: bool = False

    @property
    def as_written(self) -> str:
        """The whole text with its thoughts and marks, for code that reads replies as the authors' code does."""
        return self.written or self.text

    @property
    def all_reasoning(self) -> bool:
        """Whether the reply ended by itself and all its words are thoughts that the server reports apart."""
        return bool(self.thoughts) and not (self.text.strip() or self.written or self.cut)

    @property
    def cut_in_blanks(self) -> bool:
        """Whether the reply wrote nothing but white space up to the limit of its length."""
        return self.cut and len(self.text) - len(self.text.rstrip()) >= _MANY_BLANKS


@dataclass(frozen=True, kw_only=True)
class CacheCounters:
    """A server's own prefix-cache counters since it started, in tokens looked up and tokens found."""

    queries: int
    hits: int


@dataclass(frozen=True, kw_only=True)
class ServerLoad:
    """How many requests a server runs at the moment, and how many wait in it."""

    running: int
    waiting: int


@dataclass(frozen=True, kw_only=True)
class ProbeReply:
    """The longest reply to a probe: its generated ``tokens``, and the ``seconds`` of its request."""

    tokens: int
    seconds: float

    @property
    def tokens_per_s(self) -> float:
        """Generated tokens per second, when nothing else of this run is under way."""
        return self.tokens / self.seconds


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What one tiny call shows about a backbone: facts for the console, such as "model: Qwen3-0.6B".

    ``longest`` is ``None`` where the server does not report tokens. ``warnings`` are sentences for the user, with the
    fix: the run can begin, but its replies may not be what is wanted. ``settings`` are the identity of the backbone
    afterwards, with what the probe found out.
    """

    facts: Mapping[str, str]
    usage: Usage
    longest: ProbeReply | None = None
    warnings: tuple[str, ...] = ()
    settings: Record = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why something failed and whose fault it is: ``model``, ``task``, ``backbone`` or ``harness``.

    The owner ``backbone`` means that there was no answer. A prompt that is too long is a fault of the ``model``, since
    a retry would fail again.
    """

    owner: str
    kind: str
    message: str

    @property
    def unanswered(self) -> bool:
        """Whether the backbone gave no answer, which says nothing about the model."""
        return self.owner == "backbone"


@dataclass(frozen=True, kw_only=True)
class GeneratorSpec:
    """How a method asks the generator: the template, and the format of the reply.

    ``json`` is one object, ``text`` the answer alone, ``xml`` any text with the answer between answer tags. Such a
    reply may ask for code to be run, at most ``code_runs`` times in an attempt.
    """

    template: str
    answer_format: Literal["json", "text", "xml"]
    code_runs: int = 0


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One step of an agent: its thought, its action ("" for none) and the environment's output.

    ``reply`` is what the conversation keeps of the reply, if that cannot be put together from thought and action.
    """

    action: str
    observation: str
    thought: str = ""
    reply: str | None = None


AttemptEnd = Literal["completed", "steps", "idle", "cost"]
"""Why an agent's attempt ended: the task was marked as complete, or a limit was reached."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The agent's part of a rollout, before it is graded.

    ``reply`` is the text that a structured or tagged answer was read from, for prompts that show it whole; after code
    was run, also what the conversation keeps of the replies before.
    ``dropped`` counts items of the context that were left out because the prompt was too long for the backbone.
    ``counters`` are figures of the agent by name, such as its steps; metrics sum them up. ``ended`` is ``None`` for
    agents without steps. ``unreadable`` is the kind of problem (``errors.UNREADABLE``) of a reply that
    held no answer that could be read, "" otherwise.
    """

    answer: str | None
    reasoning: str = ""
    cited: tuple[str, ...] = ()
    reply: str = ""
    dropped: int = 0
    trajectory: tuple[Turn, ...] = ()
    ended: AttemptEnd | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    unreadable: str = ""


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One complete attempt at a sample under a context, as a method may see it.

    ``key`` names the rollout within its run and is the session id of its calls; ``trial`` numbers the rollouts of the
    same sample from 0; ``calls`` counts its calls; ``seconds`` is its wall time.
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
    """The position in adaptation: ``index`` counts the steps of all epochs from 0, ``total`` is their number.

    All ``epochs`` have the same number of steps. ``samples_before`` are the samples of the epoch's earlier steps, of
    all its ``samples``.
    """

    index: int
    total: int
    epoch: int
    epochs: int = 1
    samples_before: int = 0
    samples: int = 1

    @property
    def epoch_total(self) -> int:
        """The number of steps in an epoch."""
        return self.total // self.epochs

    @property
    def epoch_index(self) -> int:
        """The position within the epoch, from 0."""
        return self.index % self.epoch_total


def reveal(grade: Grade, labels: Labels) -> Feedback:
    """Reduce a grade to what ``labels`` allows adaptation to see; nothing else makes feedback from a grade."""
    if labels is Labels.NONE:
        return Feedback(correct=None, message=grade.observed, gold=None)
    correct, score = (grade.correct, grade.score) if grade.judged else (None, None)
    verdict = {True: "The answer is correct.", False: "The answer is not correct.", None: ""}[correct]
    parts = [grade.observed, verdict]
    if labels is Labels.CORRECTNESS:
        score = None if correct is None else float(correct)
        return Feedback(correct=correct, message=_lines(parts), gold=None, score=score)
    report = _lines([*parts, grade.report])
    return Feedback(correct=correct, message=report, gold=grade.gold, score=score, report=grade.report)


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(filter(None, parts))
