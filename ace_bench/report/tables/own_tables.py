"""Tables of a user's own runs: any settings or metrics as rows and columns, averaged only over seeds."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import require
from ace_bench.report.choosing import (
    SAMPLE_SETTINGS,
    SCORE,
    check_metric,
    sample_keys,
    sample_names,
    setting_path,
    unit_of,
)
from ace_bench.report.differences import (
    CHOICES,
    Settings,
    all_settings,
    differences,
    differing_paths,
    setting_text,
    short_names,
    value_text,
)
from ace_bench.report.records import STOPPED, RunSummary, latest_repetitions, marks_of
from ace_bench.report.tables.cells import Measured, Place, measure
from ace_bench.report.tables.grids import column_name
from ace_bench.report.tables.table import MISSING, Cells, Heading, Table, compared_with
from ace_bench.report.tables.unfinished import Planned, continuing

if TYPE_CHECKING:
    import pandas as pd

METRIC, SEED, SAMPLES = "metric", "seed", "samples"
"""The names that layouts have for the metric, the seed and the set of tested samples."""
_BASE, _DIGEST = "base", "digest"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a table shows: ``rows`` and ``columns`` are settings by path or last part, or ``metric``.

    ``metrics`` are ``score``, the headline metric of each task, or what ``RunSummary.value`` takes. With ``over_seeds``
    runs that differ only in the seed share a cell. ``base`` names the base row by values (``base``,
    ``method=ace,threshold=0.5``); "" is the row of ``method=base``, if there is one. Tests are corrected for ``looks``
    at the results while runs are added.
    """

    rows: tuple[str, ...] = ("method",)
    columns: tuple[str, ...] = ("task",)
    metrics: tuple[str, ...] = (SCORE,)
    over_seeds: bool = True
    base: str = ""
    looks: int = 1


def own_tables(runs: Iterable[RunSummary], layout: Layout) -> list[Table]:
    """Return a table for each kind of run. Raises ``ConfigError`` if a setting, metric or base row does not exist."""
    require("a table or figure of your own runs", "pandas")
    counted = latest_repetitions(runs, _repetition_key)
    latest = sorted(counted.values(), key=lambda run: run.folder)
    layout = _check_layout(layout, latest)
    frame = _frame_of(latest, layout.metrics)
    return [_Pivot(kind, layout).table() for _, kind in frame.groupby(["simulated", "source"], sort=False)]


def _frame_of(runs: Sequence[RunSummary], metrics: Sequence[str]) -> pd.DataFrame:
    """Return a row for each run and metric. ``settings`` holds the settings of the run by path, and the metric."""
    import pandas as pd

    rows = [
        {
            "run": run,
            "simulated": run.simulated,
            "source": run.source,
            METRIC: metric,
            "settings": {**settings, METRIC: metric, _DIGEST: run.digest},
        }
        for run, settings in zip(runs, all_settings(runs), strict=True)
        for metric in metrics
    ]
    return pd.DataFrame(rows)


def title_of(values: Settings, names: Mapping[str, str]) -> str:
    """Return the values of settings in one line. ``names`` are short names of their paths."""
    return " ".join(_part(path, value, names) for path, value in values.items() if value != MISSING)


def metric_title(metric: str) -> str:
    """Return a metric in words, with its unit unless the words name it: ``usd total``, ``timing adapt wall s``."""
    return column_name(metric.replace(".", " "))


