"""Measure the harness: speed, learning, cache reuse, and the cost of killed runs.

    python -m benchmarks                      every case
    python -m benchmarks overhead kills       some cases
    python -m benchmarks results --runs 10000 tables and the viewer over many runs
    python -m benchmarks throughput --results RUN --url http://HOST:8000/v1
                                             tokens per second of the harness and of a bare client: the requests of a
                                             recorded run to a server (without both: a small run, a scripted server)
    python -m benchmarks learning --data DIR  with real data: DIR holds finer/ and formula/

The figures depend on the machine and its load. These are measurements, not tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.table import Table

from ace_bench.cli.arguments import Parser, add_column, count
from ace_bench.core.console import Console
from ace_bench.core.errors import AceBenchError
from ace_bench.store.files import write_files
from benchmarks import cases
from benchmarks.growth import growth
from benchmarks.measuring import Figure, Grid, Setting, markdown
from benchmarks.network import network
from benchmarks.results import results
from benchmarks.throughput import throughput

_FILE_WIDTH = 150
"""Columns where the output is no terminal: tables must not be cut."""

CASES: dict[str, Callable[[Setting], list[Figure]]] = {
    "startup": cases.startup,
    "embedded": cases.embedded_call,
    "overhead": cases.step_overhead,
    "network": network,
    "cache": cases.online_cache,
    "learning": cases.learning,
    "sql": cases.sql,
    "kills": cases.kills,
    "results": results,
    "throughput": throughput,
}
_LONG = "growth"
"""The case that is measured only if asked for. It makes a table of its own."""


def main(arguments: Sequence[str]) -> int:
    """Run the cases asked for and print a table of figures."""
    options = _options(arguments)
    progress = Console(stderr=True)
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    grids: list[Grid] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.case or CASES:
            setting = Setting(
                scratch=Path(scratch) / name,
                data=options.data,
                say=lambda line: progress.print(line, style="dim", markup=False, highlight=False),
                slots=tuple(options.slots),
                bullets=tuple(options.bullets),
                runs=options.runs,
                recorded=options.results,
                url=options.url,
            )
            try:
                grid = _run_case(name, setting)
            except AceBenchError as error:
                progress.print(f"{name}: {error}", style="red", markup=False, soft_wrap=True)
                return 2
            except KeyboardInterrupt:
                progress.print("Stopped.")
                return 130
            _show(grid, console)
            grids.append(grid)
    if options.out:
        write_files({options.out: markdown(grids)})
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser("benchmarks", __doc__)
    parser.prog = "python -m benchmarks"
    names = [*CASES, _LONG]
    parser.add_argument("case", nargs="*", help=f"any of {', '.join(names)}; default: all but {_LONG}")
    parser.add_argument("--data", type=Path, help="folder with finer/ and formula/; default: the sample sets")
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="write the tables in Markdown, too")
    parser.add_argument("--runs", type=count, default=1000, help="runs in the case results (default: %(default)s)")
    parser.add_argument("--url", metavar="URL", help="a server's address (throughput; default: a scripted server)")
    parser.add_argument("--results", type=Path, metavar="RUN", help="folder of a recorded run (throughput)")
    parser.add_argument("--slots", type=count, nargs="+", default=[], help="calls in flight (throughput)")
    parser.add_argument("--bullets", type=count, nargs="+", default=[], metavar="N", help="sizes of playbooks (growth)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.case if name not in names]
    if unknown:
        parser.error(f"there is no case {unknown[0]}; the cases are {', '.join(names)}")
    return options


def _run_case(name: str, setting: Setting) -> Grid:
    if name == _LONG:
        return growth(setting)
    rows = tuple(CASES[name](setting))
    return Grid(title=f"{name}: {CASES[name].__doc__}", headings=Figure._fields, rows=rows)


def _show(grid: Grid, console: Console) -> None:
    table = Table(title=grid.title, title_justify="left")
    for heading in grid.headings:
        add_column(table, heading)
    for index, row in enumerate(grid.rows):
        table.add_row(*row, end_section=index in grid.rules)
    console.print(table)
    for note in grid.notes:
        console.print(note, style="dim", markup=False, highlight=False)
