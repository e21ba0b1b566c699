"""Make figures from finished runs, as PDF and PNG: the paper's, or with --x a metric of your own against a setting.

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
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ace_bench.cli.arguments import print_line
from ace_bench.cli.results import chosen_runs, parser_of, read_style, write_paper_results
from ace_bench.core.errors import ConfigError

if TYPE_CHECKING:
    from ace_bench.report.tables.results_index import Style


def main(arguments: Sequence[str]) -> int:
    """Make figures and return the exit status."""
    parser = parser_of("figure", __doc__)
    own = parser.add_argument_group("figures of your own runs")
    own.add_argument("--x", help="the setting along x, by path or last part")
    own.add_argument("--y", help="score, or a metric (default: score)")
    own.add_argument("--lines", help="settings, separated by commas (default: method)")
    parser.add_argument("--width", choices=["column", "page"], help="with style=paper (default: what fits)")
    options = parser.parse_intermixed_args(arguments)
    styles = [word.removeprefix("style=") for word in options.words if word.startswith("style=")]
    options.words = [word for word in options.words if not word.startswith("style=")]
    style = read_style(styles[-1] if styles else "screen")
    if all(value is None for value in (options.x, options.y, options.lines)):
        return write_paper_results("figure", options, style=style, width=options.width or "")
    return _write_own(options, style)


def _write_own(options: argparse.Namespace, style: Style) -> int:
    """Write the figures and print their paths."""
    from ace_bench.report.choosing import words
    from ace_bench.report.figures.own_runs import write_sweep_figures
    from ace_bench.report.figures.style import Sheet

    if options.x is None:
        raise ConfigError("a figure of your own runs needs the setting along x; add --x SETTING")
    runs = chosen_runs(options)
    out, lines = options.out or Path("results/figures"), words(options.lines or "method", "--lines")
    sheet = Sheet(style=style, width=options.width or "")
    for file in write_sweep_figures(runs, out, x=options.x, y=options.y or "score", lines=lines, sheet=sheet):
        print_line(file)
    return 0
