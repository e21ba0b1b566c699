"""Write the report of one or several runs as one HTML page that needs nothing else.

    python scripts/report.py results/main/finer-ace-embedded-offline/9bcd0c5d6f9b/seed0
    python scripts/report.py RUN RUN --out comparison.html

A folder above run folders stands for all of them. Without --out, the page of one run is report.html in its folder, and
that of several is results/report.html.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from ace_bench.core.errors import AceBenchError, ConfigError
from ace_bench.report.page.writing import report_page
from ace_bench.report.records import RunSummary, find_runs

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Find the runs, write the page, and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="+", help="run folder, or a folder above some")
    parser.add_argument("--out", type=Path, help="file to write")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    try:
        runs = [run for folder in arguments.folder for run in _runs(folder, console)]
        out = arguments.out or (runs[0].folder if len(runs) == 1 else ROOT / "results") / "report.html"
        page = report_page(runs)
    except AceBenchError as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    Console().print(str(out), markup=False, highlight=False, soft_wrap=True)
    return 0


def _runs(folder: Path, console: Console) -> tuple[RunSummary, ...]:
    found = find_runs(folder)
    for damaged in found.damaged:
        console.print(f"left out: {damaged.reason}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    if not found.runs:
        raise ConfigError(f"{folder} holds no run; give the folder that a run printed last")
    return found.runs


if __name__ == "__main__":
    sys.exit(main())
