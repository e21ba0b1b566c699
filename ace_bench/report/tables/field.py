"""What the field's table adds: cost of a query, score for it, the Pareto front with its certainty, and all pairs.

Methods are set side by side only within a group: one column, scaffold, kind of labels and way through the samples (a
stream, once, in epochs, or one fit). Methods that retry by verdicts are a group of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ace_bench.core.errors import DataError
from ace_bench.core.statistics import Array, clusters, holm
from ace_bench.report.records import RunSummary
from ace_bench.report.statistics import Comparison
from ace_bench.report.tables.cells import FEW_SEEDS, Measured, few_seeds, mean_of, tested_difference, varies
from ace_bench.report.tables.grids import (
    SIGNIFICANT,
    THESE_PLAYBOOKS,
    Grid,
    coverage_notes,
    number,
    p_value,
    signed_bounds,
)
from ace_bench.report.tables.table import Table

_DRAWS = 1000

Amount = Callable[[RunSummary], float | None]
"""What a run cost."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A finished cell in a group: its cost of a query by seed, and the share of draws that it is on the front."""

    row: str
    name: str
    cell: Measured
    costs: tuple[float | None, ...]
    adapts: bool = True
    on_front: float | None = None

    @property
    def cost(self) -> float | None:
        """The mean over seeds."""
        return mean_of(self.costs)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Methods that may be compared, by row. The base is in each group of its scaffold, except groups of retries."""

    column: str
    passes: str
    scaffold: str
    labels: str
    retries: bool
    members: tuple[Member, ...] = ()

    @property
    def title(self) -> str:
        """Scaffold, passes and labels in words."""
        return f"{self.scaffold}, {self.passes}, labels {self.labels}" + ", retries" * self.retries


def tokens(run: RunSummary, stage: str = "total") -> float | None:
    """Return prompt and completion tokens of a stage, or of a whole run."""
    parts = [run.value(f"tokens.{stage}.{way}") for way in ("in", "out")]
    return None if None in parts else sum(part or 0.0 for part in parts)


def dollars(run: RunSummary) -> float | None:
    """Return the dollars of a whole run."""
    return run.value("usd.total")


def per_query(run: RunSummary, amount: float | None) -> float | None:
    """Spread an amount over the test samples of a run."""
    queries = run.value("n")
    return amount / queries if amount is not None and queries else None


def groups_of(table: Table, amount: Amount = tokens) -> list[Group]:
    """Return the groups with at least two finished methods as planned. Base, whose row stands first, is first."""
    groups: dict[Group, list[Member]] = {}
    bases: dict[tuple[str, str], Member] = {}
    for cell in table.measured:
        if cell.value is None or cell.differs:
            continue
        row, column, heading = cell.place.row, cell.place.column, table.rows[cell.place.row]
        fields, costs = heading.fields, tuple(per_query(run, amount(run)) for run in cell.runs)
        passes, scaffold = fields["passes"], fields["scaffold"]
        name = fields["method"].partition(" (void")[0]
        member = Member(row=row, name=name, cell=cell, costs=costs, adapts=bool(passes))
        if not passes:
            bases[column, scaffold] = member
            continue
        retries = bool(fields["retries"])
        group = Group(column=column, passes=passes, scaffold=scaffold, labels=fields["labels"], retries=retries)
        base = bases.get((column, scaffold))
        groups.setdefault(group, [base] if base and not retries else []).append(member)
    return [replace(group, members=tuple(members)) for group, members in groups.items() if len(members) > 1]


def with_certainty(members: Sequence[Member]) -> tuple[Member, ...]:
    """Say for each member in which share of bootstrap draws no other beats it in score and cost.

    A draw takes groups of samples, the same for all members, and seeds of each member, with replacement. Members whose
    cost is unknown, or whose samples differ from the first's, have no share: ``None``.
    """
    eligible = [member for member in members if None not in member.costs and member.cell.points]
    samples = sorted(next(iter(eligible[0].cell.points.values()))) if eligible else []
    eligible = [member for member in eligible if all(run.keys() == set(samples) for run in member.cell.points.values())]
    if not eligible:
        return tuple(members)
    first = next(iter(eligible[0].cell.points.values()))
    blocks = clusters(range(len(samples)), lambda index: first[samples[index]].group)
    scores = [
        np.array([[run[name].score for name in samples] for run in member.cell.points.values()], dtype=float)
        for member in eligible
    ]
    costs = [np.array(member.costs, dtype=float) for member in eligible]
    rng, counts = np.random.default_rng(0), np.zeros(len(eligible))
    for _ in range(_DRAWS):
        drawn = [index for block in rng.integers(len(blocks), size=len(blocks)) for index in blocks[block]]
        seeds = [rng.integers(len(member_scores), size=len(member_scores)) for member_scores in scores]
        score = np.array(
            [member_scores[chosen][:, drawn].mean() for member_scores, chosen in zip(scores, seeds, strict=True)]
        )
        cost = np.array(
            [member_costs[chosen % len(member_costs)].mean() for member_costs, chosen in zip(costs, seeds, strict=True)]
        )
        counts += on_front(cost, score)
    shares = dict(zip((member.row for member in eligible), counts / _DRAWS, strict=True))
    return tuple(replace(member, on_front=shares.get(member.row)) for member in members)


def on_front(cost: Array, score: Array) -> Array:
    """Return which points no other beats in score without costing more, or in cost without scoring less."""
    no_worse = (cost[:, None] <= cost) & (score[:, None] >= score)
    is_better = (cost[:, None] < cost) | (score[:, None] > score)
    return np.asarray(~(no_worse & is_better).any(axis=0), dtype=float)


def efficiency_grid(table: Table) -> Grid:
    """Give the amortised cost of a query, the score for a thousand tokens of it, and the certainty of the front."""
    rows = []
    for group in groups_of(table):
        for member in with_certainty(group.members):
            runs = member.cell.runs
            adapt, evaluate = (
                mean_of([per_query(run, tokens(run, stage)) for run in runs]) for stage in ("adapt", "evaluate")
            )
            usd = mean_of([per_query(run, dollars(run)) for run in runs])
            score = None if not member.cost or member.cell.value is None else 1000 * member.cell.value / member.cost
            share = "-" if member.on_front is None else f"{member.on_front:.0%}"
            amounts = map(number, (adapt, evaluate, member.cost, usd, score))
            rows.append((table.columns[group.column].title, group.title, member.name, *amounts, share))
    header = ("column", "group", "method", "tokens of adaptation", "of evaluation", "a query together", "dollars")
    title = "Cost of a query, adaptation spread over the test samples, and the Pareto front"
    return Grid(title=title, header=(*header, "score per 1,000 tokens", "on the front"), rows=tuple(rows))


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A method's tested difference from another of its group, and its p-value corrected over the table's family."""

    column: str
    group: str
    compared: Member
    base: Member
    tested: Comparison
    p_holm: float = 1.0

    @property
    def key(self) -> tuple[str, frozenset[str]]:
        """What is compared with what, in whichever order."""
        return _key_of_test(self.column, self.compared.row, self.base.row)


