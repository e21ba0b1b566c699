"""Where every command starts: handles Ctrl-C before anything else is imported."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence

from ace_bench.core.program import exit_on_signals

_NEW_OBJECTS = 100_000
"""How many new objects start a search for garbage. With Python's 700, these searches take a tenth of a run's start."""

if "multiprocessing" not in sys.modules:  # the workers of a sweep import the program, too, and have their own handlers
    exit_on_signals()


def _make_output_safe() -> None:
    """Let any text be printed: where the encoding lacks a character as its escape, nowhere where output is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names. Return the exit status."""
    exit_on_signals()
    _make_output_safe()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    from ace_bench.cli.main import main as run

    return run(arguments)
