"""List run folders: what each ran, how it ended, and its score, cost and time.

    ace-bench ls
    ace-bench ls results/main task=finer method=ace,base
    ace-bench ls --state stopped --json

A run is finished, running, stopped (the same command continues it, unless an older version made it), failed, or
damaged. One that has not finished shows how many samples it has learnt from or was tested on, and the score of its
first attempts so far. A copy has the result of another folder of the same run. Folders of one run with different
results are contradictory. Dollars that a backbone does not report are n/a; the time covers adaptation and evaluation.
The backbone is the model that the run asks for, with the calls that other models answered.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.core.backbones import backbone_name
from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.core.model_names import count_models, other_models
from ace_bench.core.terminal import shown, write
from ace_bench.core.types import Record
from ace_bench.report.choosing import with_settings
from ace_bench.report.progress import Progress
from ace_bench.report.records import RUNNING, STOPPED, Found, RunSummary, find_runs
from ace_bench.report.same_runs import CONTRADICTORY
from ace_bench.report.unfinished import so_far

_UNKNOWN = "n/a"
_ABOUT = ("task", "source", "method", "backbone", "mode", "seed")
_HEADINGS = ("task", "data", "method", "backbone", "mode", "seed", "score", "state", "cost", "time", "folder")
_SPEED = ("tokens_per_s", "call_tokens_per_s")
_FIGURES = ("simulated", "metric", "score", "calls", "usd", "seconds", *_SPEED)
_MODELS = ("model", "other_models")
_PROGRESS = ("stage", "done", "total", "score_so_far")
_COPY, _OLDER = "copy", "an older version made it, so no command continues it"
_STATES = ("finished", RUNNING, STOPPED, "failed", CONTRADICTORY, _COPY, "damaged")


def main(arguments: Sequence[str]) -> int:
    """Print a line for each run. Return the exit status."""
    parser = Parser("ls", __doc__)
    parser.add_argument("words", nargs="*", metavar="FOLDER|KEY=VALUE", help="folders (default: results), and settings")
    parser.add_argument("--state", choices=_STATES, help="only runs in this state")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, for programs")
    options = parser.parse_args(arguments)
    conditions = [word for word in options.words if "=" in word and not Path(word).is_dir()]
    folders = [Path(word) for word in options.words if word not in conditions] or [Path("results")]
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        raise ConfigError(f"{', '.join(missing)} is not a folder; name folders of runs, or settings as KEY=VALUE")
    results = find_runs(*folders)
    rows = [row for row in _rows(results, conditions) if options.state in (None, row["state"])]
    cells = [] if options.json else [_HEADINGS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in rows if options.json else ():
        sys.stdout.write(f"{json.dumps(row)}\n")
    for line in cells if rows else ():
        write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n")
    for problem in results.problems:
        print_line(problem.reason, "yellow")
    if not rows:
        write(f"no runs in {', '.join(map(str, folders))}\n", sys.stderr)
    return 0


def _rows(results: Found, conditions: Sequence[str]) -> Iterator[Record]:
    """Yield the rows of the runs that fulfil some conditions, and without conditions of what cannot be read."""
    copies = {run.folder for run in results.copies}
    runs = sorted((*results.runs, *results.copies), key=lambda run: run.folder) if copies else results.runs
    for run in with_settings(runs, conditions) if conditions and runs else runs:
        yield {**_row(run), **({"state": _COPY} if run.folder in copies else {})}
    for damaged in () if conditions else results.damaged:
        row_values = {"state": "damaged", "reason": damaged.reason, "folder": str(damaged.folder)}
        yield dict.fromkeys((*_ABOUT, *_MODELS, *_FIGURES, *_PROGRESS)) | row_values


def _row(run: RunSummary) -> Record:
    """Return the row of a run; ``score`` is in percent, ``seconds`` only known of a finished run."""
    metrics = run.metrics
    row = {
        **{name: getattr(run, name) for name in _ABOUT},
        "model": run.model or None,
        "other_models": other_models(run.models),
        "simulated": run.simulated,
        "metric": metrics["headline"]["metric"] if metrics else None,
        "score": metrics["headline"]["after"] if metrics else None,
        "state": run.state,
        "reason": run.reason or (_OLDER if run.older and not metrics else ""),
        "calls": sum(sum(roles.values()) for roles in metrics["calls"].values()) if metrics else None,
        "usd": run.value("usd.total"),
        "seconds": round(sum(part.get("wall_s", 0.0) for part in metrics["timing"].values()), 1) if metrics else None,
        **{name: run.value(f"timing.total.{name}") for name in _SPEED},
        "folder": str(run.folder),
        **dict.fromkeys(_PROGRESS),
    }
    if metrics:
        return row
    try:
        spent, score = Progress(run.folder).record(), so_far(run).score
    except StoreError as error:
        return {**row, "state": "damaged", "reason": str(error)}
    models = count_models((run.asked_model(role), model, number) for role, model, number in spent["models"])
    progress = {name: spent[name] for name in ("stage", "done", "total")} | {"score_so_far": score}
    costs = {name: spent[name] for name in ("calls", "usd", *_SPEED)}
    return {**row, **costs, **progress, "other_models": other_models(models)}


def _backbone(row: Record) -> str | None:
    """Return the model, and which other ones answered some of its calls."""
    other_calls = ", ".join(f"{number:,} calls by {model}" for model, number in (row["other_models"] or {}).items())
    name = row["backbone"] and backbone_name(row["backbone"], row["model"])
    return f"{name} ({other_calls})" if other_calls else name


def _cells(row: Record) -> tuple[str, ...]:
    row_shown = {**row, "backbone": _backbone(row)}
    leading = ("-" if row_shown[name] is None else str(row_shown[name]) for name in _ABOUT)
    score, usd, seconds = (row[name] for name in ("score", "usd", "seconds"))
    cost = _UNKNOWN if usd is None else f"${usd:,.2f}"
    time = _UNKNOWN if seconds is None else f"{seconds:,.0f}s"
    mark = " simulated" if row["simulated"] else ""
    latest, state = row["score_so_far"], row["state"]
    score = f"{score:.2f}{mark}" if score is not None else _UNKNOWN if latest is None else f"{latest:.2f} so far{mark}"
    if row["done"]:
        state += f", {row['stage']} {row['done']} of {row['total'] or 'unknown'}"
    return tuple(shown(" ".join(cell.split())) for cell in (*leading, score, state, cost, time, row["folder"]))
