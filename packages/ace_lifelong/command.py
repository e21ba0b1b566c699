"""Tables, matrices and figures of runs of mode=lifelong.

They show what each stage leaves, and what it takes from the others.

    ace-bench lifelong results/main
    ace-bench lifelong results/main method=ace,dc --out life

Prints methods and orders, and writes lifelong.md (also .tex) with stages and matrices, lifelong.csv (a line a method
and order), tests.csv (a line a run, test and stage) and, with matplotlib, figures as PDF and PNG: retention,
and the growth of contexts and costs. Runs on other samples, stages or models are in tables of their own.
KEY=VALUE[,VALUE] chooses runs by their settings. docs/lifelong.md explains the measures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.core.errors import AceBenchError
from ace_bench.store.files import write_files
from ace_lifelong.figures import drawings
from ace_lifelong.lives import Stream, group_lives
from ace_lifelong.tables import METHODS, ORDERS, csv_of_measures, csv_of_tests, page_of
from ace_report.commands.results import chosen_runs
from ace_report.figures.draw import write_drawings
from ace_report.tables.formats import markdown
from ace_report.tables.latex import latex

_DRAWS = "matplotlib"


def main(arguments: Sequence[str]) -> int:
    """Write the tables and figures, print the tables, and return the exit status."""
    parser = Parser("lifelong", __doc__)
    parser.add_argument("words", nargs="*", metavar="FOLDER|KEY=VALUE", help="folders of runs (results), and settings")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="where to write (default: lifelong in the first folder)"
    )
    parser.set_defaults(results=None, paper=None, differences=False)
    options = parser.parse_intermixed_args(arguments)
    folders = [Path(word) for word in options.words if Path(word).is_dir()] or [Path("results")]
    try:
        files = _write(group_lives(chosen_runs(options)), options.out or folders[0] / "lifelong")
    except AceBenchError as error:
        print_line(f"error: {error}", "red")
        return 2
    for file in files:
        print_line(file)
    return 0


def _write(streams: Sequence[Stream], out: Path) -> list[Path]:
    pages = [page_of(stream) for stream in streams]
    text = "\n".join(map(markdown, pages))
    for place, page in enumerate(pages):  # methods and orders; the files also hold stages and matrices
        short = tuple(grid for grid in page.grids if grid.title in (METHODS, ORDERS))
        sys.stdout.write("\n" * bool(place) + markdown(replace(page, grids=short)))
    tables = {"lifelong.md": text, "lifelong.tex": latex(pages)}
    tables |= {"lifelong.csv": csv_of_measures(streams), "tests.csv": csv_of_tests(streams)}
    files = write_files({out / name: content for name, content in tables.items()})
    if find_spec(_DRAWS) is None:
        print_line("Without matplotlib there are no figures: pip install 'ace-bench[analysis]'.", "yellow")
        return files
    figures = (
        (out / (f"{name}_stream{number}" if len(streams) > 1 else name), drawing)
        for number, stream in enumerate(streams, 1)
        for name, drawing in drawings(stream)
    )
    return files + write_drawings(figures)
