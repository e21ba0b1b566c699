"""A table as text in rows and columns: results, the statistics behind them, and notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from ace_bench.report.records import RunSummary
from ace_bench.report.statistics import EQUIVALENCE_LEVEL, Comparison, Interval, judge_equivalence
from ace_bench.report.tables.cells import FEW_SEEDS, Measured
from ace_bench.report.tables.table import MISSING, PaperShown, Table
from ace_bench.store.fidelity import certificate_text
from ace_bench.store.gains import SMALLEST_P

NOT_KNOWN = "n/a"
SIGNIFICANT, THESE_PLAYBOOKS, OTHER_SETTING, SIMILAR, COLLAPSED, OTHER_MODEL = "*", "‡", "†", "§", "¶", "#"
MEANINGS = {
    THESE_PLAYBOOKS: "differs likewise, but only for these playbooks; a method takes "
    f"{FEW_SEEDS} seeds on each side that adapts",
    OTHER_SETTING: "not the paper's setting",
    SIMILAR: "not the planned run",
}
"""What marks in cells mean, but for those whose explanation counts or names something."""
_SPELLING = {"tgc": "TGC", "sgc": "SGC", "finer": "FiNER", "formula": "Formula"}
_TASKS = {"appworld": "AppWorld", "ddxplus": "DDXPlus", "bird_sql": "BIRD-SQL", "bird sql": "BIRD-SQL"}
_STATISTICS = (
    *("n", "seeds", "faults", "sd over seeds"),
    *("detectable", "p (Holm)", "p", "p over seeds", "discordant", "notes"),
)
"""Columns of the statistics: four before the change against the base row, the others after it."""
_INTERVALS = (
    "In brackets: 95% interval of a score (Wilson's, with the variance between samples or groups of samples and, where "
    "there are several, between seeds; with one seed it is about this run's context only); for all other numbers, "
    "minimum and maximum over seeds."
)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A measured number as text. LaTeX adds its ``change`` against the base row, and prints the ``best`` in bold."""

    text: str
    bounds: str = ""
    marks: str = ""
    best: bool = False
    change: str = ""
    better: bool | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.text, self.bounds))) + self.marks


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Text in rows and columns. ``legend`` explains its marks below it in LaTeX.

    There ``above`` has a header for neighbouring columns together ("" for none), and ``groups`` the title of each
    row's group, which stands above the first of them.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | Number, ...], ...]
    legend: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def result_grid(table: Table) -> Grid:
    """Lay out the results, each number with its interval and, if wanted, the paper's number."""
    columns = [named_column for column in table.columns for named_column in _result_columns(table, column)]
    rows = [
        (*table.rows[row].texts, *(texts[index] for _, texts in columns))
        for index, (row, line) in enumerate(table.cells.items())
        if not all(cell.refused for cell in line.values())
    ]
    return Grid(title="Results", header=(*table.names, *(name for name, _ in columns)), rows=tuple(rows))


def statistics_grid(table: Table) -> Grid:
    """Give samples, seeds and faults of each number, its spread over seeds, and the tests against the base row."""
    units = {cell.change_unit for cell in table.measured if cell.runs}
    unit = f" ({'%' if units == {'percent'} else 'points'})" * (len(units) == 1)
    change = f"change against {table.base_title or 'base'}{unit}"
    rows = [
        (*table.rows[row].texts, table.columns[column].title, *_statistics(cell, table.paper))
        for row, line in table.cells.items()
        for column, cell in line.items()
        if cell.runs
    ]
    header = (*table.names, "column", *_STATISTICS[:4], change, *_STATISTICS[4:])
    return Grid(title="Statistics behind the results", header=header, rows=tuple(rows))


def notes_of(table: Table) -> list[str]:
    """Return the notes below a table."""
    notes = [*table.intro]
    if not table.empty:
        notes.append(_INTERVALS)
        if family := table.family:
            notes.append(
                f"{SIGNIFICANT} differs from {table.base_title} with p < 0.05 by a test paired by sample, and by seed "
                "where both have the same seeds (the t test of the interval), corrected by Holm's method for the "
                f"{family} comparisons of this table, its one family. Detectable: the smallest change that the test "
                "finds with a power of 80% at the 5% level. P over seeds: for these samples, a t test with seeds as "
                "units." + " Averages are not tested." * any(cell.derived for cell in table.measured)
            )
            notes.append(looks_note(table.looks))
    if any(cell.few_seeds and cell.significant for cell in table.measured):
        notes.append(f"{THESE_PLAYBOOKS} {MEANINGS[THESE_PLAYBOOKS]}.")
    notes += reservations(table)
    runs = (run for cell in table.measured for run in cell.runs)
    of_runs = (*_code_warnings(table.measured), *certificate_note(runs))
    return [*notes, *_other_settings(table), *of_runs, *table.notes]


