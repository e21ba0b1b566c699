"""Check what results mean: playbooks elsewhere, placebos, contamination.

    ace-bench validity transfer task=finer seed=0,1,2 --to task=formula
    ace-bench validity placebo task=finer --other formula
    ace-bench validity contamination task=finer,formula

Settings are as for `ace-bench run`; seed=0,1,2 names several seeds. --dry-run lists the runs, --estimate their cost.
The runs are ordinary ones in results/validity: the same command again continues, and finished runs cost nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ace_bench.api import Run
from ace_bench.cli.arguments import Parser
from ace_bench.contrib.validity.asking import Contamination
from ace_bench.contrib.validity.gains import Placebo, Transfer
from ace_bench.contrib.validity.planning import Laboratory, PlannedRun, Request, Study
from ace_bench.core.console import Console
from ace_bench.core.errors import AceBenchError, Stopped
from ace_bench.core.program import read_env_file
from ace_bench.core.terminal import write
from ace_bench.report.escaping import csv_of
from ace_bench.report.records import marks_of
from ace_bench.report.tables.cells import FEW_SEEDS
from ace_bench.report.tables.formats import Page, markdown
from ace_bench.report.tables.grids import Grid, coverage_notes, number, p_value
from ace_bench.report.tables.latex import latex
from ace_bench.store.call_log import Account
from ace_bench.store.files import write_files

KINDS: Mapping[str, Callable[[Request], Study]] = {
    kind.__name__.lower(): kind for kind in (Transfer, Placebo, Contamination)
}

_EMPTY = "A playbook that is not there yet counts as empty."


def main(arguments: Sequence[str]) -> int:
    """Plan, estimate or make the runs of a check and print its table; returns the exit status."""
    options = _options(arguments)
    console = Console(stderr=True)
    read_env_file()
    try:
        study = KINDS[options.kind](Request.read(options.settings, vars(options)))
        laboratory = Laboratory(say=lambda line: console.print(line, style="dim", markup=False, soft_wrap=True))
        if options.dry_run or options.estimate:
            _show_plan(study.runs, laboratory if options.estimate else None)
            return 0
        page, csv = _table(options, study, laboratory)
    except Stopped as error:
        console.print(f"{error} The same command continues.", markup=False, soft_wrap=True)
        return 3
    except AceBenchError as error:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return 2
    write(markdown(page))
    if options.out:
        forms = {".md": markdown(page), ".tex": latex([page])}
        write_files({options.out: forms.get(options.out.suffix, csv)})
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser("validity", __doc__)
    kinds = "; ".join(f"{name}: {kind.__doc__}" for name, kind in KINDS.items())
    parser.add_argument("kind", choices=[*KINDS], metavar="KIND", help=kinds)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings of the runs")
    parser.add_argument("--dry-run", action="store_true", help="list the runs, and make none")
    parser.add_argument("--estimate", action="store_true", help="list the runs with their cost, and make none")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table, too: .md, .tex or .csv")
    parser.add_argument("--to", action="append", default=[], metavar="'KEY=VALUE ...'", help="transfer: a target")
    parser.add_argument("--other", metavar="TASK", help="placebo: the task of the other playbook")
    return parser.parse_intermixed_args(arguments)


def _show_plan(planned: Sequence[PlannedRun], laboratory: Laboratory | None) -> None:
    """Print the runs and, with a laboratory, their cost."""
    totals = [Account()] * 3
    for run in planned:
        line = run.command
        if laboratory is not None:
            costs = laboratory.cost(run)
            totals = [total + cost for total, cost in zip(totals, costs, strict=True)]
            line = f"{f'{_range(_calls, costs)} calls' if costs[-1].calls else 'finished'}  {line}"
        write(f"{line}\n")
    if laboratory is not None:
        calls, dollars = _range(_calls, totals), _range(_dollars, totals)
        tokens = _range(lambda total: number(total.usage.tokens), totals)
        write(f"{len(planned)} runs: {calls} calls, {tokens} tokens, {dollars}. {_EMPTY}\n")


def _range(show: Callable[[Account], str], costs: Sequence[Account]) -> str:
    """Return low, typical and high cost, those that read the same once."""
    return " to ".join(dict.fromkeys(map(show, costs)))


def _calls(account: Account) -> str:
    return f"{account.calls:,}"


def _dollars(account: Account) -> str:
    return "n/a" if account.usage.usd is None else f"${account.usage.usd:,.2f}"


def _reservation(runs: Sequence[Run]) -> list[str]:
    """Say that a playbook or two are not the method."""
    has_few_seeds = len({run.seed for run in runs if run.metrics["context"]["items"]}) in range(1, FEW_SEEDS)
    return [f"Fewer than {FEW_SEEDS} seeds: intervals and p are about these playbooks only."] if has_few_seeds else []


def _table(options: argparse.Namespace, study: Study, laboratory: Laboratory) -> tuple[Page, str]:
    """Make the runs and return their table, and its CSV."""
    runs: list[Run] = []

    def make(planned: PlannedRun) -> Run:
        runs.append(laboratory.make(planned))
        return runs[-1]

    corrected = study.corrected_rows(make)
    rows_found = [(*row.cells, None if row.p is None else p_value(row.p)) for row in corrected]
    sample = any(run.source == "sample" for run in runs)
    mark = marks_of(simulated=any(run.simulated for run in runs), source="sample" if sample else "")
    settings = [word for word in options.settings if not word.startswith(("results=", "backbone."))]
    rows = tuple(tuple("n/a" if value is None else str(value) for value in row) for row in rows_found)
    notes = (*study.verdict(corrected), study.note, *_reservation(runs))
    page = Page(
        title=" ".join(filter(None, ("Validity:", options.kind, *settings, mark))),
        label=f"validity-{options.kind}",
        grids=(Grid(title=str(KINDS[options.kind].__doc__), header=study.columns, rows=rows),),
        notes=(*notes, *coverage_notes(study.gains, study.wide_scores)),
    )
    return page, csv_of([dict(zip(study.columns, row, strict=True)) for row in rows_found])
