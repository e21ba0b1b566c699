"""Write the report of one or several runs as one self-contained HTML page.

    ace-bench report results/main/finer-ace-embedded-offline/9bcd0c5d6f9b/seed0
    ace-bench report RUN RUN --out comparison.html

A folder that contains run folders selects all of them. Without --out, the page of one run is report.html in its folder,
and that of several is results/report.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.core.errors import ConfigError
from ace_bench.store.files import write_files


def main(arguments: Sequence[str]) -> int:
    """Find the runs, write the page, and print its path."""
    parser = Parser("report", __doc__)
    parser.add_argument("folder", type=Path, nargs="+", help="run folder, or a folder above some")
    parser.add_argument("--out", type=Path, help="file to write")
    options = parser.parse_args(arguments)
    from ace_bench.report.page.content import report_page  # slow to import, and --help does not need it
    from ace_bench.report.page.results import Results

    results = Results(*options.folder)
    for damaged in results.damaged:
        print_line(f"left out: {damaged.reason}", "yellow")
    runs = [run.folder for run in results.runs().values()]
    for folder in options.folder:
        if not any(run.is_relative_to(folder) for run in runs):
            raise ConfigError(f"{folder} holds no run; give the folder that a run printed last")
    out = options.out or (runs[0] if len(runs) == 1 else Path("results")) / "report.html"
    write_files({out: report_page(results)})
    print_line(out)
    return 0