def _code_warnings(cells: Iterable[Measured]) -> list[str]:
    """Return the note below a table on cells whose runs were made by different code."""
    places = [f"{cell.place.row}, {cell.place.column}: {', '.join(cell.code)}" for cell in cells if cell.code]
    return [f"Runs that were made by different code: {'; '.join(places)}."] if places else []


def certificate_note(runs: Iterable[RunSummary]) -> list[str]:
    """Return the note on how far finished runs are as the authors' code is."""
    distinct = {run.folder: run for run in runs}.values()
    certificates = [run.certificate for run in distinct if run.finished and run.certificate is not None]
    simulated = any(run.simulated for run in distinct)
    return [f"As the authors': {certificate_text(certificates, simulated=simulated)}."] if certificates else []


def column_name(column: str, unit: str = "") -> str:
    """Return a column's name in words, with seconds or dollars as unit."""
    name = _TASKS.get(column) or " ".join(_SPELLING.get(word, word) for word in column.split("_"))
    return f"{name} ({unit})" if unit in ("seconds", "dollars") and unit not in name else name


def number(value: float | None, unit: str = "") -> str:
    """Format a number: percent with one decimal, others with about three significant digits."""
    if value is None:
        return NOT_KNOWN
    if unit in ("percent", "points"):
        return f"{value:.1f}"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"


def p_value(p: float) -> str:
    """Format a p-value, not below the levels that were simulated."""
    return f"{p:.3f}" if p >= SMALLEST_P else f"<{SMALLEST_P}"


def coverage_notes(differences: Sequence[Comparison], scores: Sequence[Sequence[str]] = ()) -> list[str]:
    """Say how many intervals are wider than 95% needs, by the reasons of each, and how many may be too narrow."""
    near_end = sum(difference.near_end for difference in differences)
    notes = [
        f"{near_end} of {len(differences)} intervals of differences have several seeds within 10 points of 0 or 100% "
        "on one side: if seeds there vary by 8 points, only 85 to 93% hold the truth, which then lies nearer to 50%."
    ] * bool(near_end)
    for kind, intervals in (("differences", [difference.wide for difference in differences]), ("scores", scores)):
        reasons = ", ".join(dict.fromkeys(chain.from_iterable(intervals)))
        if reasons:
            notes.append(
                f"{sum(map(bool, intervals))} of {len(intervals)} intervals of {kind} may be wider than 95% needs "
                f"(simulated coverage up to 100%): {reasons}."
            )
    return notes


def reservations(table: Table) -> list[str]:
    """Say which intervals are wider than they need to be and which are not given, and where other models answered."""
    refused = f"{COLLAPSED}: seeds collapsed, so no interval or test holds."
    tested = [cell.comparison for cell in table.measured if cell.comparison is not None]
    scores = [cell.wide for cell in table.measured if cell.points and cell.interval is not None]
    notes = coverage_notes([comparison for comparison in tested if comparison.interval], scores)
    notes += [refused] * any(cell.collapsed for cell in table.measured)
    descriptions = dict.fromkeys(description for cell in table.measured for description in cell.other_models)
    answered = f"{OTHER_MODEL}: another model than the one asked for answered calls ({'; '.join(descriptions)})."
    return [*notes, *[answered] * bool(descriptions)]


def looks_note(looks: int) -> str:
    """Say for how many looks at the results while runs are added p-values and intervals of differences hold."""
    if looks > 1:
        return (
            f"P-values and intervals of differences are corrected for {looks} looks while runs are added (Pocock's "
            "boundary): they hold at whichever look adding ends."
        )
    return (
        "P-values and intervals of differences hold for runs whose number was fixed before the first look. Where seeds "
        "were added until a result appeared, make the table with `--looks K`, for K looks in all."
    )


def seeds_text(seeds: Sequence[int]) -> str:
    """Say how many seeds and which: ``1 (seed 0)``, ``3 (seeds 0, 1, 2)``."""
    return f"{len(seeds)} (seed{'s' * (len(seeds) != 1)} {', '.join(map(str, seeds))})" if seeds else MISSING


