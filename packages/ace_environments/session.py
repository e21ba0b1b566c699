"""Attempts in environments: they lead the conversation until they ask for no more replies, then they are scored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ace_bench.core.backbones import Lm
from ace_bench.core.errors import ConfigError
from ace_bench.core.replies import ToolTurn
from ace_bench.core.types import Grade
from ace_environments.host import Episode, Host, ReplyRequest, Scores, fault

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
    """One attempt in an environment (``core.task``).

    With ``judged_later`` its scorers may call a model: it is graded as wrong for now, and stays open after the attempt
    until the judge's model is known.
    """

    def __init__(self, item: EnvironmentItem, *, timeout: float, judged_later: bool = False):
        self._item = item
        self._judged_later = judged_later
        self.waits_for_judge = False
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
        if self._judged_later:
            self.waits_for_judge = True
            return graded(self._item, None)
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
