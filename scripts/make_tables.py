"""Make the paper's tables from the runs in a results folder, as Markdown, LaTeX (booktabs) and CSV.

    python scripts/make_tables.py                                  every table that has a finished run
    python scripts/make_tables.py table=2,4 --with-paper           some, with the paper's numbers in any case
    python scripts/make_tables.py table=2 backbone=embedded limit=40

Settings choose the runs that were made with them; METHOD:SETTING is one of a method's runs only. Runs with another
model, limit or prompt set, and real and sample data, are never in one table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ace_bench.report.tables.command import make
from ace_bench.report.tables.write import write_tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Make tables and return the exit status."""
    return make("table", write_tables, __doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
