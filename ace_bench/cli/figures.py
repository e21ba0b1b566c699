"""Make the figures that the runs in a results folder fill, as PDF and PNG.

    ace-bench figures                                  every figure that has a finished run
    ace-bench figures figure=overall,sensitivity --with-paper
    ace-bench figures figure=learning backbone=embedded limit=40

Kinds: overall (bars of figure 1), collapse (figure 2), learning, cost, breakdown, cache, sensitivity. Settings choose
the runs that were made with them; METHOD:SETTING is one of a method's runs only. Runs with another model, limit or
prompt set, and real and sample data, are never in one figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ace_bench.cli.results import make


def main(arguments: Sequence[str]) -> int:
    """Make figures and return the exit status."""
    return make("figure", _write, __doc__, arguments)


def _write(*arguments: Any, **options: Any) -> Sequence[Path]:
    from ace_bench.report.figures.write import write_figures  # slow to import, and --help needs none of it

    return write_figures(*arguments, **options)
