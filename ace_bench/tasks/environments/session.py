"""Attempts in environments: they lead the conversation until they ask for no more replies, then they are scored."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ace_bench.core.backbones import Lm
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.replies import ToolTurn
from ace_bench.core.types import Grade
from ace_bench.tasks.environments.episode import Episode, ReplyRequest, Scores, fault

_SUCCESS = 1.0 - 1e-9
_CLOSING_S = 2.0
"""Seconds to wait for an environment to end; code that cannot be interrupted is left behind in its thread."""
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
    """One attempt in an environment (``core.task``), whose code runs in a thread and an event loop of its own.

    Its model calls are handed to the agent's thread, one at a time, so that they pass the run's counted gateway like
    all others, and that its errors (a budget that is used up, a call that is lost) end the attempt there. ``timeout``
    is the most seconds that the environment may take between two model calls. With ``judged_later`` its scorers may
    call a model: it is graded as wrong for now, and stays open after the attempt until the judge's model is known.
    """

    def __init__(self, item: EnvironmentItem, *, timeout: float, judged_later: bool = False):
        self._item = item
        self._timeout = timeout
        self._judged_later = judged_later
        self.waits_for_judge = False
        self.finished = False
        """Whether the environment wants no more replies."""
        self._led = False
        self._events: queue.SimpleQueue[tuple[ReplyRequest, asyncio.Future[ToolTurn]] | Future[Any]]
        self._events = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._episode: Episode | None = None
        self._under_way: asyncio.Task[Any] | None = None
        self._waiting: asyncio.Future[ToolTurn] | None = None
        self._thread = threading.Thread(target=self._run, name="environment", daemon=True)
        self._thread.start()
        self._begin(self._play)

    @property
    def final(self) -> str:
        """What the environment takes as the answer, once the episode is over."""
        return "" if self._episode is None else self._episode.final

    def step(self, action: str) -> str:
        """Raise ``ConfigError``: the environment leads the conversation."""
        raise ConfigError(_OTHER_AGENT)

    def next_request(self) -> ReplyRequest | None:
        """Wait for the environment's next request; raises ``RolloutFault`` (owner ``task``)."""
        self._led = True
        event = self._next_event()
        if isinstance(event, ReplyRequest):
            return event
        self.finished = True
        return None

    def reply(self, turn: ToolTurn) -> None:
        """Give the environment what the model said."""
        if (waiting := self._waiting) is not None:
            self._loop.call_soon_threadsafe(lambda: None if waiting.done() else waiting.set_result(turn))

    def grade(self, answer: str | None) -> Grade:
        """Score the attempt as it stands by the environment's own rules; ``None`` is wrong."""
        if answer is None:
            return make_grade(self._item, None)
        if not self._led:
            raise ConfigError(_OTHER_AGENT)
        if self._judged_later:
            self.waits_for_judge = True
            return make_grade(self._item, None)
        return self.score(None)

    def score(self, judge: Lm | None) -> Grade:
        """Score the attempt; a scorer's model calls go to ``judge``, without which they are a fault of the task."""
        if not self.finished:
            self._stop()
            self.finished = True
        self._begin(self._score)
        while not isinstance(event := self._next_event(), Scores):
            if not isinstance(event, ReplyRequest):
                continue  # the end of an attempt that was stopped
            if judge is None:
                raise fault("scorer", "the scorer calls a model: allow it by task.judge=true")
            self.reply(ToolTurn(content=judge(event.messages).text))
        return make_grade(self._item, event)

    def close(self) -> None:
        """End the episode and its event loop."""
        if self._loop.is_closed():
            return
        with suppress(RuntimeError):  # the loop may have ended meanwhile
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(_CLOSING_S)

    def _stop(self) -> None:
        """End the episode where it stands, because a limit is reached."""
        try:
            asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result(self._timeout)
        except TimeoutError:
            raise self._timeout_fault() from None

    def _next_event(self) -> ReplyRequest | Any:
        """Wait for the next request or result."""
        try:
            event = self._events.get(timeout=self._timeout)
        except queue.Empty:
            raise self._timeout_fault() from None
        if not isinstance(event, Future):
            request, self._waiting = event
            return request
        try:
            return event.result()
        except RolloutFault:
            raise
        except BaseException as error:
            raise fault("environment", f"{type(error).__name__}: {error}") from error

    def _timeout_fault(self) -> RolloutFault:
        return fault("timeout", f"the environment did nothing for {self._timeout:g} s (task.timeout)")

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _begin(self, step: Callable[[], Awaitable[Any]]) -> None:
        def begin() -> None:
            self._under_way = asyncio.ensure_future(self._report(step))

        self._loop.call_soon_threadsafe(begin)

    async def _report(self, step: Callable[[], Awaitable[Any]]) -> None:
        outcome: Future[Any] = Future()
        try:
            outcome.set_result(await step())
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            outcome.set_exception(error)
        self._events.put(outcome)

    async def _play(self) -> None:
        self._episode = await self._item.make()
        await self._episode.play(self._ask)

    async def _score(self) -> Scores:
        assert self._episode is not None
        return await self._episode.score(self._ask)

    async def _cancel(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is not None and not under_way.done():
            under_way.cancel()
            with suppress(asyncio.CancelledError):
                await under_way

    async def _ask(self, request: ReplyRequest) -> ToolTurn:
        answered: asyncio.Future[ToolTurn] = self._loop.create_future()
        self._events.put((request, answered))
        return await answered

    async def _end(self) -> None:
        try:
            await self._cancel()
            if self._episode is not None:
                await self._episode.close()
        finally:
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()
            self._loop.call_soon(self._loop.stop)


def make_grade(item: EnvironmentItem, scores: Scores | None) -> Grade:
    """Return the grade of an attempt; without scores it is wrong."""
    if scores is None:
        return Grade(score=0.0, correct=False, observed="", gold=item.gold, detail={"score": 0.0})
    metrics = {f"scorer_{name}": value for name, value in scores.parts.items()} if len(scores.parts) > 1 else {}
    lines = [f"Score: {scores.total:g}", *(f"{name}: {value:g}" for name, value in scores.parts.items())]
    return Grade(
        score=min(1.0, max(0.0, scores.total)),
        correct=scores.total >= _SUCCESS,
        observed="",
        gold=item.gold,
        report="\n".join(filter(None, [*lines, scores.explanation])),
        detail={"score": scores.total, **metrics},
    )
