"""Reproduce a result of the paper: make the missing runs, then its table.

    ace-bench reproduce --list                             the results, and how many runs each needs
    ace-bench reproduce table=2 --estimate                 its cost in calls, tokens and dollars
    ace-bench reproduce table=2 backbone=embedded          rehearse it for free, on sample data
    ace-bench reproduce table=2 seed=0,1,2 budget.usd=20   run it, with the paper's model, in three seeds
    ace-bench reproduce table=2 tasks=finer methods=base,ace    a part of it, by the tasks and methods of its runs
    ace-bench reproduce experiment=seed_000 backbone=embedded   what a founding document beside the paper claims
    ace-bench reproduce experiment=field --dry-run         all methods on all tasks
    ace-bench reproduce table=all backbone=vllm backbone.url=http://localhost:8000 backbone.model=NAME

Settings are the same as for `ace-bench run` and go to every run; METHOD:SETTING and TASK:SETTING go to the runs of
a method or task, such as gepa:method.max_metric_calls=20 or appworld:limit=5, BACKBONE:SETTING to the rows that
name it for a role, such as gpt_5_1:roles.reflector.model=NAME.
Finished runs are skipped and interrupted ones continued: re-running completes
what is missing. If one run fails, the others go on; the exit status is then 1, and 130 after Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Sequence

from ace_bench.cli.arguments import DIFFERENCES, LOOKS, Parser, count


def main(arguments: Sequence[str]) -> int:
    """Reproduce what the arguments name. Return the exit status."""
    parser = Parser("reproduce", __doc__)
    parser.add_argument(
        "settings",
        nargs="*",
        help="table=..., figure=..., experiment=..., seed=..., settings of a run, METHOD:SETTING, TASK:SETTING",
    )
    parser.add_argument("--list", action="store_true", help="list the paper's results and how many runs each needs")
    parser.add_argument("--estimate", action="store_true", help="what the runs would cost; nothing is run")
    parser.add_argument("--dry-run", action="store_true", help="the state of each run and its command; nothing is run")
    parser.add_argument("--only-missing", action="store_true", help="do not continue runs that were begun")
    parser.add_argument("--differences", action="store_true", help=DIFFERENCES)
    parser.add_argument("--looks", type=count, default=1, help=LOOKS)
    parser.add_argument(
        "--jobs", type=count, help="runs at a time (default: 1; with the embedded backbone as many as cores)"
    )
    options = parser.parse_intermixed_args(arguments)

    from ace_bench.cli.reproducing.session import reproduce  # slow to import, and --help does not need it

    return reproduce(options)