def remarks(cell: Measured, paper: PaperShown) -> list[str]:
    """List errors, what one seed is about, differences within noise, and settings that differ from the paper's."""
    remarks = [*filter(None, [cell.refused, cell.once]), *cell.notes, *cell.code]
    if cell.scope:
        remarks.append(f"one seed: about {cell.scope} only")
    elif cell.few_seeds:
        remarks.append(f"fewer than {FEW_SEEDS} seeds on a side: about these playbooks only")
    tested, margin = cell.comparison, cell.place.within
    if margin is not None and tested and (interval := tested.interval_at(EQUIVALENCE_LEVEL)):
        remarks.append(f"within {margin:g} points of the base (90%): {judge_equivalence(interval, margin)}")
    elif cell.within_noise:
        remarks.append("within noise of the base")
    if cell.differs:
        remarks.append(f"not the planned run: {', '.join(cell.differs)}")
    remarks += [f"another model: {description}" for description in cell.other_models]
    if cell.deviations:
        remarks.append(f"not the paper's setting: {', '.join(cell.deviations)}")
    published = cell.published if paper.compares(cell) and cell.place.unit == "percent" else None
    if published is not None and cell.interval and cell.interval.low <= published <= cell.interval.high:
        remarks.append("the paper's is within our interval")
    return remarks


def _result_columns(table: Table, column: str) -> Iterator[tuple[str, Sequence[str | Number]]]:
    """Yield a column and beside it the paper's numbers, each with its header."""
    cells, paper = [line[column] for line in table.cells.values()], table.paper
    yield table.columns[column].title, [*map(shown, cells)]
    if paper.numbers:
        yield "paper", [*map(published_text, cells)]
        if table.empty or any(paper.difference(cell) is not None for cell in table.measured):
            yield "ours - paper", [signed(paper.difference(cell), cell.change_unit) for cell in cells]


def published_text(cell: Measured) -> str:
    """Format the paper's number; "-" where it has none."""
    return "-" if cell.published is None else number(cell.published, cell.place.unit)


def shown(cell: Measured) -> str | Number:
    """Return a number with its interval and marks, or the state of its runs."""
    if cell.state:
        return cell.state
    bounds, unit = cell.interval, cell.place.unit
    is_point = bounds is not None and not cell.points and bounds.low == bounds.high
    return Number(
        text=number(cell.value, unit),
        bounds="" if bounds is None or is_point else f"[{number(bounds.low, unit)}, {number(bounds.high, unit)}]",
        marks=COLLAPSED * cell.collapsed
        + (THESE_PLAYBOOKS if cell.few_seeds else SIGNIFICANT) * cell.significant
        + OTHER_SETTING * bool(cell.deviations)
        + SIMILAR * bool(cell.differs)
        + OTHER_MODEL * bool(cell.other_models),
    )


def _statistics(cell: Measured, paper: PaperShown) -> Iterator[str]:
    """Yield samples, seeds, faults and tests of a cell, in the order of ``_STATISTICS``."""
    tested = cell.comparison
    yield number(cell.samples)
    yield seeds_text([run.seed for run in cell.runs])
    yield number(cell.faults)
    yield "-" if cell.spread is None else number(cell.spread, "points")
    yield "-" if cell.change is None else f"{cell.change:+.1f}{signed_bounds(tested.interval if tested else None)}"
    yield "-" if tested is None or tested.detectable is None else number(tested.detectable, "points")
    p_values = (None, None) if tested is None else (tested.p, tested.seeds_p)
    yield from ("-" if p is None else p_value(p) for p in (cell.p_holm, *p_values))
    yield "-" if tested is None else f"{tested.discordant} (+{tested.better}, -{tested.worse})"
    yield "; ".join(remarks(cell, paper)) or "-"


def _other_settings(table: Table) -> list[str]:
    """Say which settings differ from the paper's."""
    depart = [cell.deviations for cell in table.measured if cell.runs and cell.deviations]
    common = (
        [deviation for deviation in depart[0] if all(deviation in deviations for deviations in depart)]
        if depart
        else []
    )
    treatment = "are shown, as requested" if table.paper.differences else "are left out (--differences shows them)"
    return [
        f"{OTHER_SETTING} {MEANINGS[OTHER_SETTING]}{': ' if common else ''}{', '.join(common)}. The notes of each "
        "row name all settings that differ." + f" Differences of these to the paper {treatment}." * table.paper.numbers
    ] * bool(depart)


def signed(value: float | None, unit: str, unknown: str = "-") -> str:
    """Format a difference in points or in percent."""
    return unknown if value is None else f"{value:+.1f}" + "%" * (unit == "percent")


def signed_bounds(interval: Interval | None) -> str:
    """Format the interval that follows a difference."""
    return f" [{interval.low:+.1f}, {interval.high:+.1f}]" if interval else ""
