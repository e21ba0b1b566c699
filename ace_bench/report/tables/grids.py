"""A table as text in rows and columns: results and the statistics behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ace_bench.report.paper.consistency import known_contradictions
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.build import Line, ResultTable
from ace_bench.report.tables.cells import Measured, code_warnings

NOT_KNOWN = "n/a"
SIGNIFICANT, _OTHER_SETTING = "*", "†"
_SPELLING = {"tgc": "TGC", "sgc": "SGC", "finer": "FiNER", "formula": "Formula"}
STATISTICS = (
    *("n", "seeds", "faults", "sd over seeds"),
    *("detectable", "p (Holm)", "p", "p over seeds", "discordant", "notes"),
)
"""Columns of the statistics: four before the change against the base row, the others after it."""


INTERVALS_NOTE = (
    "In brackets: 95% interval of a score (Wilson's, with the variance between samples or groups of samples and, where "
    "there are several, between seeds; with one seed it is about this run's context only); for all other numbers, "
    "minimum and maximum over seeds."
)


def tests_note(base: str, cells: Sequence[Measured]) -> str:
    """Explain the tests of a table's cells against the base row."""
    family = sum(cell.comparison is not None for cell in cells)
    return (
        f"{SIGNIFICANT} differs from {base} with p < 0.05 by a test paired by sample, and by seed where both have the "
        "same seeds (McNemar's exact test for right or wrong answers of one seed, otherwise the t test of the "
        f"interval), corrected by Holm's method for the {family} comparisons of this table. Detectable: the smallest "
        "change that the test finds with a power of 80% at the 5% level. P over seeds: for these samples, a t test "
        "with seeds as units."
    )


@dataclass(frozen=True, kw_only=True)
class PaperShown:
    """Which numbers of the paper to show.

    Differences to the paper are shown for cells in its setting, and with ``differences`` for all.
    """

    numbers: bool
    differences: bool = False

    def compares(self, cell: Measured) -> bool:
        """Whether a cell is compared with the paper's."""
        return self.numbers and (self.differences or not cell.deviations)

    def difference(self, cell: Measured) -> float | None:
        """Our number minus the paper's, ``None`` if it is unknown or should not be shown."""
        return cell.difference if self.compares(cell) else None


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Text in rows and columns."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def result_grid(table: ResultTable, paper: PaperShown) -> Grid:
    """Lay the table out like the paper's, each number with its interval."""
    columns = list(next(iter(table.cells.values())))
    differences = table.empty or any(paper.difference(cell) is not None for cell in table.measured)
    header: list[str] = ["method", "adaptation", "labels"]
    for column in columns:
        header.append(header_of(table, column))
        header += ["paper"] * paper.numbers + ["ours - paper"] * (paper.numbers and differences)
    rows = [
        tuple(named(table.lines[row]) + [word for cell in line.values() for word in _result(cell, paper, differences)])
        for row, line in table.cells.items()
        if not all(cell.refused for cell in line.values())
    ]
    return Grid(title="Results", header=tuple(header), rows=tuple(rows))


def statistics_grid(table: ResultTable, paper: PaperShown) -> Grid:
    """Give samples, seeds and faults of each number, its spread over seeds, and the tests against the base row."""
    base = table.lines[table.paper.against].label if table.paper.against else "base"
    change = f"change against {base} ({'%' if table.change == 'percent' else 'points'})"
    header = (
        "method",
        "adaptation",
        "labels",
        "column",
        *STATISTICS[:4],
        change,
        *STATISTICS[4:],
    )
    rows = [
        (*named(table.lines[row]), header_of(table, column), *statistics_words(cell, paper))
        for row, line in table.cells.items()
        for column, cell in line.items()
        if cell.runs
    ]
    return Grid(title="Statistics behind the results", header=header, rows=tuple(rows))


def footnotes(table: ResultTable, paper: PaperShown) -> list[str]:
    """Notes below a table."""
    notes = [table.experiment.notes] if table.experiment.notes else []
    if not table.empty:
        notes.append(INTERVALS_NOTE)
        if table.paper.against and table.change == "points":
            notes.append(
                tests_note(table.lines[table.paper.against].label, table.measured) + " Averages are not tested."
            )
    notes += [*_settings(table, paper), *code_warnings(table.measured)]
    if paper.numbers:
        notes += _paper_notes(table)
    if table.experiment.combined:
        notes += [*_left_out(table), *_unfinished(table)]
    reasons = table.experiment.not_reproducible
    return notes + [f"{row} is not reproduced: {reason}." for row, reason in reasons.items()]


def _left_out(table: ResultTable) -> list[str]:
    """Say which rows or cells the program refuses, and why."""
    refused: dict[str, dict[str, list[str]]] = {}
    for row, line in table.cells.items():
        for column, cell in line.items():
            if cell.refused:
                refused.setdefault(cell.refused, {}).setdefault(row, []).append(column)
    notes = []
    for reason, rows in refused.items():
        names = [
            " ".join(named(table.lines[row]))
            + (f" ({', '.join(header_of(table, column) for column in columns)})" * (len(columns) < len(table.columns)))
            for row, columns in rows.items()
        ]
        notes.append(f"Left out: {'; '.join(names)}: {reason}.")
    return notes


