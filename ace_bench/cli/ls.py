"""List run folders in the columns of `ace-bench view`: what each ran, its score, gain, cost and date.

    ace-bench ls
    ace-bench ls results/main task=finer method=ace,base
    ace-bench ls --since 2026-11-26 --sort gain
    ace-bench ls --tag june --note "after the fix"
    ace-bench ls --state stopped --json

The score has its 95% interval, and n is the number of samples. The gain is in percentage points over the score before
adaptation, or else over runs of method=base with the same model, prompts and samples. Dollars that a backbone does not
report are n/a. Dates (UTC) say when a run began. The model is the one that the run asks for, with the calls that other
models answered. The command of a run, also of a finished one, gives it tags and a note: tags=[june,draft] note="after
the fix".

A run without a score is running, stopped (the same command continues it, unless an older version made it), failed, or
damaged. Its line shows how many samples it has learnt from or was tested on, and the score of its first attempts so
far. A copy has the result of another folder of the same run. Folders of one run with different results are
contradictory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import compress
from pathlib import Path

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.core.model_names import count_models, other_models
from ace_bench.core.terminal import shown, write
from ace_bench.core.types import Record
from ace_bench.report.choosing import with_settings
from ace_bench.report.listing import COLUMNS, NOTES, ListedGain, began, cell_texts, gains, model_name, utc_text
from ace_bench.report.progress import Progress
from ace_bench.report.records import RUNNING, STOPPED, Found, RunSummary, find_runs
from ace_bench.report.same_runs import CONTRADICTORY
from ace_bench.report.unfinished import so_far

_ABOUT = ("task", "source", "method", "backbone", "mode", "labels", "seed")
_SPEED = ("tokens_per_s", "call_tokens_per_s")
_SCORE = ("simulated", "metric", "score", "interval", "n", "gain", "gain_over")
_FIGURES = (*_SCORE, "calls", "tokens", "usd", "seconds", *_SPEED, "date")
_MODELS = ("model", "other_models")
_PROGRESS = ("stage", "done", "total", "score_so_far")
_COPY, _OLDER = "copy", "an older version made it, so no command continues it"
_UNKNOWN: Sequence[object] = (None, "", ())
_NUMBERS = ("seed", "n", "gain", "cost", "tokens")
_LARGEST_FIRST = ("score", "n", "gain", "cost", "tokens", "date")
_STATES = ("finished", RUNNING, STOPPED, "failed", CONTRADICTORY, _COPY, "damaged")


def main(arguments: Sequence[str]) -> int:
    """Print a line for each run. Return the exit status."""
    parser = Parser("ls", __doc__)
    parser.add_argument("words", nargs="*", metavar="FOLDER|KEY=VALUE", help="folders (default: results), and settings")
    states = f"only runs in this state: {', '.join(_STATES)}"
    parser.add_argument("--state", choices=_STATES, metavar="STATE", help=states)
    parser.add_argument("--since", metavar="YYYY-MM-DD", help="only runs that began on this day (UTC) or later")
    parser.add_argument("--tag", metavar="TAG", action="append", default=[], help="only runs with this tag")
    parser.add_argument("--note", metavar="WORDS", default="", help="only runs whose note holds these words")
    order = f"order by {', '.join((*COLUMNS, *NOTES))}: words from A, numbers and dates from the largest"
    parser.add_argument("--sort", choices=(*COLUMNS, *NOTES), metavar="COLUMN", help=order)
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, for programs")
    options = parser.parse_args(arguments)
    conditions = [word for word in options.words if "=" in word and not Path(word).is_dir()]
    folders = [Path(word) for word in options.words if word not in conditions] or [Path("results")]
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        raise ConfigError(f"{', '.join(missing)} is not a folder; name folders of runs, or settings as KEY=VALUE")
    since = _day(options.since)
    results = find_runs(*folders)
    rows = [
        row
        for row in _rows(results, conditions)
        if options.state in (None, row["state"])
        and (row["date"] or "") >= since
        and {*options.tag} <= {*(row["tags"] or ())}
        and options.note.casefold() in (row["note"] or "").casefold()
    ]
    _write(_in_order(rows, options.sort), as_json=options.json)
    for problem in results.problems:
        print_line(problem.reason, "yellow")
    if not rows:
        write(f"no runs in {', '.join(map(str, folders))}\n", sys.stderr)
    return 0


def _day(text: str | None) -> str:
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError as error:
        raise ConfigError(f"--since {text} is not a day; write it as in --since 2026-11-27") from error


def _in_order(rows: Sequence[Record], column: str | None) -> Sequence[Record]:
    """Sort rows by a column, the unknown ones last."""
    if column is None:
        return rows
    name = "usd" if column == "cost" else column
    known = [row for row in rows if row[name] not in _UNKNOWN]
    unknown = [row for row in rows if row[name] in _UNKNOWN]
    return [*sorted(known, key=lambda row: row[name], reverse=column in _LARGEST_FIRST), *unknown]


def _write(rows: Sequence[Record], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.writelines(f"{json.dumps(row)}\n" for row in rows)
    elif rows:
        lines = [(*COLUMNS, *NOTES, "folder"), *map(_cells, rows)]
        noted = [any(row[name] for row in rows) for name in NOTES]
        shown_columns = [True] * len(COLUMNS) + [*noted, True]
        lines = [tuple(compress(line, shown_columns)) for line in lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        sides = [">" if column in _NUMBERS else "<" for column in lines[0]]
        for line in lines:
            cells = (f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True))
            write("  ".join(cells).rstrip() + "\n")


def _rows(results: Found, conditions: Sequence[str]) -> Iterator[Record]:
    """Yield the rows of the runs that fulfil some conditions, and without conditions of what cannot be read."""
    copies = {run.folder for run in results.copies}
    runs = sorted((*results.runs, *results.copies), key=lambda run: run.folder) if copies else results.runs
    gained = gains(runs)
    for run in with_settings(runs, conditions) if conditions and runs else runs:
        yield {**_row(run, gained), **({"state": _COPY} if run.folder in copies else {})}
    for damaged in () if conditions else results.damaged:
        row_values = {"state": "damaged", "reason": damaged.reason, "folder": str(damaged.folder)}
        yield dict.fromkeys((*_ABOUT, *_MODELS, *_FIGURES, *NOTES, *_PROGRESS)) | row_values


def _row(run: RunSummary, gained: Mapping[Path, ListedGain]) -> Record:
    """Return the row of a run; ``score`` is in percent, ``seconds`` only known of a finished run."""
    metrics, gain = run.metrics, gained.get(run.folder)
    headline = metrics["headline"] if metrics else {}
    row = {
        **{name: getattr(run, name) for name in _ABOUT},
        "model": run.model or model_name(run),
        "other_models": other_models(run.models),
        "simulated": run.simulated,
        "metric": headline.get("metric"),
        "score": headline.get("after"),
        "interval": headline.get("ci95"),
        "n": headline.get("n"),
        "gain": gain.points if gain else None,
        "gain_over": gain.over if gain else None,
        "state": run.state,
        "reason": run.reason or (_OLDER if run.older and not metrics else ""),
        "calls": sum(sum(roles.values()) for roles in metrics["calls"].values()) if metrics else None,
        "tokens": _sum_tokens(metrics["tokens"]["total"]) if metrics else None,
        "usd": run.value("usd.total"),
        "seconds": round(sum(part.get("wall_s", 0.0) for part in metrics["timing"].values()), 1) if metrics else None,
        **{name: run.value(f"timing.total.{name}") for name in _SPEED},
        "date": utc_text(began(run.folder)),
        "tags": run.notes.tags,
        "note": run.notes.note,
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
    costs = {name: spent[name] for name in ("calls", "usd", *_SPEED)} | {"tokens": _sum_tokens(spent)}
    return {**row, **costs, **progress, "other_models": other_models(models)}


def _sum_tokens(tokens: Mapping[str, int | None]) -> int | None:
    read, written = tokens["in"], tokens["out"]
    return None if read is None or written is None else read + written


def _cells(row: Record) -> tuple[str, ...]:
    return tuple(shown(" ".join(cell.split())) for cell in (*cell_texts(row), row["folder"]))