def _key_of_test(column: str, *rows: str) -> tuple[str, frozenset[str]]:
    return column, frozenset(rows)


def with_pairs(table: Table) -> tuple[Table, list[Pair]]:
    """Test all pairs of each group, paired by sample, as one family with the table's comparisons with its base rows."""
    pairs = [*_tested_pairs(table)]
    tests = {
        _key_of_test(column, row, base.place.row): cell.comparison.p
        for row, line in table.cells.items()
        for column, cell in line.items()
        if cell.comparison and (base := table.base_of(row, column)) is not None
    }
    with_base = len(tests)
    tests |= {pair.key: pair.tested.p for pair in pairs}
    adjusted = dict(zip(tests, holm([*tests.values()]), strict=True))

    def corrected(cell: Measured) -> Measured:
        row, column = cell.place.row, cell.place.column
        base = table.base_of(row, column) if cell.comparison else None
        return cell if base is None else replace(cell, p_holm=adjusted[_key_of_test(column, row, base.place.row)])

    cells = {row: {column: corrected(cell) for column, cell in line.items()} for row, line in table.cells.items()}
    together = replace(table, cells=cells, other_tests=len(tests) - with_base)
    return together, [replace(pair, p_holm=adjusted[pair.key]) for pair in pairs]


def _tested_pairs(table: Table) -> Iterator[Pair]:
    for group in groups_of(table):
        for member, second in combinations([member for member in group.members if member.cell.points], 2):
            # The one that adapts less is the base, as in the table: its seeds are averaged where it does not adapt.
            base, compared = sorted((second, member), key=lambda member: (varies(member.cell), member.adapts))
            try:
                tested = tested_difference(compared.cell, base.cell, table.looks)
            except DataError:
                continue  # the table's notes say that the samples differ
            if tested:
                yield Pair(column=group.column, group=group.title, compared=compared, base=base, tested=tested)


def pairs_grid(table: Table, pairs: Sequence[Pair]) -> Grid:
    """Show the tests of all pairs."""
    rows = []
    for pair in pairs:
        mark = THESE_PLAYBOOKS if few_seeds(pair.compared.cell, pair.base.cell) else SIGNIFICANT
        mark *= pair.p_holm < 0.05
        difference = f"{pair.tested.difference:+.1f}{signed_bounds(pair.tested.interval)}{mark}"
        names = (table.columns[pair.column].title, pair.group, pair.compared.name, pair.base.name)
        rows.append((*names, difference, p_value(pair.p_holm), p_value(pair.tested.p)))
    header = ("column", "group", "method", "against", "difference (points)", f"p (Holm over {table.family})", "p")
    legend = [
        f"{SIGNIFICANT}: p (Holm) below 0.05. {THESE_PLAYBOOKS}: also, but a side that adapts has under {FEW_SEEDS} "
        "seeds: about these playbooks only. These pairs and the table's comparisons with its base rows are one family.",
        *coverage_notes([pair.tested for pair in pairs]),
    ]
    refused = sum(
        (first.cell.collapsed or second.cell.collapsed) and bool(first.cell.points and second.cell.points)
        for group in groups_of(table)
        for first, second in combinations(group.members, 2)
    )
    legend += [f"{refused} pairs with seeds that collapsed are not tested."] if refused else []
    return Grid(title="All pairs", header=header, rows=tuple(rows), legend=tuple(legend))
