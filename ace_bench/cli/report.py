"""Write the report of one or several runs as one self-contained HTML page.

    ace-bench report results/main/finer-ace-embedded-offline/9bcd0c5d6f9b/seed0
    ace-bench report RUN RUN --out comparison.html

A folder that contains run folders selects all of them. Without --out, the page of one run is report.html in its folder,
and that of several is results/report.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.core.errors import ConfigError
from ace_bench.store.files import write_files

if TYPE_CHECKING:
    from ace_bench.report.records import Found


def main(arguments: Sequence[str]) -> int:
    """Find the runs, write the page, and print its path."""
    parser = Parser("report", __doc__)
    parser.add_argument("folder", type=Path, nargs="+", help="run folder, or a folder above some")
    parser.add_argument("--out", type=Path, help="file to write")
    options = parser.parse_args(arguments)
    from ace_bench.report.page.writing import report_page  # slow to import, and --help does not need it

    console = Console(stderr=True)
    found = [_found(folder, console) for folder in options.folder]
    runs = [run for one in found for run in one.runs]
    out = options.out or (runs[0].folder if len(runs) == 1 else Path("results")) / "report.html"
    page = report_page(runs, [damaged for one in found for damaged in one.damaged])
    write_files({out: page})
    Console().print(str(out), markup=False, highlight=False, soft_wrap=True)
    return 0


def _found(folder: Path, console: Console) -> Found:
    from ace_bench.report.records import find_runs

    found = find_runs(folder)
    for damaged in found.damaged:
        console.print(f"left out: {damaged.reason}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    if not found.runs:
        raise ConfigError(f"{folder} holds no run; give the folder that a run printed last")
    return found
