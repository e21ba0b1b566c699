"""The commands that show runs in a browser: `view` serves the pages that `report` writes."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders
from ace_bench.store.files import write_files

if TYPE_CHECKING:
    from ace_bench.report.page.results import Results
    from ace_bench.report.page.server import ViewerServer

_PORT = 8765
_LARGEST_PORT = 65535
_VIEW_HELP = """Look at the runs of a folder in the browser: a local page, which only this machine can open.

    ace-bench view
    ace-bench view results/main --port 9000

Without a folder it shows results/. The page of a run with a playbook takes votes, comments and edits of bullets. They
change a copy in FOLDER/edited, as `ace-bench playbook feedback` and `import` do. The token in the printed address
allows that. --read-only turns it off. `ace-bench report results --out site` writes the same as a static site.
"""
_REPORT_HELP = """Write runs as one self-contained HTML page, or a folder of runs as a site.

    ace-bench report results/main/finer-ace-embedded-offline/9bcd0c5d6f9b/seed0
    ace-bench report RUN RUN --out comparison.html
    ace-bench report results --out site

A folder that contains run folders selects all of them. Without --out, the page of one run is report.html in its folder,
and the page of several is results/report.html.

A site holds what `ace-bench view` shows: all runs (index.html), and the paper's tables with each of our numbers linked
to its runs (tables.html). Runs of real models come first, simulated ones apart. Any web server can serve it.
"""


def view_runs(arguments: Sequence[str]) -> int:
    """Look at runs in the browser: list, compare, follow."""
    parser = Parser("view", _VIEW_HELP)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results"), help="folder with runs")
    parser.add_argument("--port", type=int, help=f"port on 127.0.0.1 (default: {_PORT}, or a free one)")
    parser.add_argument("--read-only", action="store_true", help="take no feedback on playbooks")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        raise ConfigError(f"there is no folder {options.folder}; give the folder that holds the runs")
    _serve(options.folder, options.port, read_only=options.read_only)
    return 0


def _serve(folder: Path, port: int | None, *, read_only: bool) -> None:
    from ace_bench.report.page.results import Results

    results = Results(folder)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        with _server(results, folder, port, read_only=read_only) as server:
            print_line(f"{_count_runs(len(results.listing()['runs']))} at {server.editing_address} (Ctrl-C ends it)")
            server.serve_forever()
    except KeyboardInterrupt:
        print_line("The viewer has ended.")


def _server(results: Results, folder: Path, port: int | None, *, read_only: bool) -> ViewerServer:
    from ace_bench.report.page.editing import Editing
    from ace_bench.report.page.server import ViewerServer

    if port is not None and not 0 <= port <= _LARGEST_PORT:
        raise ConfigError(f"--port={port} is not a port; use 0 (any free one) to {_LARGEST_PORT}")
    editing = None if read_only else Editing(results, folder)
    serve = partial(ViewerServer, results, make_tables=partial(_tables, results, folder), editing=editing)
    try:
        return serve(_PORT if port is None else port)
    except OSError as error:
        if port is not None:
            raise ConfigError(f"--port={port} cannot be used ({error.strerror}); name another one") from error
        print_line(f"Port {_PORT} is taken, so another one is used.")
        return serve(0)


def _count_runs(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs:,} runs"


def _warn_of(problems: Iterable[str]) -> None:
    for problem in problems:
        print_line(f"left out: {problem}", "yellow")


def write_report(arguments: Sequence[str]) -> int:
    """Write runs as one HTML page, or a folder of runs as a site."""
    parser = Parser("report", _REPORT_HELP)
    parser.add_argument("folder", type=Path, nargs="+", help="run folder, or a folder above some")
    parser.add_argument("--out", type=Path, help="FILE.html to write, or a new folder for a site")
    options = parser.parse_args(arguments)
    from ace_bench.report.page.content import report_page
    from ace_bench.report.page.results import Results

    results = Results(*options.folder)
    _warn_of(damaged.reason for damaged in results.damaged)
    runs = [run.folder for run in results.runs().values()]
    for folder in options.folder:
        if not any(run.is_relative_to(folder) for run in runs):
            raise ConfigError(f"{folder} holds no run; give the folder that a run printed last")
    out = options.out or (runs[0] if len(runs) == 1 else Path("results")) / "report.html"
    if out.suffix == ".html":
        write_files({out: report_page(results)})
        print_line(out)
    else:
        _write_site(results, options.folder, out)
    return 0


def _write_site(results: Results, folders: Sequence[Path], out: Path) -> None:
    from ace_bench.report.page.content import VIEWER, write_site

    if len(folders) > 1:
        raise ConfigError(f"--out {out} names a site, which shows one folder of runs; name a file ending in .html")
    _warn_of(write_site(results, out, tables=_tables(results, folders[0])))
    print_line(out / VIEWER)
    print_line(f"It needs a web server, such as `python3 -m http.server --directory {out}`; FILE.html needs none.")


def _tables(results: Results, folder: Path) -> str:
    from ace_bench.report.page.tables_page import tables_page
    from ace_bench.report.tables.results_index import ResultsIndex
    from ace_bench.runners.planning import Composer

    return tables_page(ResultsIndex(results=folder, compose=Composer(config_folders())), results.runs())
