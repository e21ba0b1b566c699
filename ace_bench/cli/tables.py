"""The commands `tables` and `figures`: the paper's from finished runs, or any of a user's own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from ace_bench.cli.arguments import DIFFERENCES, LOOKS, Parser, count, print_line
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders
from ace_bench.core.terminal import write
from ace_bench.report.planned import read_setting
from ace_bench.store.files import write_files

if TYPE_CHECKING:
    from ace_bench.report.records import Found, RunSummary
    from ace_bench.report.tables.formats import Page
    from ace_bench.report.tables.results_index import ResultsIndex, Style, Width

_TABLES_HELP = """Make tables from finished runs: the paper's, or with --rows or --columns any of your own.

    ace-bench tables                                  every table of the paper that has a finished run
    ace-bench tables table=2,4 --paper on             some, with the paper's numbers in any case
    ace-bench tables table=2 backbone=embedded limit=40
    ace-bench tables table=2 tasks=finer methods=base,ace   a part of one, by the tasks and methods of its runs
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

If you look at results while you add seeds, say by --looks at how many points in all. `ace-bench plan` says how many
seeds a comparison needs.
"""
_FIGURES_HELP = """Make figures from finished runs, as PDF and PNG: the paper's, or with --x a metric against a setting.

    ace-bench figures                                  every figure that has a finished run
    ace-bench figures figure=overall,sensitivity --with-paper
    ace-bench figures figure=learning backbone=embedded limit=40
    ace-bench figures results/ --x threshold           the score of your own runs against a setting
    ace-bench figures results/ task=finer --x epochs --y usd.total --out figures
    ace-bench figures figure=learning style=paper --width column   PDF and PGF for a paper, a caption for the title

Kinds: overall (bars of figure 1), collapse (figure 2), learning, cost, breakdown, cache, sensitivity, and, only where
they are named, field (score against cost of all methods, with the Pareto front) and speed (score against time for
Combee and batches). Settings choose runs that were made with them; METHOD:SETTING and TASK:SETTING apply to the runs of
one method or task. A figure never mixes models, limits, prompt sets, or real and sample data.

With --x, points are means over seeds, with 95% intervals of scores. Each line is one combination of the other settings
in which the runs differ; --lines names those that come first in its name. Runs without the setting are dotted levels.
Simulated and real runs are in figures of their own, and tasks in panels of their own. KEY=VALUE[,VALUE] chooses runs.

Figures show intervals of scores and mark no test, so they have no --looks. `ace-bench tables --looks K` tests.
"""
_RESULTS = Path("results")
_OPTIONS = ("results", "out", "looks")
"""Options of these commands that a user may take for settings."""
_PICTURES = (".pdf", ".pgf", ".png", ".svg")
_SUFFIXES = {".md": "markdown", ".tex": "latex", ".csv": "csv"}


def make_tables(arguments: Sequence[str]) -> int:
    """Make tables: the paper's, or of your own runs."""
    parser = _parser_of("table", _TABLES_HELP)
    parser.add_argument("--looks", type=count, default=1, help=LOOKS)
    group = parser.add_argument_group("tables of your own runs; --out is then a file, instead of the standard output")
    group.add_argument("--rows", help="settings, separated by commas (default: method)")
    group.add_argument("--columns", help="settings, separated by commas (default: task)")
    group.add_argument("--metric", help="score, or metrics separated by commas (default: score)")
    group.add_argument("--over", choices=["seed", "nothing"], help="what is averaged (default: seed)")
    group.add_argument("--base", help="values that only the base row has (default: method=base)")
    parser.add_argument("--format", choices=list(_SUFFIXES.values()), help="default: all, or by the suffix of --out")
    parser.add_argument("--width", choices=["column", "page"], help="LaTeX: one of two columns, or all (default: fits)")
    parser.add_argument("--standalone", action="store_true", help="LaTeX: a whole document for pdflatex")
    options = parse_results(parser, arguments)
    names_result = any(word.startswith(("table=", "experiment=")) for word in options.words)
    form = {"width": options.width or "", "standalone": options.standalone}
    own_options = (options.rows, options.columns, options.metric, options.over, options.base)
    if own_options == (None,) * 5 and (names_result or options.format is None):
        kinds = [suffix[1:] for suffix, kind in _SUFFIXES.items() if kind == (options.format or kind)]
        return _write_paper_results("table", options, formats=tuple(kinds), looks=options.looks, **form)
    text = _own_table(options, form)
    if options.out is None:
        write(text)
    else:
        write_files({options.out: text})
        print_line(options.out)
    return 0


