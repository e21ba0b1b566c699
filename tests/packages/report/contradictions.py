"""Recomputes the paper's numbers from each other, to find where it contradicts itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from ace_report.experiments import Experiments
from ace_report.paper.claims import Contradiction
from ace_report.paper.rows import Column, YamlModel, read_yaml
from ace_report.paper.tables import CLAIM, Experiment

_SLACK = 1e-9

Formula = Callable[[Sequence[float]], float]


class Statement(YamlModel, frozen=True, kw_only=True):
    """A statement of the text (``statements.yaml``): ``cell`` equals another one, or is the highest of some."""

    section: str
    cell: str
    equals: str = ""
    highest_of: tuple[str, ...] = ()


def refs(table: Experiment) -> list[str]:
    """Return the references of all numbers in a table, line by line."""
    theirs = [row for row, line in table.rows.items() if not line.ours]
    cells = [table.cell(row, column) for row in theirs for column in table.printed]
    return [cell.ref for cell in cells if cell.value is not None]


class _Check(NamedTuple):
    """A printed number, and the formula over other numbers, by reference, that should give it."""

    ref: str
    rule: str
    printed: float
    parts: Sequence[str]
    formula: Formula
    digits: int

    def contradiction(self, paper: Experiments) -> Contradiction | None:
        """Return none where rounding can explain the difference, to first order in the rounding errors."""
        numbers = [paper.cell(part).value for part in self.parts]
        exact = self.formula(numbers)
        room = 0.0  # a repeated number was rounded once
        if self.rule not in ("repeated", "highest"):
            room = _half(self.digits) + _SLACK
            for place, part in enumerate(self.parts):
                half = _half(_digits(paper, part))
                moved = ([*numbers[:place], numbers[place] + shift, *numbers[place + 1 :]] for shift in (half, -half))
                room += max(abs(self.formula(one) - exact) for one in moved)
        if abs(exact - self.printed) <= room:
            return None
        return Contradiction(cell=self.ref, rule=self.rule, printed=self.printed, recomputed=round(exact, self.digits))


def contradictions(paper: Experiments) -> list[Contradiction]:
    """Recompute every mean, ratio, sum, repetition, change, claim and statement; return the contradictions."""
    units = [contradiction for table in paper.tables.values() for contradiction in _mixed_units(table)]
    checks = [check for table in paper.tables.values() for ref in refs(table) for check in _of_cell(paper, table, ref)]
    found = (check.contradiction(paper) for check in (*checks, *_of_claims(paper), *_of_statements(paper)))
    return [*units, *filter(None, found)]


def _digits(paper: Experiments, ref: str) -> int:
    """Return the decimals of a number."""
    name, *place = ref.split("/")
    unit = "" if name == CLAIM else paper.table(name).columns[place[1]].unit
    return 0 if unit in ("count", "tokens", "seconds") else 1


def _of_cell(paper: Experiments, table: Experiment, ref: str) -> Iterator[_Check]:
    _, name, column = ref.split("/")
    spec, row, cell = table.columns[column], table.rows[name], paper.cell(ref)

    def check(rule: str, parts: Sequence[str], formula: Formula) -> _Check:
        return _Check(ref, rule, cell.value, parts, formula, _digits(paper, ref))

    if spec.mean_of:
        weights = spec.weights or (1.0,) * len(spec.mean_of)
        yield check("mean", [f"{table.id}/{name}/{part}" for part in spec.mean_of], partial(fmean, weights=weights))
    if spec.per is not None:
        yield check("ratio", [f"{row.same_as}/{part}" for part in spec.per], lambda numbers: numbers[0] / numbers[1])
    if row.sum_of and column in (row.sum_columns or table.columns):
        yield check("sum", [f"{table.id}/{part}/{column}" for part in row.sum_of], sum)
    # A column with the same name may be a mean over other columns.
    if row.same_as and _same(spec, paper.table(row.same_as.partition("/")[0]).columns.get(column)):
        yield check("repeated", [f"{row.same_as}/{column}"], max)
    if cell.change is not None:
        formula = _difference if spec.unit == "percent" else _percent_change
        yield _Check(ref, "change", cell.change, [ref, f"{table.id}/{table.against}/{column}"], formula, 1)


def _same(one: Column, other: Column | None) -> bool:
    names = ("task", "split", "metric", "unit", "mean_of", "weights", "per")
    return all(getattr(one, name) == getattr(other, name, None) for name in names)


def _of_claims(paper: Experiments) -> Iterator[_Check]:
    for name, claim in paper.claims.items():
        parts = claim.mean or (*claim.gain, *claim.over, *filter(None, [claim.relative_to]))
        formula = fmean if claim.mean else _gain(len(claim.gain), len(claim.over))
        if parts:
            yield _Check(f"{CLAIM}/{name}", "text", claim.value, parts, formula, 1)


def _of_statements(paper: Experiments) -> Iterator[_Check]:
    statements: list[Statement] = read_yaml(Path(__file__).with_name("statements.yaml"), list[Statement])
    for one in statements:
        parts = [one.cell, *one.highest_of] if one.highest_of else [one.equals]
        rule = "highest" if one.highest_of else "repeated"
        yield _Check(one.cell, rule, paper.cell(one.cell).value, parts, max, _digits(paper, one.cell))


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
