"""Draw a metric of runs against a setting, as PDF and PNG.

    ace-bench figure results/ --x threshold
    ace-bench figure results/ task=finer --x epochs --y usd.total --out figures

Points are means over seeds, with 95% intervals of scores. Each line is one
combination of the other settings in which the runs differ; --lines names those
that come first in its name. Runs without the setting are dotted levels.
Simulated and real runs are in figures of their own, and tasks in panels of
their own. KEY=VALUE[,VALUE] chooses runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.cli.chosen_runs import chosen_runs


def main(arguments: Sequence[str]) -> int:
    """Write the figures and print their paths; return the exit status."""
    parser = Parser("figure", __doc__)
    parser.add_argument("runs", nargs="*", metavar="FOLDER|KEY=VALUE", help="folders of runs (default: results)")
    parser.add_argument("--x", required=True, help="the setting along x, by path or last part")
    parser.add_argument("--y", default="score", help="score, or a metric (default: score)")
    parser.add_argument("--lines", default="method", help="settings, separated by commas (default: method)")
    parser.add_argument("--out", type=Path, default=Path("results/figures"), help="folder (default: results/figures)")
    options = parser.parse_intermixed_args(arguments)
    from ace_bench.report.choosing import words
    from ace_bench.report.figures.own_runs import write_sweep_figures  # slow to import, and --help does not need it

    runs = chosen_runs(options.runs, Console(stderr=True))
    console = Console(highlight=False, soft_wrap=True)
    for file in write_sweep_figures(runs, options.out, x=options.x, y=options.y, lines=words(options.lines, "--lines")):
        console.print(str(file), markup=False)
    return 0
