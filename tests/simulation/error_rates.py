"""Error rates of intervals, tests and verdicts on simulated tables: ``make statistics`` writes them into a page."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console

from ace_bench.core.statistics import LEVEL, Estimate, blocks, paired_difference, score_bounds
from ace_bench.store.files import write_files
from tests.simulation.claim_worlds import verdicts_page
from tests.simulation.score_worlds import Case, draw, mean_at

PAGE = Path("docs/tables-and-figures.md")
START, END = "<!-- measured by make statistics -->", "<!-- end -->"
TABLES, FAMILIES = 2_000, 1_200
FAMILY_SIZES = (4, 13)
"""Comparisons that are tested together: the primary claims, and the methods of a large table."""
_CHUNK = 400
"""Tables drawn at a time, which bounds the memory."""

DESIGNS = {"1 against 1": (1, 1), "3 against 1": (3, 1), "3 against 3": (3, 3), "3 against 5": (3, 5),
           "5 against 1": (5, 1), "5 against 5": (5, 5)}  # fmt: skip
SPREADS = ((0.0, 0.0), (2.0, 2.0), (4.0, 4.0), (8.0, 8.0), (0.0, 8.0))
SHAPES = (Case(ours=1), Case(ours=1, n=440, graded=True), Case(ours=1, n=168, group=3), Case(ours=1, n=20))
"""Right or wrong, FiNER's four questions a sample, AppWorld's 56 scenarios of 3, and few samples."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Shares of intervals that hold the truth; of the playbooks drawn, of those without a collapse, of the method."""

    own: float
    method: float
    refused: float = 0.0
    kept: float = 1.0


def cases(design: str) -> Iterator[Case]:
    """Yield the cases of a design; a base that does not adapt has no spread, and one playbook has no seeds to vary."""
    ours, base = DESIGNS[design]
    for (spread, other), shape in product(SPREADS, SHAPES):
        if (spread == other or base > 1) and (ours > 1 or spread == 0):
            yield replace(shape, ours=ours, base=base, spreads=(spread, other))


def streams(seeds: int) -> Iterator[Case]:
    """Yield online cases: a playbook that rises by 16 points along the stream."""
    for n in (20, 100, 400):
        yield Case(ours=seeds, n=n, gain=0.05, spreads=(2.0 * (seeds > 1), 0.0), stream=0.4)


def coverage(case: Case, tables: int = TABLES) -> Rates:
    """Measure the intervals of differences."""
    rng, found = _rng(case), []
    for _ in range(0, tables, _CHUNK):
        drawn = draw(case, min(_CHUNK, tables), rng)
        for table in range(len(drawn.ours)):
            low, high = _estimate(case, drawn.ours[table, 0], drawn.base[table], _order(drawn.orders, table)).bounds()
            own = low <= drawn.own_truth[table, 0] <= high
            found.append((own, low <= drawn.truth <= high, bool(drawn.collapsed[table].any())))
    own, method, collapsed = np.array(found).T
    # A table in which a seed collapsed shows no interval; the others are about seeds that do not collapse.
    return Rates(
        own=float(own.mean()), method=float(method.mean()), refused=float(collapsed.mean()),
        kept=float(method[~collapsed].mean()),
    )  # fmt: skip