class _Pivot:
    """The rows, columns and cells of runs of one kind."""

    def __init__(self, frame: pd.DataFrame, layout: Layout) -> None:
        self._layout = layout
        self._runs: list[RunSummary] = [*frame[frame[METRIC] == layout.metrics[0]]["run"]]
        self._frame = _split_by_samples(frame, sample_keys(self._runs), (*layout.columns, "task"))
        self._split = any(SAMPLES in settings for settings in self._frame["settings"])
        self._columns = (*layout.columns, *([SAMPLES] if self._split else []))
        self._added = self._ambiguous()
        self._rows = (*layout.rows, *self._added)
        self._names = short_names(dict.fromkeys((*self._rows, *self._columns)))
        self._cells = dict([*self._frame.groupby([self._named(self._rows), self._named(self._columns)])])

    def _named(self, paths: Sequence[str]) -> pd.Series[str]:
        """Return the name of the row or the column of each line of the frame."""
        return self._frame["settings"].map(lambda settings: _name(settings, paths))

    def table(self) -> Table:
        rows, columns, run = self._values(self._rows), self._values(self._columns), self._runs[0]
        measured = {row: {column: self._cell(row, column) for column in columns} for row in rows}
        base = self._base(rows)
        first = {base: measured[base]} if base else {}  # the base row stands first
        cells = compared_with({**first, **measured}, base, looks=self._layout.looks)
        return Table(
            title=" ".join(filter(None, (self._title(), marks_of(simulated=run.simulated, source=run.source)))),
            label="",
            about={"simulated": run.simulated, "source": run.source},
            names=tuple(self._names[path] for path in self._rows),
            rows={row: Heading(texts=tuple(map(value_text, rows[row].values())), fields=rows[row]) for row in cells},
            columns={column: self._heading(values, column, cells) for column, values in columns.items()},
            cells=cells,
            looks=self._layout.looks,
            base=base,
            base_title=title_of(rows[base], self._names) if base else "",
            notes=tuple(self._notes(has_base=bool(base), several=len(rows) > 1)),
            continuing=continuing("", [Planned(plan=None, seed=run.seed, run=run) for run in self._unfinished()]),
        )

    def _unfinished(self) -> list[RunSummary]:
        """Return the runs that a command continues."""
        return [run for run in self._runs if run.state == STOPPED and not run.older]

    def _title(self) -> str:
        metrics = ", ".join(metric_title(metric) for metric in self._layout.metrics)
        names = short_names(dict.fromkeys((*self._layout.rows, *self._layout.columns)))
        layout = " and ".join(name for path, name in names.items() if path != METRIC)
        return f"{metrics[:1].upper()}{metrics[1:]} by {layout}: {differences(self._runs).common}".removesuffix(": ")

    def _heading(self, values: Settings, column: str, cells: Cells) -> Heading:
        """Return the header of a column. The score has the name that its task gives it, if there is one."""
        metrics = {line[column].metric for line in cells.values()} - {""}
        metric = "" if METRIC in values else metric_title(metrics.pop()) if len(metrics) == 1 else SCORE
        return Heading(texts=(" ".join(filter(None, (title_of(values, self._names), metric))),), fields=values)

    def _notes(self, *, has_base: bool, several: bool) -> Iterator[str]:
        if several and not has_base:
            yield "No row is the base, so no difference is tested: name one by --base."
        if self._added:
            names = ", ".join(self._names[path] for path in self._added)
            yield f"Runs also differ in {names}: they have rows of their own, since only seeds are averaged."
        shown_paths = (*self._rows, *self._columns, METRIC, SEED)
        paths = (path for path in differing_paths(all_settings(self._runs)) if path not in shown_paths)
        if between := [path for path in paths if not path.startswith(SAMPLE_SETTINGS)]:
            yield f"Runs of different columns also differ in {', '.join(short_names(between).values())}."
        if self._split:
            yield "Scores of runs that tested different samples cannot be compared: they have columns of their own."

    def _ambiguous(self) -> tuple[str, ...]:
        """Return the settings in which runs of one cell differ: a cell never averages over them."""
        layout, differing = self._layout, dict[str, None]()
        for _, group in _by_texts(self._frame, (*layout.rows, *self._columns)):
            differing |= dict.fromkeys(
                differing_paths([{**run_settings, _DIGEST: ""} for run_settings in group["settings"]])
            )
        added = tuple(path for path in differing if not (path == SEED and layout.over_seeds) and path != METRIC)
        # Runs of one seed that no setting tells apart differ in what only the digest covers, such as a model's version.
        paths = (*layout.rows, *self._columns, *added, METRIC, SEED)
        has_many = any(len(group) > 1 for _, group in _by_texts(self._frame, paths))
        return (*added, _DIGEST) if has_many else added

    def _values(self, paths: Sequence[str]) -> dict[str, Settings]:
        """Return the values of these settings by the names of rows or columns, sorted."""
        firsts = self._frame[~self._named(paths).duplicated()]["settings"]
        values = [{path: settings.get(path, MISSING) for path in paths} for settings in firsts]
        order = {metric: index for index, metric in enumerate(self._layout.metrics)}
        values.sort(key=lambda settings: [_order(path, value, order) for path, value in settings.items()])
        return {_name(settings, paths): settings for settings in values}

    def _cell(self, row: str, column: str) -> Measured:
        if (row, column) not in self._cells:
            return Measured(place=Place(row=row, column=column, unit=""), state=MISSING)
        runs_of_cell = self._cells[row, column]
        runs: list[RunSummary] = sorted(runs_of_cell["run"], key=lambda run: run.seed)
        metric, done = runs_of_cell[METRIC].iloc[0], [run for run in runs if run.finished]
        if metric == SCORE and done:
            metric = str(done[0].metrics["headline"]["metric"])
        drawn = not self._layout.over_seeds or any(run.seeded for run in done)
        seeds = 0 if drawn else len({run.seed for run in self._runs})
        cell = measure(Place(row=row, column=column, unit=unit_of(metric)), None, metric, runs, seeds)
        waiting = len(cell.unfinished)
        if cell.runs and waiting:
            cell = replace(cell, notes=(*cell.notes, f"{waiting} of {len(runs)} runs not finished"))
        return cell

    def _base(self, rows: Mapping[str, Settings]) -> str:
        """Return the name of the base row. Raises ``ConfigError`` if ``Layout.base`` does not name one row."""
        conditions = [text.strip() for text in (self._layout.base or f"method={_BASE}").split(",")]
        names = short_names(self._rows)
        fitting = [
            row for row, values in rows.items() if all(_holds(condition, values, names) for condition in conditions)
        ]
        if len(rows) == 1:
            return ""
        if len(fitting) == 1:
            return fitting[0]
        if not self._layout.base:
            return ""
        rows_text = "; ".join(fitting or rows)
        problem = "fits several rows" if fitting else "fits no row"
        raise ConfigError(f"--base {self._layout.base} {problem}: {rows_text}; give values that only one row has")


