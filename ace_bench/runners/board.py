"""The progress of many runs: a line for each run under way, and one for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.progress import Progress as Bars
from rich.progress import TaskID

from ace_bench.core.console import Console
from ace_bench.core.types import Record
from ace_bench.runners.progress import Observer, Progress, bars, describe_progress, time_left
from ace_bench.runners.schedule import Overrides
from ace_bench.runners.summary import compact, duration

_PLAIN_EVERY_S = 10.0
"""Seconds between two lines in a log, of all runs together."""


class Board:
    """Shows the runs of one command: in place on a terminal, and as lines in a log.

    Each run that ends has a line that stays, with its score and what it cost. ``total`` is the number of runs, and
    ``names`` has the name of each by its settings.
    """

    def __init__(self, console: Console, total: int, names: Mapping[Overrides, str]) -> None:
        self._console = console
        self._total = total
        self.names = names
        self._ended = 0
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._last_s: dict[str, float] = {}
        self._bars: Bars | None = None
        self._all = TaskID(0)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the runs while the block is under way."""
        if not self._console.is_terminal:
            yield
            return
        with bars(self._console) as self._bars:
            self._all = self._bars.add_task("all runs", total=self._total, left="", details="")
            yield

    def run(self, overrides: Overrides) -> Observer:
        """Return what shows the progress of one run."""
        return _RunOnBoard(self, self.names[overrides], self._bars)

    def end(self, name: str, text: str, style: str | None = None) -> None:
        """Say how a run ended, and how many runs are left."""
        with self._lock:
            self._ended += 1
            self._last_s.pop(name, None)
            left, elapsed = self._total - self._ended, time.monotonic() - self._started
            rest = f"about {duration(elapsed / self._ended * left)} left" if left else ""
            if self._bars is not None:
                self._bars.update(self._all, completed=self._ended, left=rest)
        line = f"[{self._ended}/{self._total}] {name}: {text}" + (f" ({rest})" if rest else "")
        self._console.print(line, style=style, highlight=False, soft_wrap=True)

    def note(self, name: str, progress: Progress) -> None:
        """Write a line on a run into a log, unless there were enough of them lately."""
        with self._lock:
            now = time.monotonic()
            before = self._last_s.setdefault(name, now)
            if now - before < _PLAIN_EVERY_S * len(self._last_s):
                return
            self._last_s[name] = now
        details = " · ".join(filter(None, (time_left(progress), describe_progress(progress))))
        line = f"{name}, {progress.phase}: {progress.done}/{progress.total}, {details}"
        self._console.print(line, highlight=False, soft_wrap=True)


class _RunOnBoard:
    """The line of one run."""

    def __init__(self, board: Board, name: str, lines: Bars | None) -> None:
        self._board = board
        self._name = name
        self._bars = lines
        self._bar = None if lines is None else lines.add_task(name, total=None, left="", details="starts")

    def update(self, progress: Progress) -> None:
        if self._bars is None or self._bar is None:
            self._board.note(self._name, progress)
            return
        self._bars.update(
            self._bar,
            description=f"{self._name}, {progress.phase}",
            completed=progress.done,
            total=progress.total,
            left=time_left(progress),
            details=describe_progress(progress),
        )

    def close(self) -> None:
        if self._bars is not None and self._bar is not None:
            self._bars.remove_task(self._bar)


def result_in_words(metrics: Record) -> str:
    """Return the score, calls, tokens and dollars of a finished run, and the speed where a model wrote."""
    headline: Mapping[str, Any] = metrics["headline"]
    before = "" if headline["before"] is None else f" (before {headline['before']:.1f})"
    calls = sum(count for roles in metrics["calls"].values() for count in roles.values())
    tokens = metrics["tokens"]["total"]
    known = None not in tokens.values()
    usd = metrics["usd"]["total"]
    rate = None if metrics["simulated"] else metrics["timing"].get("total", {}).get("tokens_per_s")
    return ", ".join(
        [
            f"{headline['metric']} {headline['after']:.1f}{before}",
            f"{calls:,} calls",
            f"{compact(tokens['in'] + tokens['out'])} tokens" if known else "tokens n/a",
            "$ n/a" if usd is None else f"${usd:,.2f}",
            *([] if rate is None else [f"{rate:,.1f} tokens/s"]),
        ]
    )


def short_names(runs: Sequence[Overrides]) -> Mapping[Overrides, str]:
    """Return for each run of a sweep the settings that not all of them have."""
    shared = set(runs[0]).intersection(*runs)
    return {run: " ".join(word for word in run if word not in shared) or " ".join(run) for run in runs}
