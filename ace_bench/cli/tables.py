"""Make the paper's tables from the runs in a results folder, as Markdown, LaTeX (booktabs) and CSV.

    ace-bench tables                                  every table that has a finished run
    ace-bench tables table=2,4 --with-paper           some, with the paper's numbers in any case
    ace-bench tables table=2 backbone=embedded limit=40
    ace-bench tables experiment=seed_000              a founding document's, from its runs
    ace-bench tables table=claims                     the paper's claims, each with interval, p-value and verdict

Settings choose runs that were made with them; METHOD:SETTING and TASK:SETTING apply to the runs of one
method or task. A table never mixes models, limits, prompt sets, or real and sample data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ace_bench.cli.results import make


def main(arguments: Sequence[str]) -> int:
    """Make tables and return the exit status."""
    return make("table", _write, __doc__, arguments)


def _write(*arguments: Any, **options: Any) -> Sequence[Path]:
    from ace_bench.report.tables.write import write_tables  # slow to import, and --help does not need it

    return write_tables(*arguments, **options)
