"""Gathers calls that wait at the same time into files, sends these, and hands out the replies."""

from __future__ import annotations

import tempfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ace_batch.files import BatchFiles, read_lines, request_line
from ace_batch.settings import BatchSettings, Provider, Status, Unreachable
from ace_bench.backbones.openai_compatible.problems import Disposition, Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.core.errors import BackboneUnavailable

T = TypeVar("T")
Result = Answer | Problem

_MEGABYTE = 1_000_000
_CLOSING_S = 2.0
"""Most seconds that the end of a run waits for a request under way."""
_BUSY_S = 600.0
"""Most seconds that calls wait for rollouts at work, which may themselves wait for an environment in use."""
_LOOK_S = 0.02
"""Fewest seconds between two looks whether rollouts are at work."""


class Gatherer:
    """Sends calls as files to a provider; a thread of its own sends and asks. Safe to use from many threads.

    What was sent is kept in a folder: a continued run waits for the batches that a killed one began. ``patience`` is
    how many seconds the provider may be silent.
    """

    def __init__(self, provider: Provider, settings: BatchSettings, *, patience: float):
        self._provider = provider
        self._settings = settings
        self._patience = patience
        self._say: Callable[[str], None] = lambda _: None
        self._files: BatchFiles | None = None
        self._changed = threading.Condition()
        self._unsent: dict[str, bytes] = {}
        self._last = 0.0
        self._busy: Callable[[], bool] = lambda: False
        self._calling = 0
        self._asked = defaultdict[str, list[Future[Result]]](list)
        self._open: dict[str, set[str]] = {}
        self._answers: dict[str, Result] = {}
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._poll_at = 0.0

    def keep_in(self, folder: Path) -> None:
        """Keep batches in a folder, and go on with those in it."""
        self._files = BatchFiles(folder)
        self._answers = dict(self._files.answers())
        self._open = {name: set(self._files.lines(name)) for name in self._files.open}

    def start(self, say: Callable[[str], None]) -> None:
        """Report batches by ``say``."""
        self._say = say

    @contextmanager
    def calling(self, busy: Callable[[], bool]) -> Iterator[None]:
        """Make one call, perhaps in several attempts; while others are ``busy``, their calls are waited for."""
        with self._changed:
            self._calling += 1
            self._busy = busy
        try:
            yield
        finally:
            with self._changed:
                self._calling -= 1

    def ask(self, name: str, body: bytes) -> Result:
        """Return what comes of a call, perhaps in a day; raises what ended the gathering."""
        line = request_line(name, body)
        if len(line) > self._settings.max_mb * _MEGABYTE:
            size = f"{len(line) / _MEGABYTE:.1f} MB, more than backbone.batch.max_mb={self._settings.max_mb:g}"
            return Problem(kind="bad_request", message=f"the call has {size}", disposition=Disposition.FAULT)
        with self._changed:
            if self._error is not None:
                raise self._error
            if name in self._answers:
                return self._answers.pop(name)
            future: Future[Result] = Future()
            self._asked[name].append(future)
            if not any(name in names for names in self._open.values()):
                self._unsent[name] = line
            self._last = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="batches", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return future.result()

    def stop(self, error: BaseException) -> None:
        """End all waits, and refuse later calls, by an error."""
        with self._changed:
            self._error = self._error or error
            waiting = [future for futures in self._asked.values() for future in futures]
            self._asked.clear()
            self._unsent = {}
            self._changed.notify_all()
        for future in waiting:
            future.set_exception(error)

    def close(self) -> None:
        """End the thread, and what runs on this machine."""
        if self._thread is not None:
            self.stop(BackboneUnavailable("the backbone is closed"))
            self._thread.join(_CLOSING_S)
        self._provider.close()

    def _work(self) -> None:
        try:
            self._find_begun()
            while (lines := self._next_lines()) is not None:
                for part in split(lines, self._settings):
                    self._send(part)
                if self._open and time.monotonic() >= self._poll_at:
                    self._poll()
                    self._poll_at = time.monotonic() + self._settings.poll_seconds
        except BaseException as error:
            self.stop(error)

    def _next_lines(self) -> dict[str, bytes] | None:
        """Return the calls to send now, perhaps none, once there is something to do; ``None`` at the end."""
        with self._changed:
            while self._error is None:
                now, lines = time.monotonic(), self._unsent
                quiet_at = self._last + self._quiet_seconds()
                if lines and (len(lines) >= self._settings.calls or now >= quiet_at):
                    self._unsent = {}
                    return lines
                if self._open and now >= self._poll_at:
                    return {}
                look_at = now + max(_LOOK_S, self._settings.gather_seconds)
                times = [min(quiet_at, look_at)] * bool(lines) + [self._poll_at] * bool(self._open)
                self._changed.wait(min(times) - now if times else None)
        return None

    def _quiet_seconds(self) -> float:
        """Return how long no call has to come: long while a rollout works, or a call is between two attempts."""
        at_work = self._busy() or self._calling > sum(map(len, self._asked.values()))
        return max(self._settings.gather_seconds, _BUSY_S * at_work)

    @property
    def _kept(self) -> BatchFiles:
        if self._files is None:  # outside of runs
            self._files = BatchFiles(Path(tempfile.mkdtemp(prefix="ace-bench-batches-")))
        return self._files

    def _find_begun(self) -> None:
        """Find the batches that a killed run began without noting their ids."""
        for name in [*self._open]:
            one = self._kept.batches[name]
            if one.batch is None:
                file = self._kept.requests(name)
                found = self._call_patiently(lambda: self._provider.find(file, one.token))  # noqa: B023 - called now
                if found is None:
                    self._send_again(name)
                    continue
                self._kept.set_id(name, found)
            self._say(f"Going on with batch {self._kept.batches[name].batch} of {one.calls:,} calls.")

    def _send_again(self, name: str) -> None:
        """Drop a batch that was never begun; its calls are sent when they are asked."""
        self._kept.end(name, "never sent")
        with self._changed:
            del self._open[name]
            self._unsent |= {call: line for call, line in self._kept.lines(name).items() if call in self._asked}

    def _send(self, lines: Mapping[str, bytes]) -> None:
        name = self._kept.add(lines, token := uuid.uuid4().hex)
        file, tried = self._kept.requests(name), False

        def begin() -> str:
            nonlocal tried
            found = self._provider.find(file, token) if tried else None  # a lost reply may have begun it
            tried = True
            return found or self._provider.send(file, token)

        try:
            batch = self._call_patiently(begin)
        except BackboneUnavailable as error:
            if not isinstance(error.__cause__, Unreachable):
                self._kept.end(name, "refused")
            raise
        self._kept.set_id(name, batch)
        with self._changed:
            self._open[name] = set(lines)
        self._say(f"Batch {batch} of {len(lines):,} calls was sent; the same command goes on with it.")

    def _poll(self) -> None:
        for name in [*self._open]:
            batch = self._kept.batches[name].batch or ""
            status = self._call_patiently(lambda: self._provider.status(batch))  # noqa: B023 - called now
            if status.state == "failed":
                self._kept.end(name, status.word)
                raise BackboneUnavailable(f"batch {batch} failed as a whole: {status.why}")
            if status.state == "ended":
                self._take(name, batch, status)

    def _take(self, name: str, batch: str, status: Status) -> None:
        """Keep the replies of an ended batch and hand them out; calls without one fail, to be sent again."""
        replies = self._call_patiently(lambda: self._provider.replies(batch))
        self._kept.end(name, status.word, replies)
        calls = self._open[name]
        found = {call: result for call, result in read_lines(replies) if call in calls}
        missing, strange = len(calls) - len(found), len(replies.splitlines()) - len(found)
        self._say(
            f"Batch {batch} has ended: {status.word}"
            + (f", {missing:,} calls without a reply" if missing else "")
            + (f", {strange:,} lines that belong to no call" if strange else "")
        )
        none = Problem(kind="dropped", message=f"batch {batch} has no line for the call ({status.word})")
        with self._changed:  # as a whole: a call that is asked meanwhile must not be sent again
            del self._open[name]
            asked = {call: self._asked.pop(call) for call in calls if call in self._asked}
            self._answers |= {c: r for c, r in found.items() if c not in asked and isinstance(r, Answer)}
        for call, futures in asked.items():
            for future in futures:
                future.set_result(found.get(call, none))

    def _call_patiently(self, function: Callable[[], T]) -> T:
        """Call again while the provider is silent; raises ``BackboneUnavailable`` after ``patience`` seconds."""
        began = time.monotonic()
        while True:
            try:
                return function()
            except Unreachable as error:
                if time.monotonic() - began >= self._patience:
                    raise BackboneUnavailable(str(error)) from error
            with self._changed:
                self._changed.wait(min(self._settings.poll_seconds, self._patience))
                if self._error is not None:
                    raise self._error


def split(lines: Mapping[str, bytes], settings: BatchSettings) -> Iterator[dict[str, bytes]]:
    """Yield the lines in parts that are within a provider's limits."""
    part: dict[str, bytes] = {}
    size = 0
    for name, line in lines.items():
        if part and (len(part) >= settings.max_lines or size + len(line) > settings.max_mb * _MEGABYTE):
            yield part
            part, size = {}, 0
        part[name] = line
        size += len(line)
    if part:
        yield part
