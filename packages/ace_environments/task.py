"""What all tasks made of environments share: splits, sessions, grades and metrics."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ace_bench.core.backbones import Lm
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, DataError, RolloutFault, SettingError
from ace_bench.core.prompts import Prompts
from ace_bench.core.replies import TOOLS, ToolTurn
from ace_bench.core.types import Grade, Record, Sample
from ace_bench.tasks.answers import percent
from ace_bench.tasks.data import SPLITS
from ace_environments.host import Episode, Host, ReplyRequest, Scores, fault
from ace_environments.splits import SplitRatio, draw

_SUCCESS = 1.0 - 1e-9
_OTHER_AGENT = "this environment leads the conversation itself: choose agent=environment"


@dataclass(frozen=True, kw_only=True)
class EnvironmentItem:
    """A sample of an environment: its question as text, the reference answer, and how an episode of it is made.

    ``digest`` is of all that a sample is read from; "" where question and reference answer say it all.
    """

    question: str
    gold: str
    make: Callable[[], Awaitable[Episode]]
    digest: str = ""


class EnvironmentSession:
    """One attempt in an environment (``core.task``)."""

    def __init__(self, item: EnvironmentItem, *, timeout: float):
        self._item = item
        self._host = Host(item.make, timeout=timeout)
        self._led = False
        self._over = False
        self._host.play()

    @property
    def finished(self) -> bool:
        """Whether the environment wants no more replies."""
        return self._over

    @property
    def final(self) -> str:
        """What the environment takes as the answer."""
        return self._host.final

    def step(self, action: str) -> str:
        """Raise ``ConfigError``: the environment leads the conversation."""
        del action
        raise ConfigError(_OTHER_AGENT)

    def next_request(self) -> ReplyRequest | None:
        """Wait for the environment's next request."""
        self._led = True
        event = self._host.next_event()
        if isinstance(event, ReplyRequest):
            return event
        self._over = True
        return None

    def reply(self, turn: ToolTurn) -> None:
        """Give the environment what the model said."""
        self._host.reply(turn)

    def grade(self, answer: str | None) -> Grade:
        """Score the attempt as it stands by the environment's own rules; ``None`` is wrong."""
        if answer is None:
            return graded(self._item, None)
        if not self._led:
            raise ConfigError(_OTHER_AGENT)
        return self.score(None)

    def score(self, judge: Lm | None) -> Grade:
        """Score the attempt; a scorer's model calls go to ``judge``, without which they are a fault of the task."""
        if not self._over:
            self._host.stop()
            self._over = True
        self._host.score()
        while not isinstance(event := self._host.next_event(), Scores):
            if not isinstance(event, ReplyRequest):
                continue  # the end of an attempt that was stopped
            if judge is None:
                raise fault("scorer", "the scorer calls a model: allow it by task.judge=true")
            self._host.reply(ToolTurn(content=judge(event.messages).text))
        return graded(self._item, event)

    def close(self) -> None:
        """End the episode."""
        self._host.close()


class JudgedLater(EnvironmentSession):
    """A session whose scorers may call a model: it stays open after the attempt, until the judge's model is known."""

    attempted: bool = False

    def grade(self, answer: str | None) -> Grade:
        """Grade as wrong for now."""
        if not self._led and answer is not None:
            raise ConfigError(_OTHER_AGENT)
        self.attempted = answer is not None
        return graded(self._item, None)


