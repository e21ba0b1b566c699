"""The commands that show runs in a browser: `view`, `report` and `results-page`."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders
from ace_bench.store.files import write_files

if TYPE_CHECKING:
    from ace_report.page.results import Results
    from ace_report.page.server import ViewerServer

_PORT = 8765
_LARGEST_PORT = 65535
_VIEW_HELP = """Look at the runs of a folder in the browser: a local page, which only this machine can open.

    ace-bench view
    ace-bench view results/main --port 9000
    ace-bench view results --bundle site

Without a folder it shows results/. --bundle writes the same as a static site, which any web server can serve.
"""
_REPORT_HELP = """Write the report of one or several runs as one self-contained HTML page.

    ace-bench report results/main/finer-ace-embedded-offline/9bcd0c5d6f9b/seed0
    ace-bench report RUN RUN --out comparison.html

A folder that contains run folders selects all of them. Without --out, the page of one run is report.html in its folder,
and the page of several is results/report.html.
"""
_SITE_HELP = """Write a results folder as a static site: the paper's tables with its numbers, ours linked to their runs.

    ace-bench results-page results --out site
    ace-bench results-page results --out site --title "Results of our lab"

Runs of real models come first, simulated ones apart. Any web server can serve the site.
"""


def view_runs(arguments: Sequence[str]) -> int:
    """Look at runs in the browser: list, compare, follow."""
    parser = Parser("view", _VIEW_HELP)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results"), help="folder with runs")
    parser.add_argument("--port", type=int, help=f"port on 127.0.0.1 (default: {_PORT}, or a free one)")
    parser.add_argument("--bundle", type=Path, metavar="DIR", help="write a static site instead")
    options = parser.parse_args(arguments)
    from ace_report.page.content import write_bundle  # slow to import, and --help does not need it
    from ace_report.page.results import Results

    if not options.folder.is_dir():
        raise ConfigError(f"there is no folder {options.folder}; give the folder that holds the runs")
    results = Results(options.folder)
    if options.bundle is None:
        _serve(results, options.port)
    else:
        _warn_of(write_bundle(results, options.bundle))
        print_line(f"{options.bundle}: {_count_runs(len(results.runs()))}; serve it with any web server.")
    return 0


def _serve(results: Results, port: int | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        with _server(results, port) as server:
            print_line(f"{_count_runs(len(results.listing()['runs']))} at {server.address} (Ctrl-C ends it)")
            server.serve_forever()
    except KeyboardInterrupt:
        print_line("The viewer has ended.")


def _server(results: Results, port: int | None) -> ViewerServer:
    from ace_report.page.server import ViewerServer

    if port is not None and not 0 <= port <= _LARGEST_PORT:
        raise ConfigError(f"--port={port} is not a port; use 0 (any free one) to {_LARGEST_PORT}")
    try:
        return ViewerServer(results, _PORT if port is None else port)
    except OSError as error:
        if port is not None:
            raise ConfigError(f"--port={port} cannot be used ({error.strerror}); name another one") from error
        print_line(f"Port {_PORT} is taken, so another one is used.")
        return ViewerServer(results, 0)


def _count_runs(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs:,} runs"


def _warn_of(problems: Iterable[str]) -> None:
    for problem in problems:
        print_line(f"left out: {problem}", "yellow")


def write_report(arguments: Sequence[str]) -> int:
    """Write runs as one HTML page."""
    parser = Parser("report", _REPORT_HELP)
    parser.add_argument("folder", type=Path, nargs="+", help="run folder, or a folder above some")
    parser.add_argument("--out", type=Path, help="file to write")
    options = parser.parse_args(arguments)
    from ace_report.page.content import report_page
    from ace_report.page.results import Results

    results = Results(*options.folder)
    _warn_of(damaged.reason for damaged in results.damaged)
    runs = [run.folder for run in results.runs().values()]
    for folder in options.folder:
        if not any(run.is_relative_to(folder) for run in runs):
            raise ConfigError(f"{folder} holds no run; give the folder that a run printed last")
    out = options.out or (runs[0] if len(runs) == 1 else Path("results")) / "report.html"
    write_files({out: report_page(results)})
    print_line(out)
    return 0


def write_site(arguments: Sequence[str]) -> int:
    """Write a folder of runs as a site beside the paper's numbers."""
    parser = Parser("results-page", _SITE_HELP)
    parser.add_argument("folder", type=Path, help="folder with runs")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder for the site")
    parser.add_argument("--title", default="Results", help="the page's title (default: Results)")
    options = parser.parse_args(arguments)
    from ace_bench.runners.planning import Composer
    from ace_report.page.results_page import write_results_page
    from ace_report.tables.results_index import ResultsIndex

    index = ResultsIndex(results=options.folder, compose=Composer(config_folders()))
    if not index.found.runs:
        raise ConfigError(f"there are no runs in {options.folder}; give the folder that holds them")
    _warn_of(write_results_page(index, options.out, options.title))
    print_line(options.out / "index.html")
    return 0
