"""Look at the runs of a folder in the browser: a local page, which only this machine can open.

    ace-bench view
    ace-bench view results/main --port 9000
    ace-bench view results --bundle site

Without a folder it shows results/. --bundle writes the same as a static site, which any web server can serve.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.core.errors import ConfigError

if TYPE_CHECKING:
    from ace_bench.report.page.results import Results
    from ace_bench.report.page.server import ViewerServer

_PORT = 8765
_LARGEST_PORT = 65535


def main(arguments: Sequence[str]) -> int:
    """Serve until Ctrl-C, or write the site."""
    parser = Parser("view", __doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results"), help="folder with runs")
    parser.add_argument("--port", type=int, help=f"port on 127.0.0.1 (default: {_PORT}, or a free one)")
    parser.add_argument("--bundle", type=Path, metavar="DIR", help="write a static site instead")
    options = parser.parse_args(arguments)
    from ace_bench.report.page.results import Results  # slow to import, and --help does not need it

    if not options.folder.is_dir():
        raise ConfigError(f"there is no folder {options.folder}; give the folder that holds the runs")
    results = Results(options.folder)
    if options.bundle is not None:
        _write(results, options.bundle)
    else:
        _serve(results, options.port, Console(highlight=False, soft_wrap=True))
    return 0


def _write(results: Results, folder: Path) -> None:
    from ace_bench.report.page.content import write_bundle

    for problem in write_bundle(results, folder):
        print_line(f"left out: {problem}", "yellow")
    print_line(f"{folder}: {_counted(len(results.runs()))}; serve it with any web server.")


def _serve(results: Results, port: int | None, console: Console) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _server(results, port, console) as server:
            console.print(
                f"{_counted(len(results.listing()['runs']))} at {server.address} (Ctrl-C ends it)", markup=False
            )
            server.serve_forever()
    except KeyboardInterrupt:
        Console().print("The viewer has ended.")  # the other console may have been interrupted while it wrote


def _server(results: Results, port: int | None, console: Console) -> ViewerServer:
    from ace_bench.report.page.server import ViewerServer

    if port is not None and not 0 <= port <= _LARGEST_PORT:
        raise ConfigError(f"--port={port} is not a port; use 0 (any free one) to {_LARGEST_PORT}")
    try:
        return ViewerServer(results, _PORT if port is None else port)
    except OSError as error:
        if port is not None:
            raise ConfigError(f"--port={port} cannot be used ({error.strerror}); name another one") from error
        console.print(f"Port {_PORT} is taken, so another one is used.", markup=False)
        return ViewerServer(results, 0)


def _counted(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs:,} runs"