def _own_table(options: argparse.Namespace, form: dict[str, Any]) -> str:
    from ace_bench.report.choosing import words
    from ace_bench.report.tables.formats import csv, markdown, page_of, printed_grid
    from ace_bench.report.tables.latex import latex
    from ace_bench.report.tables.own_tables import Layout, own_tables

    kind = options.format or _SUFFIXES.get(options.out.suffix if options.out else ".md")
    if kind is None:
        ends = ", ".join(_SUFFIXES)
        raise ConfigError(f"the format of {options.out} is unknown; give --format, or a name that ends in {ends}")
    layout = Layout(
        rows=words(options.rows or "method", "--rows"),
        columns=words(options.columns or "task", "--columns"),
        metrics=words(options.metric or "score", "--metric"),
        over_seeds=options.over != "nothing",
        base=options.base or "",
        looks=options.looks,
    )
    _refuse_paper_options(options)
    tables = own_tables(chosen_runs(options), layout)
    if kind == "csv":
        return csv(tables)
    pages = [page_of(table) for table in tables]
    if kind == "markdown":
        return "\n".join(map(markdown, pages))
    # A paper shows the results. The statistics behind them would be another table.
    results = [replace(page, grids=(printed_grid(table),)) for page, table in zip(pages, tables, strict=True)]
    return latex(results, **form)


def make_figures(arguments: Sequence[str]) -> int:
    """Draw figures: the paper's, or of your own runs."""
    parser = _parser_of("figure", _FIGURES_HELP)
    group = parser.add_argument_group("figures of your own runs")
    group.add_argument("--x", help="the setting along x, by path or last part")
    group.add_argument("--y", help="score, or a metric (default: score)")
    group.add_argument("--lines", help="settings, separated by commas (default: method)")
    parser.add_argument("--width", choices=["column", "page"], help="with style=paper (default: what fits)")
    options = parse_results(parser, arguments)
    styles = [word.removeprefix("style=") for word in options.words if word.startswith("style=")]
    options.words = [word for word in options.words if not word.startswith("style=")]
    style, width = read_style(styles[-1] if styles else "screen"), cast("Width", options.width or "")
    if (options.x, options.y, options.lines) == (None,) * 3:
        return _write_paper_results("figure", options, style=style, width=width)
    from ace_bench.report.choosing import words
    from ace_bench.report.figures.own_runs import write_sweep_figures
    from ace_bench.report.figures.style import Sheet

    if options.x is None:
        raise ConfigError("a figure of your own runs needs the setting along x; add --x SETTING")
    _refuse_paper_options(options)
    out, lines = options.out or Path("results/figures"), words(options.lines or "method", "--lines")
    if out.suffix in _PICTURES:
        raise ConfigError(f"--out {out} names a file, but figures are several files; name a folder")
    runs = chosen_runs(options)
    sheet = Sheet(style=style, width=width)
    for file in write_sweep_figures(runs, out, x=options.x, y=options.y or "score", lines=lines, sheet=sheet):
        print_line(file)
    return 0


