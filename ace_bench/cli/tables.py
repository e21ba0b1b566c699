"""Make tables from finished runs: the paper's, or with --rows or --columns any of your own.

    ace-bench tables                                  every table of the paper that has a finished run
    ace-bench tables table=2,4 --paper on             some, with the paper's numbers in any case
    ace-bench tables table=2 backbone=embedded limit=40
    ace-bench tables experiment=seed_000              a founding document's, from its runs
    ace-bench tables table=claims                     the paper's claims, each with interval, p-value and verdict
    ace-bench tables results/ --rows method           methods by tasks
    ace-bench tables results/ --rows method,threshold --columns task --base base
    ace-bench tables results/ task=finer --metric score,usd.total --out costs.csv
    ace-bench tables results/ --rows method --over nothing --format latex --out table.tex
    ace-bench tables table=2 --format latex --width page --standalone   a document for pdflatex

The paper's are written as Markdown, LaTeX and CSV, or as --format says. Settings choose runs that were made with them;
METHOD:SETTING and TASK:SETTING apply to the runs of one method or task. Such a table never mixes models, limits,
prompt sets, or real and sample data.

In your own, rows and columns are settings by path (method.refiner.threshold) or last part, and metric. Cells are means
over seeds with 95% intervals; differences to the base row have paired tests, corrected over the table. Only seeds are
averaged: runs of one cell that differ in anything else get rows of their own, and runs that tested different samples
get columns of their own. Simulated and real runs are in tables of their own. KEY=VALUE[,VALUE] chooses runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ace_bench.cli.arguments import print_line
from ace_bench.cli.results import chosen_runs, parser_of, write_paper_results
from ace_bench.core.errors import ConfigError
from ace_bench.store.files import write_files

if TYPE_CHECKING:
    from ace_bench.report.tables.table import Table

_SUFFIXES = {".md": "markdown", ".tex": "latex", ".csv": "csv"}


def main(arguments: Sequence[str]) -> int:
    """Make tables and return the exit status."""
    parser = parser_of("table", __doc__)
    own = parser.add_argument_group("tables of your own runs; --out is then a file, instead of the standard output")
    own.add_argument("--rows", help="settings, separated by commas (default: method)")
    own.add_argument("--columns", help="settings, separated by commas (default: task)")
    own.add_argument("--metric", help="score, or metrics separated by commas (default: score)")
    own.add_argument("--over", choices=["seed", "nothing"], help="what is averaged (default: seed)")
    own.add_argument("--base", help="values that only the base row has (default: method=base)")
    parser.add_argument("--format", choices=list(_SUFFIXES.values()), help="default: all, or by the suffix of --out")
    parser.add_argument("--width", choices=["column", "page"], help="LaTeX: one of two columns, or all (default: fits)")
    parser.add_argument("--standalone", action="store_true", help="LaTeX: a whole document for pdflatex")
    options = parser.parse_intermixed_args(arguments)
    own_options = (options.rows, options.columns, options.metric, options.over, options.base)
    named = any(word.startswith(("table=", "experiment=")) for word in options.words)
    if all(value is None for value in own_options) and (named or options.format is None):
        kinds = [suffix[1:] for suffix, kind in _SUFFIXES.items() if kind == (options.format or kind)]
        form = {"width": options.width or "", "standalone": options.standalone, "formats": tuple(kinds)}
        return write_paper_results("table", options, **form)
    return _write_own(options)


def _write_own(options: argparse.Namespace) -> int:
    """Write the table to --out or to the standard output."""
    from ace_bench.report.choosing import words
    from ace_bench.report.tables.own_tables import Layout, own_tables

    kind = options.format or _kind_of(options.out)
    layout = Layout(
        rows=words(options.rows or "method", "--rows"),
        columns=words(options.columns or "task", "--columns"),
        metrics=words(options.metric or "score", "--metric"),
        over_seeds=options.over != "nothing",
        base=options.base or "",
    )
    tables = own_tables(chosen_runs(options), layout)
    text = _text(kind, tables, width=options.width or "", standalone=options.standalone)
    if options.out is None:
        sys.stdout.write(text)
        return 0
    write_files({options.out: text})
    print_line(options.out)
    return 0


def _kind_of(out: Path | None) -> str:
    if out is None:
        return "markdown"
    if out.suffix not in _SUFFIXES:
        raise ConfigError(
            f"the format of {out} is unknown; give --format, or a name that ends in {', '.join(_SUFFIXES)}"
        )
    return _SUFFIXES[out.suffix]


def _text(kind: str, tables: Sequence[Table], **layout: Any) -> str:
    from ace_bench.report.tables.formats import csv, markdown, page_of
    from ace_bench.report.tables.latex import latex
    from ace_bench.report.tables.printed import printed_grid

    if kind == "csv":
        return csv(tables)
    pages = [page_of(table) for table in tables]
    if kind == "markdown":
        return "\n".join(map(markdown, pages))
    # A paper takes the results; the statistics behind them would be a table of their own.
    results = [replace(page, grids=(printed_grid(table),)) for page, table in zip(pages, tables, strict=True)]
    return latex(results, **layout)
