"""Where every command starts: handles Ctrl-C before anything else is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ace_bench.core.program import exit_on_signals

if "multiprocessing" not in sys.modules:  # the workers of a sweep import the program, too, and have their own handlers
    exit_on_signals()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names; return the exit status."""
    exit_on_signals()
    from ace_bench.cli.main import main as run

    return run(arguments)
