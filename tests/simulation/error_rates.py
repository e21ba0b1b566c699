"""Error rates of intervals, tests and verdicts on simulated tables: ``make statistics`` writes them into a page."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product, repeat
from pathlib import Path
from textwrap import fill

import numpy as np
from rich.console import Console

from ace_bench.core.statistics import LEVEL, blocks, difference_variances, score_bounds
from ace_bench.report.escaping import csv_of
from ace_bench.report.statistics import ENOUGH_DIFFERING, reasons_wide
from ace_bench.store.files import write_files
from tests.simulation.candidates import CHOSEN, Interval, all_intervals
from tests.simulation.claim_worlds import Judged, judge_worlds, verdicts_by_claim, verdicts_page
from tests.simulation.hard_worlds import (
    Drawn,
    databases,
    near_the_end,
    pathologies,
    rare_gains,
    supported_without_effect,
)
from tests.simulation.planning import look_lines, power_row, span
from tests.simulation.score_worlds import Case, Scores, draw, mean_at

PAGE, BY_CLAIM = Path("docs/tables-and-figures.md"), Path("docs/assets/claims_in_worlds.csv")
START, END = "<!-- measured by make statistics -->", "<!-- end -->"
TABLES, FAMILIES, WORLDS_OF_CLAIMS = 2_000, 2_000, 4
FAMILY_SIZES = (4, 13)
"""Comparisons that are tested together: the primary claims, and the methods of a large table."""
_HARD_TABLES = 1_000
_CHUNK = 1_000
"""Comparisons drawn at a time, which bounds the memory."""

DESIGNS = {"1 against 1": (1, 1), "3 against 1": (3, 1), "3 against 3": (3, 3), "3 against 5": (3, 5),
           "5 against 1": (5, 1), "5 against 5": (5, 5)}  # fmt: skip
SPREADS = ((0.0, 0.0), (2.0, 2.0), (4.0, 4.0), (8.0, 8.0), (0.0, 8.0))
SHAPES = (Case(ours=1), Case(ours=1, n=440, graded=True), Case(ours=1, n=168, group=3), Case(ours=1, n=20))
"""Right or wrong, FiNER's four questions a sample, AppWorld's 56 scenarios of 3, and few samples."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Shares of intervals that hold the truth: of the playbooks drawn, of the method, and without a collapse.

    ``width`` is the mean width.
    """

    own: float
    method: float
    width: float
    refused: float = 0.0
    kept: float = 1.0


def cases(design: str) -> Iterator[Case]:
    """Yield the cases of a design; a base that does not adapt has no spread, and one playbook has no seeds to vary."""
    ours, base = DESIGNS[design]
    for (spread, base_spread), shape in product(SPREADS, SHAPES):
        if (spread == base_spread or base > 1) and (ours > 1 or spread == 0):
            yield replace(shape, ours=ours, base=base, spreads=(spread, base_spread))


def streams(seeds: int) -> Iterator[Case]:
    """Yield online cases: a playbook that rises by 16 points along the stream."""
    for n in (20, 100, 400):
        yield Case(ours=seeds, n=n, gain=0.05, spreads=(2.0 * (seeds > 1), 0.0), stream=0.4)


def coverage(case: Case, tables: int = TABLES) -> Mapping[str, Rates]:
    """Measure the intervals of differences, by name."""
    rng, chunks_by_name, collapsed = _rng(case), dict[str, list[np.ndarray]](), list[np.ndarray]()
    for size in _chunks(tables, _CHUNK):
        drawn = draw(case, size, rng)
        collapsed.append(np.asarray(drawn.collapsed[:, 0].any(axis=1)))
        for name, ((centre, reach),) in _intervals(case, drawn, [LEVEL]).items():
            held = [np.abs(centre - truth) <= reach for truth in (drawn.own_truth, drawn.truth)]
            chunks_by_name.setdefault(name, []).append(np.stack([*held, 2 * reach])[..., 0])
    # A table in which a seed collapsed shows no interval; the others are about seeds that do not collapse.
    refused = np.concatenate(collapsed)
    rates = {name: np.concatenate(chunks, axis=1) for name, chunks in chunks_by_name.items()}
    return {
        name: Rates(
            own=float(own.mean()), method=float(method.mean()), width=float(width.mean()),
            refused=float(refused.mean()), kept=float(method[~refused].mean()),
        )
        for name, (own, method, width) in rates.items()
    }  # fmt: skip


def family_errors(case: Case, families: int = FAMILIES) -> Mapping[str, tuple[float, ...]]:
    """Return the share of families in which Holm finds a difference from the base though there is none, by size."""
    rng, false = _rng(case), dict[str, list[np.ndarray]]()
    case = replace(case, gain=0.0, methods=max(FAMILY_SIZES))
    levels = [1 - (1 - LEVEL) / size for size in FAMILY_SIZES]  # Holm's first step is Bonferroni's
    for size in _chunks(families, _CHUNK // case.methods):
        for name, intervals in _intervals(case, draw(case, size, rng), levels).items():
            excluding = [np.abs(centre) > reach for centre, reach in intervals]
            any_excluding = [
                excluded[:, :tested].any(axis=1) for excluded, tested in zip(excluding, FAMILY_SIZES, strict=True)
            ]
            false.setdefault(name, []).append(np.stack(any_excluding))
    return {name: tuple(np.concatenate(chunks, axis=1).mean(axis=1)) for name, chunks in false.items()}


def score_coverage(seeds: int, n: int, log_odds: float, tables: int = TABLES) -> float:
    """Return how many intervals of a right-or-wrong score hold the truth; several seeds differ by about 3 points."""
    rng = np.random.default_rng([seeds, n, int(10 * log_odds)])
    quality = log_odds + 0.15 * rng.normal(size=(tables, seeds, 1))
    chance = 1 / (1 + np.exp(-quality - 1.5 * rng.normal(size=(tables, 1, n))))
    scores = (rng.random((tables, seeds, n)) < chance).astype(float)
    truth = mean_at(quality[:, 0, 0], 1.5) if seeds == 1 else np.full(tables, float(mean_at(log_odds, 1.507)))
    groups = [[index] for index in range(n)]
    bounds = [score_bounds(table, groups) or (0.0, 1.0) for table in scores]
    return float(np.mean([low <= value <= high for (low, high), value in zip(bounds, truth, strict=True)]))


def seen_in_scores(spread: float, tables: int = 20_000) -> tuple[float, float]:
    """Return how often the worst of three seeds lies 10 points below the next: with a collapse, and without one."""
    rates = []
    for collapse in (1.0, 0.0):
        rng = np.random.default_rng(7)
        scores = spread * rng.normal(size=(tables, 3)) + 2.4 * rng.normal(size=(tables, 3))  # of 200 samples
        scores[:, 0] -= 15.0 * collapse
        scores.sort(axis=1)
        rates.append(float((scores[:, 1] - scores[:, 0] > 10).mean()))
    return rates[0], rates[1]


def measured_tables(judged: Sequence[Judged], tables: int = TABLES, families: int = FAMILIES) -> str:
    """Measure everything but verdicts, as Markdown."""
    with ProcessPoolExecutor() as pool:
        designs = dict(zip(DESIGNS, pool.map(_Design.measure, DESIGNS, repeat(tables), repeat(families)), strict=True))
        rows = [
            *(measured.row(name) for name, measured in designs.items()),
            *pool.map(_stream_row, (1, 3, 5), repeat(tables)),
            *pool.map(_collapse_row, (0.1, 0.2), repeat(tables)),
        ]
        hard = [*pool.map(_hard_row, _HARD, repeat(tables))]
        powers = [*pool.map(power_row, product((200, 400), (1.5, 4.0)), repeat(tables))]
        near = [*pool.map(_score_cell, product((1, 3, 5), (20, 50, 200), (0.0, 2.0, 4.0)), repeat(tables))]
    false_support = [*supported_without_effect(min(tables, _HARD_TABLES))]
    detected, mistaken = seen_in_scores(4.0)
    return "\n".join([
        "|seeds|coverage|named as wider|false of 4|of 13|", "|---|---|---|---|---|",
        *(f"|{'|'.join(row)}|" for row in rows), "",
        "|worlds that are hard|coverage|named as wider|", "|---|---|---|",
        *(f"|{'|'.join(row)}|" for row in hard), "",
        fill(
            f"Where collapsed runs of a base count as its best, {span(false_support)} of differences without effect "
            f"are found above 0. Intervals of scores cover {span(near)}. Scores of three seeds show "
            f"{100 * detected:.0f}% of collapses by 15 points (10 below the others), and {100 * mistaken:.0f}% false "
            "ones.", width=120,
        ), "",
        *_candidate_lines([*designs.values()]), "", *look_lines(tables), "",
        "|power|3 seeds, 5 points|5|10|3 seeds, 10 points|5|10|", "|---|---|---|---|---|---|---|",
        *(f"|{'|'.join(row)}|" for row in powers), "", verdicts_page(judged),
    ])  # fmt: skip


def main() -> None:
    """Measure, and write the tables into the page."""
    judged = judge_worlds(WORLDS_OF_CLAIMS)
    table = measured_tables(judged)
    text = PAGE.read_text(encoding="utf-8")
    before, _, remainder = text.partition(START)
    page = f"{before}{START}\n{table}\n{END}{remainder.partition(END)[2]}"
    write_files({PAGE: page, BY_CLAIM: csv_of(verdicts_by_claim(judged))})
    Console(width=150).print(table)


@dataclass(frozen=True, kw_only=True)
class _Design:
    """What was measured of a design, by case."""

    covered: Sequence[Mapping[str, Rates]]
    errors: Sequence[Mapping[str, tuple[float, ...]]]

    @classmethod
    def measure(cls, design: str, tables: int, families: int) -> _Design:
        design_cases = [*cases(design)]
        tested = (case for case in design_cases if case.n in (200, 440) and case.spreads != (2.0, 2.0))
        return cls(
            covered=[coverage(case, tables) for case in design_cases],
            errors=[family_errors(case, families) for case in tested],
        )

    def row(self, design: str) -> tuple[str, ...]:
        ours, base = DESIGNS[design]
        rates = [figures[CHOSEN].own if ours == 1 else figures[CHOSEN].method for figures in self.covered]
        families = [
            span([figures[CHOSEN][size_index] for figures in self.errors]) for size_index in range(len(FAMILY_SIZES))
        ]
        about = " (these playbooks)" if ours == 1 else " (does not adapt)" if base == 1 else ""
        return f"{design}{about}", *_split([*cases(design)], rates), *families


def _candidate_lines(designs: Sequence[_Design]) -> list[str]:
    """Compare all intervals over the designs with several seeds."""
    several = [design for design in designs if len(design.covered[0]) > 1]
    covered = [rates for design in several for rates in design.covered]
    errors = [rates for design in several for rates in design.errors]
    lines = ["|interval|coverage|most false of 4|of 13|width|", "|---|---|---|---|---|"]
    for name in covered[0]:
        most = [
            f"{100 * max(figures[name][size_index] for figures in errors):.1f}%"
            for size_index in range(len(FAMILY_SIZES))
        ]
        width = np.mean([rates[name].width / rates[CHOSEN].width for rates in covered])
        lines.append(f"|{name}|{span([rates[name].method for rates in covered])}|{'|'.join(most)}|{width:.2f}|")
    return lines


def _stream_row(seeds: int, tables: int) -> tuple[str, ...]:
    stream_cases = [*streams(seeds)]
    rates = [coverage(case, tables)[CHOSEN] for case in stream_cases]
    if seeds > 1:
        return f"{seeds} streams", *_split(stream_cases, [rate.method for rate in rates]), "-", "-"
    fitting, wider = _split(stream_cases, [rate.own for rate in rates])
    method = span([rate.method for rate in rates])
    return "1 stream (this stream)", f"{fitting}; refused for the method: {method}", wider, "-", "-"


def _collapse_row(rate: float, tables: int) -> tuple[str, ...]:
    collapse_cases = [Case(ours=seeds, base=seeds, spreads=(2.0, 2.0), collapse=rate) for seeds in (3, 5)]
    rates = [coverage(case, tables)[CHOSEN] for case in collapse_cases]
    kept, refused = span([one.kept for one in rates]), span([one.refused for one in rates])
    return f"{100 * rate:.0f}% of seeds collapse", f"{kept} without one; {refused} refused", "-", "-", "-"


_HARD: Mapping[str, Callable[[int], Iterator[Drawn]]] = {
    "2-5% of samples gain surely": partial(rare_gains, typical=False),
    "the same, typical samples added (not ours)": partial(rare_gains, typical=True),
    "11 databases, effects of 0.2 in log odds": partial(databases, effect=0.2, grouped=True),
    "of 0.4": partial(databases, effect=0.4, grouped=True),
    "of 0.4, questions as units (not ours)": partial(databases, effect=0.4, grouped=False),
    "all 49 pathologies, effects of 0.4": partial(pathologies, effect=0.4, grouped=False),
    "the same, as groups (not ours)": partial(pathologies, effect=0.4, grouped=True),
    "several seeds, one base run, 90-95% right, sd 4 points (near 100%)": partial(near_the_end, points=4.0),
    "the same, sd 8 points": partial(near_the_end, points=8.0),
}


def _hard_row(name: str, tables: int) -> tuple[str, ...]:
    """Return the coverage in worlds without and with a reason to be wide, which most of their tables name."""
    rates = dict[bool, list[float]]()
    for drawn in _HARD[name](min(tables, _HARD_TABLES)):
        seeds = (drawn.ours.shape[-2], drawn.base.shape[-2])
        wide = bool(reasons_wide(*seeds, len(drawn.groups), streams=False)) or drawn.differing() < ENOUGH_DIFFERING
        rates.setdefault(wide and not drawn.near_end, []).append(drawn.covered())
    return name, *(span(rates[wide]) if wide in rates else "-" for wide in (False, True))


def _score_cell(design: tuple[int, int, float], tables: int) -> float:
    return score_coverage(*design, tables)


def _intervals(case: Case, drawn: Scores, levels: Sequence[float]) -> Mapping[str, list[Interval]]:
    """Return the intervals of a batch of tables; one seed has no other than ours."""
    ours, base, groups = drawn.ours, drawn.base[:, None], case.groups
    paired = case.ours == case.base
    if drawn.orders is not None and case.ours == 1:
        ours = np.take_along_axis(ours, np.argsort(drawn.orders, axis=-1), axis=-1)
        base = np.take_along_axis(base, np.argsort(drawn.orders, axis=-1), axis=-1)
        groups = blocks(groups)
    variances = difference_variances(ours, base, groups, paired=paired)
    if case.ours == 1:
        return {CHOSEN: [(variances.value, variances.reach(level)) for level in levels]}
    return all_intervals(ours, base, groups, variances, levels, paired=paired)


def _chunks(total: int, size: int) -> Iterator[int]:
    for start in range(0, total, size):
        yield min(size, total - start)


def _rng(case: Case) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(case).encode()))


def is_wide(case: Case) -> bool:
    """Whether tables say that an interval of this design is wider than 95% needs."""
    return bool(reasons_wide(case.ours, case.base, len(case.groups), streams=case.stream > 0))


def _split(designs: Sequence[Case], rates: Sequence[float]) -> tuple[str, str]:
    """Return the coverage of the designs that tables show as they are, and of those that they name as wider."""
    groups = [
        [rate for case, rate in zip(designs, rates, strict=True) if is_wide(case) is wide] for wide in (False, True)
    ]
    fitting, wider = (span(values) if values else "-" for values in groups)
    return fitting, wider


if __name__ == "__main__":
    main()
