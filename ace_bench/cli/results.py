"""What `tables` and `figures` share: the runs that a command line names, and the paper's results from them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ace_bench.cli.arguments import DIFFERENCES, Parser, print_line
from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import GROUPS, TOP
from ace_bench.core.resources import config_folders
from ace_bench.report.planned import read_setting

if TYPE_CHECKING:
    from ace_bench.report.records import RunSummary
    from ace_bench.report.tables.results_index import Style

_RESULTS = Path("results")
_CHOOSING = (*GROUPS, *TOP, "backbone", "roles", "sampling", "protocol")
_OPTIONS = ("results", "out")
"""Options of these commands that a user may take for settings."""


def parser_of(what: str, description: str | None) -> Parser:
    """Return a parser with the options for the paper's results (``what``: "table" or "figure")."""
    parser = Parser(f"{what}s", description)
    parser.add_argument(
        "words", nargs="*", metavar="FOLDER|KEY=VALUE", help=f"{what}=NAME, folders of runs, and settings of the runs"
    )
    parser.add_argument("--results", type=Path, help="folder of runs (default: results)")
    parser.add_argument("--out", type=Path, help=f"where to write (default: RESULTS/{what}s)")
    parser.add_argument(
        "--paper", choices=["on", "off"], help="the paper's numbers beside ours (default: where they are comparable)"
    )
    parser.add_argument("--with-paper", dest="paper", action="store_const", const="on", help="the same as --paper on")
    parser.add_argument("--differences", action="store_true", help=DIFFERENCES)
    return parser


def write_paper_results(what: str, options: argparse.Namespace, **form: Any) -> int:
    """Write the requested tables or figures of the paper, in the ``form`` of ``Wanted``; return the exit status."""
    from ace_bench.report.figures.write import write_figures  # slow to import, and --help does not need it
    from ace_bench.report.tables.results_index import ResultsIndex, Wanted
    from ace_bench.report.tables.write import TABLES, write_tables
    from ace_bench.runners.checking import RunChecks
    from ace_bench.runners.planning import Composer

    console = Console(highlight=False, soft_wrap=True)
    folders = _folders(options)
    if len(folders) > 1:
        raise ConfigError(f"{what}s of the paper are made from one folder of runs, and {len(folders)} are named")
    results = next(iter(folders), _RESULTS)
    which, extra = _sorted(what, [word for word in options.words if Path(word) not in folders])
    compose = Composer(config_folders())
    index = ResultsIndex(results=results, compose=compose, refusal=RunChecks(compose).refusal, extra=extra)
    if not index.found.runs:
        raise ConfigError(f"there are no runs in {results}; make some, or name their folder by --results")
    wanted = Wanted(
        names=tuple(which), paper={"on": True, "off": False}.get(options.paper), differences=options.differences, **form
    )
    write: Callable[[ResultsIndex, Path, Wanted], list[Path]] = write_tables if what == "table" else write_figures
    files = write(index, options.out or results / f"{what}s", wanted)
    for damaged in index.found.damaged:
        console.print(f"left out: {damaged.reason}", style="yellow", markup=False)
    if not any(file.name != TABLES for file in files):
        own = {"table": "--rows method", "figure": "--x SETTING"}[what]
        console.print(
            f"no finished run fills a {what} of the paper; `ace-bench {what}s {own}` shows your own runs",
            style="yellow",
        )
    for file in files:
        print_line(file)
    return 0


def chosen_runs(options: argparse.Namespace) -> list[RunSummary]:
    """Return the runs in the folders that have the settings (``KEY=VALUE[,VALUE]``); damaged ones are reported.

    Raises ``ConfigError`` if there are none.
    """
    from ace_bench.report.choosing import with_settings
    from ace_bench.report.records import find_runs

    if options.paper or options.differences:
        raise ConfigError("--paper and --differences are for the paper's results; leave them out")
    folders = _folders(options) or [_RESULTS]
    conditions = [word for word in options.words if "=" in word and Path(word) not in folders]
    others = [Path(word) for word in options.words if "=" not in word]
    if missing := [str(folder) for folder in (*others, *folders) if not folder.is_dir()]:
        raise ConfigError(f"{', '.join(missing)} is not a folder; name folders of runs, or settings as KEY=VALUE")
    found: dict[Path, RunSummary] = {}
    for folder in folders:
        index = find_runs(folder)
        for damaged in index.damaged:
            print_line(f"left out: {damaged.reason}", "yellow")
        found |= {run.folder.resolve(): run for run in index.runs}
    if not found:
        raise ConfigError(f"there are no runs in {', '.join(map(str, folders))}; make some, or name their folder")
    return with_settings(found.values(), conditions)


def read_style(text: str) -> Style:
    """Return the style of figures; raises ``ConfigError`` for an unknown one."""
    styles: tuple[Style, ...] = ("screen", "paper", "paper_times")
    for style in styles:
        if text == style:
            return style
    raise ConfigError(f"there is no style={text}; there are {', '.join(styles)}")


def _folders(options: argparse.Namespace) -> list[Path]:
    """Return the folders of runs that a command line names."""
    given = [Path(word) for word in options.words if Path(word).is_dir()]
    return [*given, *([options.results] if options.results else [])]


def _sorted(what: str, overrides: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split ``table=2,3 backbone=...`` into the requested names and the settings of the runs."""
    which: list[str] = []
    extra: list[str] = []
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise ConfigError(f"{override} is not a setting; write {what}={override}, or KEY=VALUE")
        if key == what or (what, key) == ("table", "experiment"):
            which += value.split(",")
        else:
            _check_chooses(what, override)
            extra.append(override)
    return which, tuple(extra)


def _check_chooses(what: str, override: str) -> None:
    """Reject a setting by which no run can be chosen; raises ``ConfigError`` with the right spelling."""
    group = read_setting(override).path[0]
    value = override.partition("=")[2]
    if group in _OPTIONS:
        raise ConfigError(f"{override} chooses no runs; write --{group} {value}")
    if group == "seed":
        raise ConfigError(f"{override} chooses no runs, since {what}s are over all seeds; leave it out")
    if group in _CHOOSING:
        return
    close = get_close_matches(group, [*_CHOOSING, *_OPTIONS, what], n=1)
    if not close:
        raise ConfigError(f"{override} chooses no runs, since {group} changes no answer; leave it out")
    right = f"--{close[0]} {value}" if close[0] in _OPTIONS else override.replace(group, close[0], 1)
    raise ConfigError(f"there is no setting {group} that chooses runs; did you mean {right}?")
