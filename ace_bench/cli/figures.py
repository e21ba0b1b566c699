"""Make the figures that the runs in a results folder allow, as PDF and PNG.

    ace-bench figures                                  every figure that has a finished run
    ace-bench figures figure=overall,sensitivity --with-paper
    ace-bench figures figure=learning backbone=embedded limit=40

Kinds: overall (bars of figure 1), collapse (figure 2), learning, cost, breakdown, cache, sensitivity, and, only where
it is named, field (score against cost of all methods, with the Pareto front). Settings choose runs that were made with
them; METHOD:SETTING and TASK:SETTING apply to the runs of one method or task. A figure never mixes models, limits,
prompt sets, or real and sample data.
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
    from ace_bench.report.figures.write import write_figures  # slow to import, and --help does not need it

    return write_figures(*arguments, **options)
