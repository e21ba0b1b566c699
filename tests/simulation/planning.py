"""What planning needs to know: how often looks find a difference that is not there, and the power of designs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ace_bench.core.statistics import LEVEL, difference_variances
from ace_bench.report.looks import level_of_look
from ace_bench.report.power import Assumed, Design, Goal, power
from tests.simulation.score_worlds import Case, draw

LOOKS = 5
_FEWEST = 3
_MOST = _FEWEST + LOOKS - 1
_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class Found:
    """Share of comparisons without an effect in which a look finds one: the first alone, any, and any corrected."""

    first: float
    uncorrected: float
    corrected: float


def false_findings(tables: int) -> Mapping[str, list[Found]]:
    """Look five times while runs are added, by what is added."""
    spreads, seeds = (0.0, 2.0, 4.0, 8.0), [(count, 200) for count in range(_FEWEST, _MOST + 1)]
    fixed = (Case(ours=_MOST, gain=0.0, spreads=(spread, 0.0)) for spread in spreads)
    adapting = (Case(ours=_MOST, base=_MOST, gain=0.0, spreads=(spread, spread)) for spread in spreads)
    samples = [(1, n) for n in range(100, 501, 100)]
    return {
        "3 to 7 seeds, a fixed base": [_found(case, tables, seeds) for case in fixed],
        "3 to 7 seeds a side": [_found(case, tables, seeds) for case in adapting],
        "100 to 500 samples, one run a side": [_found(Case(ours=1, n=500, gain=0.0), tables, samples)],
    }


def _found(case: Case, tables: int, seen: Sequence[tuple[int, int]]) -> Found:
    """Test the first seeds and samples of each look."""
    rng, levels, excluded = np.random.default_rng(31), (LEVEL, level_of_look(LEVEL, LOOKS)), []
    for start in range(0, tables, _AT_ONCE):
        drawn, looks = draw(case, min(_AT_ONCE, tables - start), rng), []
        for seeds, n in seen:
            ours, base = drawn.ours[:, 0, :seeds, :n], drawn.base[:, :seeds, :n]
            variances = difference_variances(ours, base, case.groups[:n], paired=case.base > 1)
            looks.append([np.abs(variances.value) > variances.reach(level) for level in levels])
        excluded.append(np.array(looks))
    by_look = np.concatenate(excluded, axis=-1)  # looks, levels, tables
    uncorrected, corrected = by_look.any(axis=0).mean(axis=-1)
    return Found(first=float(by_look[0, 0].mean()), uncorrected=float(uncorrected), corrected=float(corrected))


def look_lines(tables: int) -> Iterator[str]:
    """Show the false findings, as Markdown."""
    yield "|five looks without an effect|a difference at the first|at any|at any, with `--looks 5`|"
    yield "|---|---|---|---|"
    for name, found in false_findings(tables).items():
        first, any_look = span([one.first for one in found]), span([one.uncorrected for one in found])
        yield f"|{name}|{first}|{any_look}|{span([one.corrected for one in found])}|"


def power_row(shape: tuple[int, float], simulated: int) -> tuple[str, ...]:
    """Return the power against a base that does not adapt, as ``ace-bench plan`` assumes it."""
    samples, spread = shape
    powers = (
        power(Assumed(), Goal(gain=gain), Design(seeds=seeds, samples=samples, spread=spread), simulated)
        for gain, seeds in product((5.0, 10.0), (3, 5, 10))
    )
    return f"{samples} samples, sd {spread:g}", *(f"{100 * share:.0f}%" for share in powers)


def span(rates: Sequence[float]) -> str:
    """Show the lowest and the highest rate, in percent."""
    low, high = (f"{100 * rate:.1f}" for rate in (min(rates), max(rates)))
    return f"{low}%" if low == high else f"{low}-{high}%"
