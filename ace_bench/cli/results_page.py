"""Write a results folder as a static site: the paper's tables with its numbers, each of ours linked to its run.

    ace-bench results-page results --out site
    ace-bench results-page results --out site --title "Results of our lab"

Runs of real models come first, simulated ones apart. Any web server can serve the site.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders


def main(arguments: Sequence[str]) -> int:
    """Write the site, and print its first page's path."""
    parser = Parser("results-page", __doc__)
    parser.add_argument("folder", type=Path, help="folder with runs")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder for the site")
    parser.add_argument("--title", default="Results", help="the page's title (default: Results)")
    options = parser.parse_args(arguments)
    from ace_bench.report.page.results_page import write_results_page  # slow to import
    from ace_bench.report.tables.results_index import ResultsIndex
    from ace_bench.runners.planning import Composer

    index = ResultsIndex(results=options.folder, compose=Composer(config_folders()))
    if not index.found.runs:
        raise ConfigError(f"there are no runs in {options.folder}; give the folder that holds them")
    for problem in write_results_page(index, options.out, options.title):
        print_line(f"left out: {problem}", "yellow")
    print_line(options.out / "index.html")
    return 0