class EnvironmentTask:
    """Base class; a subclass loads the samples.

    ``items`` are the samples of the test data and ``training`` those of the training data, ``None`` where both come
    from one set, which ``ratio`` and ``seed`` divide. With ``judge`` the scorers' model calls go to the role judge.
    """

    name: str = "environment"  # the folder of prompts; what it does not hold is in prompt_group
    prompt_group: str = "qa"
    headline: str = "score"
    source: str = "real"
    splits: tuple[str, ...] = SPLITS
    sections: tuple[str, ...] = (
        "strategies",
        "tool_use",
        "formats_and_conventions",
        "common_mistakes_to_avoid",
        "others",
    )

    def __init__(  # noqa: PLR0913 - settings
        self,
        items: Sequence[EnvironmentItem],
        training: Sequence[EnvironmentItem] | None,
        *,
        ratio: SplitRatio,
        seed: int,
        timeout: float,
        judge: bool,
    ):
        self._timeout = timeout
        self.judge_template: str | None = "" if judge else None  # no template: the scorers word their own prompts
        self._open_for_judge: dict[tuple[str, int], JudgedLater] = {}
        self._items = _by_split(items, training, ratio, seed)
        self.checksums: Mapping[str, str] = {
            "samples": digest_of(
                {split: [_checked(item) for item in found.values()] for split, found in self._items.items()}
            )
        }
        self._lock = threading.Lock()
        self._background: str | None = None

    def samples(self, split: str) -> Sequence[Sample]:
        """Return the samples of a split; inputs are ``background`` (system text and tools) and ``question``."""
        if split not in self._items:
            raise ConfigError(f"this task has no split {split!r}; it has {', '.join(self._items)}")
        shared = self._shared_text()
        return tuple(
            Sample(id=name, split=split, inputs={"background": shared, "question": item.question})
            for name, item in self._items[split].items()
        )

    @contextmanager
    def open(self, sample: Sample) -> Iterator[EnvironmentSession]:
        """Start an attempt; where a judge is to follow, it ends with ``judge``."""
        kind = EnvironmentSession if self.judge_template is None else JudgedLater
        session = kind(self._item(sample), timeout=self._timeout)
        try:
            yield session
        finally:
            if isinstance(session, JudgedLater) and session.attempted:
                self._open_for_judge[sample.id, threading.get_ident()] = session
            else:
                session.close()

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return no fields: the judge has no template."""
        del inputs, context_fields
        return {}

    def judge(self, sample: Sample, answer: str | None, grade: Grade, prompts: Prompts, lm: Lm) -> Grade:
        """Score the attempt that this thread made last; its scorers call ``lm``."""
        del answer, prompts
        session = self._open_for_judge.pop((sample.id, threading.get_ident()), None)
        if session is None:
            return grade
        try:
            return session.score(lm)
        finally:
            session.close()

    def close(self) -> None:
        """End attempts whose judge was not reached."""
        while self._open_for_judge:
            _, session = self._open_for_judge.popitem()
            session.close()

    def start(self, say: Callable[[str], None]) -> None:
        """Nothing to start."""

    def failing_grade(self, sample: Sample) -> Grade:
        """Grade a sample that could not be attempted: wrong."""
        return graded(self._item(sample), None)

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return the mean score and the share of samples that scored 1, both in percent, and the mean of each scorer.

        A score need not lie between 0 and 1: it is what the environment's own scorers give.
        """
        if not grades:
            return {}
        names = dict.fromkeys(name for grade in grades for name in grade.detail)
        means = {name: percent(sum(grade.detail.get(name, 0.0) for grade in grades), len(grades)) for name in names}
        success = percent(sum(grade.correct for grade in grades), len(grades))
        return {"score": means.pop("score"), "success": success, **means}

    def _item(self, sample: Sample) -> EnvironmentItem:
        found = self._items.get(sample.split, {})
        if sample.id not in found:
            raise DataError(f"this task has no sample {sample.id} in its split {sample.split!r}")
        return found[sample.id]

    def _shared_text(self) -> str:
        """Return the system text and the tools, from the first request of the first sample.

        It makes no model call. Raises ``ConfigError`` where the environment cannot be started.
        """
        with self._lock:
            if self._background is None:
                item = next(iter(self._items["train"].values()))
                session = EnvironmentSession(item, timeout=self._timeout)
                try:
                    request = session.next_request()
                except RolloutFault as error:
                    raise ConfigError(f"the environment cannot be started: {error.fault.message}") from error
                finally:
                    session.close()
                if request is None:
                    raise ConfigError("the environment ends without asking a model, so there is nothing to learn in it")
                self._background = background_of(request)
            return self._background


def _checked(item: EnvironmentItem) -> Sequence[str]:
    return (item.question, item.gold, *filter(None, [item.digest]))


def graded(item: EnvironmentItem, scores: Scores | None) -> Grade:
    """Return the grade of an attempt; without scores it is wrong."""
    if scores is None:
        return Grade(score=0.0, correct=False, observed="", gold=item.gold, detail={"score": 0.0})
    named = {f"scorer_{name}": value for name, value in scores.parts.items()} if len(scores.parts) > 1 else {}
    said = [f"Score: {scores.total:g}", *(f"{name}: {value:g}" for name, value in scores.parts.items())]
    return Grade(
        score=min(1.0, max(0.0, scores.total)),
        correct=scores.total >= _SUCCESS,
        observed="",
        gold=item.gold,
        report="\n".join(filter(None, [*said, scores.explanation])),
        detail={"score": scores.total, **named},
    )


def background_of(request: ReplyRequest) -> str:
    """Return what all samples share: the system text and a line for each tool."""
    system = [message.content.strip() for message in request.messages if message.role == "system"]
    tools = [_line(tool["function"]) for tool in (request.schema or {}).get(TOOLS, ())]
    return "\n\n".join(filter(None, [*system, "\n".join(["Tools:", *tools]) if tools else ""]))


def _line(function: Record) -> str:
    names = ", ".join((function.get("parameters") or {}).get("properties", {}))
    return f"- {function['name']}({names}): {' '.join(str(function.get('description', '')).split())}"


def _by_split(
    items: Sequence[EnvironmentItem], training: Sequence[EnvironmentItem] | None, ratio: SplitRatio, seed: int
) -> Mapping[str, Mapping[str, EnvironmentItem]]:
    if not items:
        raise SettingError("args: the environment has no samples with these arguments; change them")
    if training is None:
        drawn = draw(len(items), ratio, seed=seed, with_test=True)
        return {split: _name_items(split, items, places) for split, places in drawn.items()}
    drawn = draw(len(training), ratio, seed=seed, with_test=False)
    named = {split: _name_items(split, training, places) for split, places in drawn.items()}
    return {**named, "test": _name_items("test", items, range(len(items)))}


def _name_items(split: str, items: Sequence[EnvironmentItem], places: Sequence[int]) -> Mapping[str, EnvironmentItem]:
    return {f"environment-{split}-{place + 1:04d}": items[place] for place in places}