def _unfinished(table: ResultTable) -> Iterator[str]:
    """Name the runs that began and have not finished."""
    for cell in table.measured:
        for run in cell.unfinished:
            name = f"{' '.join(named(table.lines[cell.place.row]))} ({header_of(table, cell.place.column)})"
            yield f"Not finished: {name}, seed {run.seed}, {run.state}{f': {run.reason}' if run.reason else ''}."


def column_name(column: str, unit: str = "") -> str:
    """Return a column's name in words, with seconds or dollars as unit."""
    words = " ".join(_SPELLING.get(word, word) for word in column.split("_"))
    return f"{words} ({unit})" if unit in ("seconds", "dollars") else words


def number(value: float | None, unit: str = "") -> str:
    """Format a number: percent with one decimal, others with about three significant digits."""
    if value is None:
        return NOT_KNOWN
    if unit in ("percent", "points"):
        return f"{value:.1f}"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"


def header_of(table: ResultTable, column: str) -> str:
    """Return a column's header."""
    spec = table.columns[column]
    return spec.label or column_name(column, spec.unit)


def _seeds(runs: Sequence[RunSummary]) -> str:
    """Say how many seeds and which: ``1 (seed 0)``, ``3 (seeds 0, 1, 2)``."""
    which = ", ".join(str(run.seed) for run in runs)
    return f"{len(runs)} (seed{'s' * (len(runs) != 1)} {which})"


def named(line: Line) -> list[str]:
    """Return method, adaptation and labels of a row."""
    return [line.label, line.stage or "-", line.labels or "-"]


def _result(cell: Measured, paper: PaperShown, differences: bool) -> Iterator[str]:
    unit = cell.place.unit
    if cell.state:
        yield cell.state
    else:
        bounds = cell.interval
        spread = f" [{number(bounds.low, unit)}, {number(bounds.high, unit)}]" if bounds else ""
        significant = SIGNIFICANT * (cell.comparison is not None and not cell.within_noise)
        yield number(cell.value, unit) + spread + significant + _OTHER_SETTING * bool(cell.deviations)
    if paper.numbers:
        published = cell.place.paper
        yield number(published.value, unit) if published and published.value is not None else "-"
        if differences:
            difference = paper.difference(cell)
            yield "-" if difference is None else _signed(difference, unit)


def statistics_words(cell: Measured, paper: PaperShown) -> Iterator[str]:
    """Yield samples, seeds, faults and tests of a cell, in the order of ``STATISTICS``."""
    tested = cell.comparison
    yield number(cell.samples)
    yield _seeds(cell.runs)
    yield number(cell.faults)
    yield "-" if cell.spread is None else number(cell.spread, "points")
    bounds = f" [{tested.interval.low:+.1f}, {tested.interval.high:+.1f}]" if tested and tested.interval else ""
    yield "-" if cell.change is None else f"{cell.change:+.1f}{bounds}"
    yield "-" if tested is None or tested.detectable is None else number(tested.detectable, "points")
    p_values = (None, None) if tested is None else (tested.p, tested.seeds_p)
    yield from ("-" if p is None else p_value(p) for p in (cell.p_holm, *p_values))
    yield "-" if tested is None else f"{tested.discordant} (+{tested.better}, -{tested.worse})"
    yield "; ".join(remarks(cell, paper)) or "-"


def remarks(cell: Measured, paper: PaperShown) -> list[str]:
    """List errors, what one seed is about, differences within noise, and settings that differ from the paper's."""
    found = [*filter(None, [cell.refused]), *cell.notes, *cell.code]
    if cell.scope:
        found.append(f"one seed: about {cell.scope} only")
    if cell.within_noise:
        found.append("within noise of the base")
    if cell.deviations:
        found.append(f"not the paper's setting: {', '.join(cell.deviations)}")
    printed = cell.place.paper if paper.compares(cell) and cell.place.unit == "percent" else None
    published = printed.value if printed else None
    if published is not None and cell.interval and cell.interval.low <= published <= cell.interval.high:
        found.append("the paper's is within our interval")
    return found


def p_value(p: float) -> str:
    """Format a p-value; it is never 0."""
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def _settings(table: ResultTable, paper: PaperShown) -> list[str]:
    """Say which settings differ from the paper's."""
    depart = [cell.deviations for cell in table.measured if cell.runs and cell.deviations]
    if not depart:
        return []
    common = [deviation for deviation in depart[0] if all(deviation in other for other in depart)]
    shown = "are shown, as requested" if paper.differences else "are left out (--differences shows them)"
    return [
        f"{_OTHER_SETTING} not the paper's setting{': ' if common else ''}{', '.join(common)}. The notes of each "
        "row name all settings that differ." + f" Differences of these to the paper {shown}." * paper.numbers
    ]


def _paper_notes(table: ResultTable) -> list[str]:
    variant = table.selection.variant
    notes = [f"The paper's numbers are those of {table.paper.model or 'its own runs'}, section {table.paper.section}."]
    if not variant.comparable:
        notes.append(
            f"They are shown on request: runs that are {' and on '.join(variant.marks)} measure something else."
        )
    cells = {cell.place.paper.ref for line in table.cells.values() for cell in line.values() if cell.place.paper}
    return notes + [
        f"The paper contradicts itself at {place}." for place in known_contradictions() if place.cell in cells
    ]


def _signed(value: float, unit: str) -> str:
    return ("+" if value > 0 else "") + number(value, unit)