def family_errors(case: Case, families: int = FAMILIES) -> tuple[float, ...]:
    """Return the share of families in which Holm finds a difference from the base though there is none, by size."""
    rng, false, drawn_so_far = _rng(case), np.zeros(len(FAMILY_SIZES)), 0
    case = replace(case, gain=0.0, methods=max(FAMILY_SIZES))
    while drawn_so_far < families:
        drawn = draw(case, _CHUNK // 4, rng)
        drawn_so_far += len(drawn.ours)
        for ours, base in zip(drawn.ours, drawn.base, strict=True):
            tested = [_estimate(case, one, base, None) for one in ours]
            for place, size in enumerate(FAMILY_SIZES):  # Holm's first step is Bonferroni's
                level = 1 - (1 - LEVEL) / size
                false[place] += any(abs(found.value) > found.reach(level) for found in tested[:size])
    return tuple(false / drawn_so_far)


def score_coverage(seeds: int, n: int, log_odds: float, tables: int = TABLES) -> float:
    """Return how many intervals of a right-or-wrong score hold the truth; several seeds differ by about 3 points."""
    rng = np.random.default_rng([seeds, n, int(10 * log_odds)])
    quality = log_odds + 0.15 * rng.normal(size=(tables, seeds, 1))
    chance = 1 / (1 + np.exp(-quality - 1.5 * rng.normal(size=(tables, 1, n))))
    scores = (rng.random((tables, seeds, n)) < chance).astype(float)
    truth = mean_at(quality[:, 0, 0], 1.5) if seeds == 1 else np.full(tables, float(mean_at(log_odds, 1.507)))
    groups = [[place] for place in range(n)]
    found = [score_bounds(table, groups) or (0.0, 1.0) for table in scores]
    return float(np.mean([low <= value <= high for (low, high), value in zip(found, truth, strict=True)]))


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


def main() -> None:
    """Measure, and write the tables into the page."""
    with ProcessPoolExecutor() as pool:
        rows = [
            *pool.map(_design_row, DESIGNS),
            *pool.map(_stream_row, (1, 3, 5)),
            *pool.map(_collapse_row, (0.1, 0.2)),
        ]
        near = [*pool.map(_score_cell, product((1, 3, 5), (20, 50, 200), (0.0, 2.0, 4.0)))]
    verdicts = verdicts_page()
    header = "|seeds|coverage|false of 4|of 13|\n|---|---|---|---|"
    seen, mistaken = seen_in_scores(4.0)
    table = "\n".join([
        header, *(f"|{'|'.join(row)}|" for row in rows), "",
        f"Intervals of scores cover {_span(near)}. Scores of three seeds show {100 * seen:.0f}% of collapses by 15 "
        f"points (10 below the others), and {100 * mistaken:.0f}% false ones.", "", verdicts,
    ])  # fmt: skip
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    write_files({PAGE: f"{before}{START}\n{table}\n{END}{rest.partition(END)[2]}"})
    Console(width=150).print(table)


def _design_row(design: str) -> tuple[str, ...]:
    ours, base = DESIGNS[design]
    some = [*cases(design)]
    covered = [coverage(case) for case in some]
    errors = [family_errors(case) for case in some if case.n in (200, 440) and case.spreads != (2.0, 2.0)]
    families = [_span([one[place] for one in errors]) for place in range(len(FAMILY_SIZES))]
    values = [rates.own if ours == 1 else rates.method for rates in covered]
    about = " (these playbooks)" if ours == 1 else " (does not adapt)" if base == 1 else ""
    return f"{design}{about}", _span(values), *families


def _stream_row(seeds: int) -> tuple[str, ...]:
    rates = [coverage(case) for case in streams(seeds)]
    if seeds > 1:
        return f"{seeds} streams", _span([one.method for one in rates]), "-", "-"
    method = _span([one.method for one in rates])
    return "1 stream (this stream)", f"{_span([one.own for one in rates])}; refused for the method: {method}", "-", "-"


def _collapse_row(rate: float) -> tuple[str, ...]:
    some = [Case(ours=seeds, base=seeds, spreads=(2.0, 2.0), collapse=rate) for seeds in (3, 5)]
    rates = [coverage(case) for case in some]
    kept, refused = _span([one.kept for one in rates]), _span([one.refused for one in rates])
    return f"{100 * rate:.0f}% of seeds collapse", f"{kept} without one; {refused} refused", "-", "-"


def _score_cell(place: tuple[int, int, float]) -> float:
    return score_coverage(*place)


def _estimate(case: Case, ours: np.ndarray, base: np.ndarray, order: np.ndarray | None) -> Estimate:
    groups = case.groups
    if order is not None and len(ours) == 1:
        groups = blocks(sorted(groups, key=lambda group: min(order[0][place] for place in group)))
    found = paired_difference(ours, base, groups, paired=case.ours == case.base)
    assert found is not None
    return found


def _order(orders: np.ndarray | None, table: int) -> np.ndarray | None:
    return None if orders is None else np.asarray(orders[table, 0])


def _rng(case: Case) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(case).encode()))


def _span(values: Sequence[float]) -> str:
    low, high = (f"{100 * value:.1f}" for value in (min(values), max(values)))
    return f"{low}%" if low == high else f"{low}-{high}%"


if __name__ == "__main__":
    main()
