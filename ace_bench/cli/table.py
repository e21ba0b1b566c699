"""Make a table of runs: any settings or metrics as rows and columns.

    ace-bench table results/                            methods by tasks
    ace-bench table results/ --rows method,threshold --columns task --base base
    ace-bench table results/ task=finer --metric score,usd.total --out costs.csv
    ace-bench table results/ --format latex --out table.tex
    ace-bench table results/ --over nothing             a row for each seed

Cells are means over seeds with 95% intervals; differences to the base row have
paired tests, corrected over the table. Rows and columns are settings by path
(method.refiner.threshold) or last part, and metric. Only seeds are averaged:
runs of one cell that differ in anything else get rows of their own, and runs
that tested different samples get columns of their own. Simulated and real runs
are in tables of their own. KEY=VALUE[,VALUE] chooses runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.cli.chosen_runs import chosen_runs
from ace_bench.core.errors import ConfigError
from ace_bench.store.files import write_files

if TYPE_CHECKING:
    from ace_bench.report.tables.table import Table

_SUFFIXES = {".md": "markdown", ".tex": "latex", ".csv": "csv"}


def main(arguments: Sequence[str]) -> int:
    """Write the table to --out or to the standard output; return the exit status."""
    parser = Parser("table", __doc__)
    parser.add_argument("runs", nargs="*", metavar="FOLDER|KEY=VALUE", help="folders of runs (default: results)")
    parser.add_argument("--rows", default="method", help="settings, separated by commas (default: method)")
    parser.add_argument("--columns", default="task", help="settings, separated by commas (default: task)")
    parser.add_argument("--metric", default="score", help="score, or metrics separated by commas (default: score)")
    parser.add_argument("--over", choices=["seed", "nothing"], default="seed", help="what is averaged (default: seed)")
    parser.add_argument("--base", default="", help="values that only the base row has (default: method=base)")
    parser.add_argument(
        "--format", choices=list(_SUFFIXES.values()), help="default: by the suffix of --out, or markdown"
    )
    parser.add_argument("--out", type=Path, help="file to write")
    options = parser.parse_intermixed_args(arguments)
    from ace_bench.report.choosing import words
    from ace_bench.report.tables.own_tables import Layout, own_tables  # slow to import, and --help does not need it

    kind = options.format or _kind_of(options.out)
    layout = Layout(
        rows=words(options.rows, "--rows"),
        columns=words(options.columns, "--columns"),
        metrics=words(options.metric, "--metric"),
        over_seeds=options.over == "seed",
        base=options.base,
    )
    text = _text(kind, own_tables(chosen_runs(options.runs, Console(stderr=True)), layout))
    if options.out is None:
        sys.stdout.write(text)
        return 0
    write_files({options.out: text})
    Console().print(str(options.out), markup=False, highlight=False, soft_wrap=True)
    return 0


def _kind_of(out: Path | None) -> str:
    if out is None:
        return "markdown"
    if out.suffix not in _SUFFIXES:
        raise ConfigError(
            f"the format of {out} is unknown; give --format, or a name that ends in {', '.join(_SUFFIXES)}"
        )
    return _SUFFIXES[out.suffix]


def _text(kind: str, tables: Sequence[Table]) -> str:
    from ace_bench.report.tables.formats import csv, latex, markdown, page_of

    if kind == "csv":
        return csv(tables)
    pages = [page_of(table) for table in tables]
    if kind == "markdown":
        return "\n".join(map(markdown, pages))
    # A paper takes the results; the statistics behind them would be a table of their own.
    return "".join(latex(replace(page, grids=page.grids[:1])) for page in pages)
