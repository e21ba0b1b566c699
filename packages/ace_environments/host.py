"""Runs an environment's asynchronous code in a thread and an event loop of its own, one request at a time.

The environment's model calls are handed to the agent's thread, so that they pass the run's counted gateway like all
others, and that its errors (a budget that is used up, a call that is lost) end the attempt there.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from ace_bench.core.errors import RolloutFault
from ace_bench.core.replies import ToolTurn
from ace_bench.core.types import Fault, Message, Record

_CLOSING_S = 2.0
"""Seconds to wait for an environment to end; code that cannot be interrupted is left behind in its thread."""


@dataclass(frozen=True, kw_only=True)
class ReplyRequest:
    """What an environment wants a model to reply to.

    ``schema`` offers tools (``backbones.offer``), and the contents of assistant and tool messages are then JSON;
    ``None`` where the conversation has nothing to do with tools.
    """

    messages: tuple[Message, ...]
    schema: Record | None = None


Ask = Callable[[ReplyRequest], Awaitable[ToolTurn]]


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores of an attempt: ``total`` is the mean or the sum that counts, ``parts`` are all by name."""

    total: float
    parts: Mapping[str, float] = field(default_factory=dict)
    explanation: str = ""


class Episode(Protocol):
    """One attempt at a sample in an environment; all methods run in one event loop."""

    async def play(self, ask: Ask) -> None:
        """Play until the environment ends; model calls go to ``ask``. It is cancelled where a limit is reached."""
        ...

    @property
    def final(self) -> str:
        """The answer as text, after ``play``."""
        ...

    async def score(self, ask: Ask) -> Scores:
        """Score the attempt as it stands; a scorer's own model calls go to ``ask``."""
        ...

    async def close(self) -> None:
        """Release what the environment holds."""
        ...


class Host:
    """Runs one episode. ``timeout`` is the most seconds that the environment may take between two model calls."""

    def __init__(self, make: Callable[[], Awaitable[Episode]], *, timeout: float):
        self._make = make
        self._timeout = timeout
        self._events: queue.SimpleQueue[tuple[ReplyRequest, asyncio.Future[ToolTurn]] | Future[Any]]
        self._events = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._episode: Episode | None = None
        self._under_way: asyncio.Task[Any] | None = None
        self._waiting: asyncio.Future[ToolTurn] | None = None
        self._thread = threading.Thread(target=self._run, name="environment", daemon=True)
        self._thread.start()

    @property
    def final(self) -> str:
        """The answer as text, once the episode is over."""
        return "" if self._episode is None else self._episode.final

    def play(self) -> None:
        """Begin the episode."""
        self._submit(self._play)

    def score(self) -> None:
        """Begin to score, after ``stop`` where the episode is not over; the result is ``next_event``'s."""
        self._submit(self._score)

    def stop(self) -> None:
        """End the episode where it stands, because a limit is reached."""
        try:
            asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result(self._timeout)
        except TimeoutError:
            raise self._timeout_fault() from None

    def next_event(self) -> ReplyRequest | Any:
        """Wait for the next request or the result; raises ``RolloutFault`` (owner ``task``)."""
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

    def reply(self, turn: ToolTurn) -> None:
        """Answer the last request."""
        if (waiting := self._waiting) is not None:
            self._loop.call_soon_threadsafe(lambda: None if waiting.done() else waiting.set_result(turn))

    def close(self) -> None:
        """End the episode and its event loop."""
        if self._loop.is_closed():
            return
        with suppress(RuntimeError):  # the loop may have ended meanwhile
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(_CLOSING_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _submit(self, step: Callable[[], Awaitable[Any]]) -> None:
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
        self._episode = await self._make()
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


def fault(kind: str, message: str) -> RolloutFault:
    """Return a fault of the environment."""
    return RolloutFault(Fault(owner="task", kind=kind, message=message))


def brief(error: BaseException) -> str:
    """Return an error of another package in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
