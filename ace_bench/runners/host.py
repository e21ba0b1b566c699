"""What a run needs to know of the program that starts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ace_bench.core.errors import Stopped


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What started a run: the ``command``, for its records, and the process whose end stops it, ``parent``."""

    command: str | None = None
    parent: int | None = None


@dataclass(frozen=True, kw_only=True)
class Host:
    """Where a run's output goes, and what started it.

    ``owns_process`` is false where the process must outlive the run, as in a notebook. ``on_folder`` gets the run
    folder once the run has one.
    """

    console: Console
    launch: Launch = Launch()
    owns_process: bool = True
    on_folder: Callable[[Path], object] = lambda _: None

    def say(self, line: str, style: str | None = None) -> None:
        """Print a line as it is."""
        self.console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def say_stopped(self, error: Stopped) -> None:
        """Print why a run stopped, and how it is continued."""
        reason = error.reason.rstrip(".")  # it may end with a server's message
        self.say(f"Stopped: {reason}. Run the same command to continue.")