def _check_layout(layout: Layout, runs: Sequence[RunSummary]) -> Layout:
    """Give the settings of a layout by their paths, and put several metrics into the columns."""
    settings = [{**run_settings, METRIC: ""} for run_settings in all_settings(runs)]
    rows = tuple(setting_path(name, settings) for name in layout.rows)
    columns = tuple(setting_path(name, settings) for name in layout.columns)
    repeated = [path for path in rows if path in columns]
    if repeated:
        raise ConfigError(f"{repeated[0]} is in rows and columns; leave it out of one of them")
    for metric in layout.metrics:
        check_metric(metric, runs)
    if len(layout.metrics) > 1 and METRIC not in (*rows, *columns):
        columns = (*columns, METRIC)
    return replace(layout, rows=rows, columns=columns)


def _repetition_key(run: RunSummary) -> tuple[object, ...]:
    """Return what the repetitions of a run (``resume=false``) share."""
    return run.digest, run.task, run.method, run.backbone, run.mode, run.seed, digest_of(run.identity)


def _by_texts(frame: pd.DataFrame, paths: Sequence[str]) -> Iterable[tuple[Hashable, pd.DataFrame]]:
    """Return the parts of a frame whose runs have the same values of some settings."""
    return frame.groupby([frame["settings"].map(partial(_text, path=path)) for path in paths], sort=False)


def _split_by_samples(frame: pd.DataFrame, keys: Mapping[Path, str], paths: Sequence[str]) -> pd.DataFrame:
    """Name the tested samples, by their ``keys``, in those columns whose runs of one task tested different ones."""
    tested, settings = frame["run"].map(lambda run: keys[run.folder]), frame["settings"].copy()
    for _, group in _by_texts(frame, paths):
        sets = {
            str(key): _shared_settings([*column_settings])
            for key, column_settings in group["settings"].groupby(tested, sort=False)
        }
        names = sample_names(sets) if len(sets) > 1 else {}
        for index in group.index if names else ():
            settings[index] = {**settings[index], SAMPLES: names[tested[index]]}
    return frame.assign(settings=settings)


def _name(settings: Settings, paths: Sequence[str]) -> str:
    return " · ".join(_text(settings, path) for path in paths)


def _text(settings: Settings, path: str) -> str:
    return value_text(settings.get(path, MISSING))


def _shared_settings(settings: Sequence[Settings]) -> Settings:
    """Return the settings that runs have in common."""
    first, *settings_of_others = settings
    return {
        path: value
        for path, value in first.items()
        if all(run_settings.get(path) == value for run_settings in settings_of_others)
    }


def _order(path: str, value: Any, metrics: Mapping[str, int]) -> tuple[int, float, str]:
    """Keep metrics in the given order. Sort other values: null, numbers, texts, missing values."""
    if path == METRIC:
        return 0, float(metrics[value]), ""
    if path == SAMPLES:
        limit = re.search(r"limit=(\d+)", value)
        return 0, float(limit[1]) if limit else inf, value
    if isinstance(value, int | float):
        return 1, float(value), ""
    return (3 if value == MISSING else 2 * (value is not None)), 0.0, value_text(value)


def _holds(condition: str, values: Settings, names: Mapping[str, str]) -> bool:
    name, equals, text = condition.rpartition("=")
    return any(
        value_text(value) == text and (not equals or name in (path, names.get(path))) for path, value in values.items()
    )


def _part(path: str, value: Any, names: Mapping[str, str]) -> str:
    if path == METRIC:
        return metric_title(str(value))
    if path == SAMPLES:
        return f"({value})"
    return column_name(str(value)) if path in CHOICES else setting_text(path, value, names.get(path, path))
