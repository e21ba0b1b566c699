"""Say how many seeds and samples a comparison needs, from declared assumptions or runs of one's own.

    ace-bench plan                                          a gain of 5 points over a base that does not adapt
    ace-bench plan --gain 3 --sd 2 --seeds 3,5,8 --samples 441
    ace-bench plan --within 5 --base-adapts                 that two methods do not differ by 5 points
    ace-bench plan results/ task=finer method=ace,base      with the spread and the differences of these runs
    ace-bench plan task=finer backbone=gpt_4o_mini          before there are runs, with their estimated cost

Comparisons are simulated, and the test that the tables use decides each. The table has the power of every design: how
often a gain that is there is found. KEY=VALUE[,VALUE] chooses runs. They must be of one method and of its base, as
--base names it. What they say replaces the assumptions, and their cost is added. Where no folder is named and no runs
are there, KEY=VALUE are settings of the method (method=ace) and its base, whose cost is estimated.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ace_bench.cli.arguments import Parser, count, print_line
from ace_bench.cli.tables import chosen_runs, parse_results
from ace_bench.core.errors import ConfigError
from ace_bench.core.terminal import write
from ace_bench.store.files import write_files

if TYPE_CHECKING:
    from ace_bench.report.differences import Settings
    from ace_bench.report.tables.cells import Measured

_SEEDS, _SAMPLES, _SPREADS = (3, 5, 10), (100, 200, 400), (1.5, 4.0)
_MOST = 90.0
"""Percentage points: no larger gain, margin or spread makes sense."""


def main(arguments: Sequence[str]) -> int:
    """Print the table of power. Return the exit status."""
    from ace_bench.report.power import Assumed, Goal, measure_runs
    from ace_bench.report.tables.cells import varies
    from ace_bench.report.tables.formats import markdown
    from ace_bench.report.tables.plan import Plan, plan_page

    options = parse_results(_parser(), arguments)
    gain = options.gain if options.gain is not None else 5.0 if options.within is None else 0.0
    spreads, samples, pilots = dict.fromkeys(options.sd or _SPREADS, ""), options.samples, None
    assumed = Assumed(
        score=options.score, repeated=options.repeated, discordant=options.discordant, base_adapts=options.base_adapts
    )
    if (options.words or options.results) and (pilots := _pilots(options)):
        ours, base = pilots
        measured = measure_runs(ours.points, base.points, base_adapts=varies(base))
        assumed, samples = measured.assumed, samples or [measured.samples]
        if not options.sd and measured.spread is not None and measured.upper is not None:
            spreads = {measured.spread: "as in these runs", measured.upper: "its upper 80% limit"}
    if not 0 < assumed.score + gain < 100:
        raise ConfigError(f"--gain {gain:g} does not fit a base of {assumed.score:g}%; scores end at 0 and 100")
    goal = Goal(gain=gain, within=options.within, tests=options.tests, looks=options.looks)
    plan = Plan(
        assumed=assumed, goal=goal, seeds=options.seeds, samples=samples or _SAMPLES, spreads=spreads, pilots=pilots
    )
    if options.words and pilots is None:
        from ace_bench.cli.plan_cost import cost_note, estimated_costs  # slow to import

        costs = estimated_costs(options.words, options.base or "", plan.seeds, plan.samples, assumed=assumed)
        plan = replace(plan, costs=costs, note=cost_note(costs))
    text = markdown(plan_page(plan))
    if options.out is None:
        write(text)
    else:
        write_files({options.out: text})
        print_line(options.out)
    return 0


def _parser() -> Parser:
    parser = Parser("plan", __doc__)
    parser.add_argument("words", nargs="*", metavar="FOLDER|KEY=VALUE", help="folders of runs, and their settings")
    parser.add_argument("--results", type=Path, help="folder of runs")
    parser.add_argument("--base", help="values that only the base row has (default: method=base)")
    parser.add_argument("--gain", type=_points, help="true gain in points (default: 5, with --within 0)")
    parser.add_argument("--within", type=_points, help="show that the difference lies within so many points")
    parser.add_argument("--seeds", type=_counts, default=_SEEDS, help="seeds of each method (default: 3,5,10)")
    parser.add_argument("--samples", type=_counts, help="samples (default: 100,200,400, or as in the runs)")
    parser.add_argument("--sd", type=_spreads, help="spread of a method over seeds, in points (default: 1.5,4)")
    parser.add_argument("--tests", type=count, default=1, help="tests corrected together by Holm's method (default: 1)")
    parser.add_argument("--looks", type=count, default=1, help="looks at the results in all (default: 1)")
    parser.add_argument("--out", type=Path, help="file to write, instead of the standard output")
    group = parser.add_argument_group("assumed where no runs are named, in percent")
    group.add_argument("--score", type=_points, default=55.0, help="score of the base (default: 55)")
    group.add_argument("--repeated", type=_points, default=35.0, help="samples on which two seeds differ (default: 35)")
    group.add_argument(
        "--discordant", type=_points, default=38.0, help="samples on which method and base differ (default: 38)"
    )
    group.add_argument("--base-adapts", action="store_true", help="the base adapts, too, with the same seeds")
    return parser


def _pilots(options: argparse.Namespace) -> tuple[Measured, Measured] | None:
    """Return the cells of the method and its base, ``None`` where no folder is named and no runs are there.

    Raises ``ConfigError`` unless there is one of each.
    """
    from ace_bench.report.tables.own_tables import Layout, own_tables

    names_folder = options.results is not None or any("=" not in word for word in options.words)
    try:
        runs = chosen_runs(options, or_without=True)
    except ConfigError:
        if names_folder:
            raise
        return None
    tables = own_tables(runs, Layout(base=options.base or ""))
    pairs = {
        table.name_of(cell): (
            cell,
            base,
            {**table.rows[cell.place.row].fields, **table.columns[cell.place.column].fields},
        )
        for table in tables
        for cell in table.measured
        if cell.points and (base := table.base_of(cell.place.row, cell.place.column)) is not None and base.points
    }
    if not pairs and not names_folder:
        return None
    if not pairs:
        raise ConfigError("no finished runs of a method and its base are there; name the base's row by --base")
    if len(pairs) > 1:
        raise ConfigError(_choice({name: fields for name, (*_, fields) in pairs.items()}))
    cell, base, _ = next(iter(pairs.values()))
    return cell, base


def _choice(pairs: Mapping[str, Settings]) -> str:
    """Say which comparisons there are, and by which settings one is chosen."""
    from ace_bench.report.differences import value_text
    from ace_bench.report.tables.own_tables import METRIC, SAMPLES

    paths = dict.fromkeys(path for fields in pairs.values() for path in fields if path not in (METRIC, SAMPLES))
    differing = [path for path in paths if len({value_text(fields.get(path)) for fields in pairs.values()}) > 1]
    choice = " ".join(f"{path}=...{',base' if path == 'method' else ''}" for path in differing)
    one = f"choose one by {choice}" if choice else "name the folder of one"
    return f"the runs hold several comparisons: {', '.join(pairs)}; {one}"


def _points(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _MOST:
        raise argparse.ArgumentTypeError(f"{text} must be a number from 0 to {_MOST:g}")
    return value


def _spreads(text: str) -> list[float]:
    return [_points(part) for part in text.split(",")]


def _counts(text: str) -> list[int]:
    return [count(part) for part in text.split(",")]
