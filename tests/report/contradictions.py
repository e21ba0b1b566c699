"""Recomputes the paper's numbers from each other, to find where it contradicts itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ace_bench.report.paper.claims import Contradiction
from ace_bench.report.paper.rows import Column, YamlModel, read_yaml
from ace_bench.report.paper.tables import CLAIM, Experiment, Paper

_SLACK = 1e-9

Formula = Callable[[Sequence[float]], float]


class Statement(YamlModel, frozen=True, kw_only=True):
    """A statement of the text (``statements.yaml``): ``cell`` equals another one, or is the highest of some."""

    section: str
    cell: str
    equals: str = ""
    highest_of: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A number of the paper with its unit, its decimals, and its change against the reference row."""

    ref: str
    value: float
    unit: str = ""
    digits: int = 1
    change: float | None = None


def printed(paper: Paper, ref: str) -> Printed:
    """Return a number by its reference."""
    cell = paper.cell(ref)
    assert cell.value is not None  # only cells that hold a number are recomputed
    name, *place = ref.split("/")
    unit = "" if name == CLAIM else paper.table(name).columns[place[1]].unit
    digits = 0 if unit in ("count", "tokens", "seconds") else 1
    return Printed(ref=ref, value=cell.value, unit=unit, digits=digits, change=cell.change)


def refs(table: Experiment) -> list[str]:
    """Return the references of all numbers in a table, line by line."""
    theirs = [row for row, line in table.rows.items() if not line.ours]
    cells = [table.cell(row, column) for row in theirs for column in table.printed]
    return [cell.ref for cell in cells if cell.value is not None]


@dataclass(frozen=True, kw_only=True)
class _Check:
    """A printed number, and the formula over other numbers that should give it."""

    cell: Printed
    rule: str
    printed: float
    parts: Sequence[Printed]
    formula: Formula
    digits: int

    def recomputed(self) -> float:
        return self.formula([part.value for part in self.parts])

    def holds(self) -> bool:
        """Whether rounding can explain the difference, to first order in the rounding errors."""
        if self.rule in ("repeated", "highest"):
            return self.printed == self.recomputed()  # one number, rounded once
        numbers = [part.value for part in self.parts]
        exact = self.formula(numbers)
        room = _half(self.digits)
        for place, part in enumerate(self.parts):
            shifts = (
                self.formula([*numbers[:place], numbers[place] + shift, *numbers[place + 1 :]])
                for shift in (_half(part.digits), -_half(part.digits))
            )
            room += max(abs(shifted - exact) for shifted in shifts)
        return abs(exact - self.printed) <= room + _SLACK


def contradictions(paper: Paper) -> list[Contradiction]:
    """Recompute every mean, ratio, sum, repetition, change, claim and statement; return the contradictions."""
    checks = [check for table in paper.tables.values() for check in _of_table(paper, table)]
    units = [contradiction for table in paper.tables.values() for contradiction in _mixed_units(table)]
    return units + [
        Contradiction(
            cell=check.cell.ref,
            rule=check.rule,
            printed=check.printed,
            recomputed=round(check.recomputed(), check.digits),
        )
        for check in (*checks, *_of_claims(paper), *_of_statements(paper))
        if not check.holds()
    ]


def _of_table(paper: Paper, table: Experiment) -> Iterator[_Check]:
    for cell in (printed(paper, ref) for ref in refs(table)):
        yield from _of_cell(paper, table, cell)
        if cell.change is not None:
            column = cell.ref.split("/")[2]
            yield _Check(
                cell=cell,
                rule="change",
                printed=cell.change,
                parts=[cell, printed(paper, f"{table.id}/{table.against}/{column}")],
                formula=_difference if cell.unit == "percent" else _percent_change,
                digits=1,
            )


def _of_cell(paper: Paper, table: Experiment, cell: Printed) -> Iterator[_Check]:
    _, name, column = cell.ref.split("/")
    spec, row = table.columns[column], table.rows[name]

    def check(rule: str, parts: Sequence[Printed], formula: Formula) -> _Check:
        return _Check(cell=cell, rule=rule, printed=cell.value, parts=parts, formula=formula, digits=cell.digits)

    if spec.mean_of:
        weights = spec.weights or (1.0,) * len(spec.mean_of)
        parts = [printed(paper, f"{table.id}/{name}/{part}") for part in spec.mean_of]
        yield check("mean", parts, lambda numbers: fmean(numbers, weights))
    if spec.per is not None:
        parts = [printed(paper, f"{row.same_as}/{part}") for part in spec.per]
        yield check("ratio", parts, lambda numbers: numbers[0] / numbers[1])
    if row.sum_of and column in (row.sum_columns or table.columns):
        yield check("sum", [printed(paper, f"{table.id}/{part}/{column}") for part in row.sum_of], sum)
    if row.same_as:
        other = row.same_as.partition("/")[0]
        # A column with the same name may be a mean over other columns.
        if _same(spec, paper.table(other).columns.get(column)):
            yield check("repeated", [printed(paper, f"{row.same_as}/{column}")], lambda numbers: numbers[0])


def _same(one: Column, other: Column | None) -> bool:
    names = ("task", "split", "metric", "unit", "mean_of", "weights", "per")
    return all(getattr(one, name) == getattr(other, name, None) for name in names)


def _of_claims(paper: Paper) -> Iterator[_Check]:
    for name, claim in paper.claims.items():
        cell = printed(paper, f"{CLAIM}/{name}")
        if claim.mean:
            parts = claim.mean
        elif claim.gain:
            parts = (*claim.gain, *claim.over, *filter(None, [claim.relative_to]))
        else:
            continue
        yield _Check(
            cell=cell,
            rule="text",
            printed=claim.value,
            parts=[printed(paper, part) for part in parts],
            formula=fmean if claim.mean else _gain(len(claim.gain), len(claim.over)),
            digits=cell.digits,
        )


def _of_statements(paper: Paper) -> Iterator[_Check]:
    statements: list[Statement] = read_yaml(Path(__file__).with_name("statements.yaml"), list[Statement])
    for statement in statements:
        cell = printed(paper, statement.cell)
        others = [printed(paper, ref) for ref in (statement.highest_of or (statement.equals,))]
        yield _Check(
            cell=cell,
            rule="highest" if statement.highest_of else "repeated",
            printed=cell.value,
            parts=[cell, *others] if statement.highest_of else others,
            formula=max,
            digits=cell.digits,
        )


def _mixed_units(table: Experiment) -> Iterator[Contradiction]:
    """Yield the changes between rows that count calls and rollouts under one name."""
    base = table.rows.get(table.against)
    for name, row in table.rows.items():
        for place, (column, spec) in enumerate((name, table.columns[name]) for name in table.printed):
            counted = "{counts}" in spec.metric or "calls" in (spec.per or ())
            if row.changes and counted and base is not None and row.counts != base.counts:
                yield Contradiction(cell=f"{table.id}/{name}/{column}", rule="unit", printed=row.changes[place])


def _gain(size: int, over: int) -> Formula:
    def formula(numbers: Sequence[float]) -> float:
        gain = fmean(numbers[:size]) - fmean(numbers[size : size + over])
        return gain if len(numbers) == size + over else 100 * gain / numbers[-1]

    return formula


def _difference(numbers: Sequence[float]) -> float:
    return numbers[0] - numbers[1]


def _percent_change(numbers: Sequence[float]) -> float:
    return 100 * (numbers[0] / numbers[1] - 1)


def _half(digits: int) -> float:
    """Return half of the last printed digit; counts are exact."""
    return 0.5 * 10.0**-digits if digits else 0.0