def _parser_of(kind: str, description: str | None) -> Parser:
    """Return a parser with the options for the paper's results (``kind``: "table" or "figure")."""
    parser = Parser(f"{kind}s", description)
    parser.add_argument(
        "words", nargs="*", metavar="FOLDER|KEY=VALUE", help=f"{kind}=NAME, folders of runs, and settings of the runs"
    )
    parser.add_argument("--results", type=Path, help="folder of runs (default: results)")
    parser.add_argument("--out", type=Path, help=f"folder to write to (default: RESULTS/{kind}s)")
    parser.add_argument(
        "--paper", choices=["on", "off"], help="the paper's numbers beside ours (default: where they are comparable)"
    )
    parser.add_argument("--with-paper", dest="paper", action="store_const", const="on", help="the same as --paper on")
    parser.add_argument("--differences", action="store_true", help=DIFFERENCES)
    return parser


def parse_results(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. ``results=FOLDER`` is the same as ``--results FOLDER``, as other commands write it."""
    options = parser.parse_intermixed_args(arguments)
    named = [word for word in options.words if word.startswith("results=")]
    options.words = [word for word in options.words if word not in named]
    if named and options.results:
        raise ConfigError(f"{named[-1]} and --results {options.results} are two folders of runs; give one of them")
    if named:
        options.results = Path(named[-1].removeprefix("results="))
    return options


def _write_paper_results(kind: str, options: argparse.Namespace, **form: Any) -> int:
    """Write the requested tables or figures of the paper, in the ``form`` of ``Wanted``. Return the exit status."""
    from ace_bench.report.narrowing import choice_words, narrowed, read_choice
    from ace_bench.report.tables.results_index import ResultsIndex, Wanted  # slow to import; --help needs none of it
    from ace_bench.report.tables.write import CLAIMS, TABLES, table_names, write_tables
    from ace_bench.runners.checking import RunChecks
    from ace_bench.runners.planning import Composer

    folders = _folders(options)
    if len(folders) > 1:
        raise ConfigError(f"{kind}s of the paper are made from one folder of runs, and {len(folders)} are named")
    results = next(iter(folders), _RESULTS)
    words = [word for word in options.words if Path(word) not in folders]
    chosen = read_choice(words if kind == "table" else ())
    names, extra = _sort_words(kind, [word for word in words if word.partition("=")[0] not in chosen])
    compose = Composer(config_folders())
    checks = RunChecks(compose)
    index = ResultsIndex(results=results, compose=compose, refusal=checks.refusal, draws=checks.draws, extra=extra)
    if not index.found.runs:
        raise ConfigError(f"there are no runs in {results}; make some, or name their folder by --results")
    if chosen:
        if not names or CLAIMS in names:
            choice = " ".join(choice_words(chosen))
            raise ConfigError(f"{choice} chooses from tables; name some, such as `ace-bench tables table=2 {choice}`")
        experiments, left = narrowed(index.experiments, table_names(index.experiments, names), chosen)
        index, names = replace(index, experiments=experiments), [*left]
    wanted = Wanted(
        names=tuple(names), paper={"on": True, "off": False}.get(options.paper), differences=options.differences, **form
    )
    out = options.out or results / f"{kind}s"
    if kind == "table":
        files = write_tables(index, out, wanted, note=_say_what_continues)
    else:
        from ace_bench.report.figures.write import write_figures

        files = write_figures(index, out, wanted)
    _say_what_is_wrong(index.found)
    if not any(file.name != TABLES for file in files):
        print_line(_nothing_filled(kind, index, named=bool(names)), "yellow")
    for file in files:
        print_line(file)
    return 0


def _nothing_filled(kind: str, index: ResultsIndex, *, named: bool) -> str:
    """Say why no result of the paper was written."""
    example = {"table": "--rows method", "figure": "--x SETTING"}[kind]
    own = dict.fromkeys(selection.model for selection in index.selections if not selection.preset)
    if kind == "table" and own and not named:
        return (
            f"no table of the paper is about {', '.join(own)}; name those to fill, such as `ace-bench tables table=2`"
        )
    return f"no finished run fills a {kind} of the paper; `ace-bench {kind}s {example}` shows your own runs"


def _say_what_continues(page: Page) -> None:
    """Name the command that continues the begun runs of a table, or say that the table names several."""
    continuing = page.continuing
    if continuing is None or not continuing.begun:
        return
    name, commands = page.label.partition("-")[0], continuing.commands
    first = f": {commands[0]}" if len(commands) == 1 else ". The table lists them."
    print_line(f"Table {name}: {continuing}{first}")


def _say_what_is_wrong(results: Found) -> None:
    for damaged in results.damaged:
        print_line(f"left out: {damaged.reason}", "yellow")
    for problem in results.problems:
        print_line(problem.reason, "yellow")


def _refuse_paper_options(options: argparse.Namespace) -> None:
    if options.paper or options.differences:
        raise ConfigError("--paper and --differences are for the paper's results; leave them out")


def chosen_runs(options: argparse.Namespace, *, or_without: bool = False) -> list[RunSummary]:
    """Return the runs in the folders that have the settings (``KEY=VALUE[,VALUE]``). Damaged ones are reported.

    With ``or_without`` runs stay that do not know a setting.

    Raises ``ConfigError`` if there are none.
    """
    from ace_bench.report.choosing import with_settings
    from ace_bench.report.records import find_runs

    folders = _folders(options) or [_RESULTS]
    conditions = [word for word in options.words if "=" in word and Path(word) not in folders]
    arguments = [Path(word) for word in options.words if "=" not in word]
    if missing := [str(folder) for folder in (*arguments, *folders) if not folder.is_dir()]:
        raise ConfigError(f"{', '.join(missing)} is not a folder; name folders of runs, or settings as KEY=VALUE")
    results = find_runs(*folders)
    _say_what_is_wrong(results)
    if not results.runs:
        raise ConfigError(f"there are no runs in {', '.join(map(str, folders))}; make some, or name their folder")
    return with_settings(results.runs, conditions, or_without=or_without)


def read_style(text: str) -> Style:
    """Return the style of figures. Raises ``ConfigError`` for an unknown one."""
    from ace_bench.report.tables.results_index import Style

    if text not in get_args(Style):
        raise ConfigError(f"there is no style={text}; there are {', '.join(get_args(Style))}")
    return cast("Style", text)


def _folders(options: argparse.Namespace) -> list[Path]:
    """Return the folders of runs that a command line names."""
    folders = [Path(word) for word in options.words if Path(word).is_dir()]
    return [*folders, *([options.results] if options.results else [])]


def _sort_words(kind: str, overrides: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split ``table=2,3 backbone=...`` into the requested names and the settings of the runs."""
    names: list[str] = []
    extra: list[str] = []
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise ConfigError(f"{override} is not a setting; write {kind}={override}, or KEY=VALUE")
        if key == kind or (kind, key) == ("table", "experiment"):
            names += value.split(",")
        else:
            _check_chooses(kind, override)
            extra.append(override)
    return names, tuple(extra)


def _check_chooses(kind: str, override: str) -> None:
    """Reject a setting that cannot select runs. Raises ``ConfigError`` with the right spelling."""
    from ace_bench.report.conditions import CHOOSING

    group = read_setting(override).path[0]
    value = override.partition("=")[2]
    if group in _OPTIONS:
        raise ConfigError(f"{override} chooses no runs; write --{group} {value}")
    if group == "seed":
        raise ConfigError(f"{override} chooses no runs, since {kind}s are over all seeds; leave it out")
    if group in CHOOSING:
        return
    close = get_close_matches(group, [*CHOOSING, *_OPTIONS, kind], n=1)
    if not close:
        raise ConfigError(f"{override} chooses no runs, since {group} changes no answer; leave it out")
    right = f"--{close[0]} {value}" if close[0] in _OPTIONS else override.replace(group, close[0], 1)
    raise ConfigError(f"there is no setting {group} that chooses runs; did you mean {right}?")
