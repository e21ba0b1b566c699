"""The page of ``ace-bench plan``: the power of a comparison by seeds and samples, with what is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from ace_bench.core.statistics import POWER
from ace_bench.report.power import SIMULATED, Assumed, Design, Goal, power
from ace_bench.report.statistics import seed_spread
from ace_bench.report.tables.cells import FEW_SEEDS, Measured, mean_of, varies
from ace_bench.report.tables.field import dollars, tokens
from ace_bench.report.tables.formats import Page
from ace_bench.report.tables.grids import Grid, number
from ace_bench.store.call_log import Account


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The designs that are compared. ``spreads`` are standard deviations over seeds in points, with a word on each.

    ``pilots`` are the measured cells of the method and its base, if there are runs. If there are none, ``costs`` are
    estimates by seeds and samples, and ``note`` says what they are.
    """

    assumed: Assumed
    goal: Goal
    seeds: Sequence[int]
    samples: Sequence[int]
    spreads: Mapping[float, str]
    pilots: tuple[Measured, Measured] | None = None
    costs: Mapping[tuple[int, int], Account] = field(default_factory=dict)
    note: str = ""


def plan_page(plan: Plan) -> Page:
    """Simulate all designs, and say which of them find what is to be found."""
    designs = [*product(plan.seeds, plan.samples)]
    powers = {
        (seeds, samples, spread): power(
            plan.assumed, plan.goal, Design(seeds=seeds, samples=samples, spread=spread)
        )
        for (seeds, samples), spread in product(designs, plan.spreads)
    }  # fmt: skip
    unit = _unit(plan)
    cost = [f"cost ({unit})"] if unit else []
    rows = [
        (
            str(seeds), str(samples),
            *(f"{powers[seeds, samples, spread]:.0%}" for spread in plan.spreads),
            *([_cost(plan, unit, seeds, samples)] if unit else []),
        )
        for seeds, samples in designs
    ]  # fmt: skip
    header = ("seeds", "samples", *(f"sd {spread:.3g}" for spread in plan.spreads), *cost)
    return Page(
        title=_title(plan.goal),
        label="plan",
        grids=(Grid(title="Power", header=header, rows=tuple(rows)),),
        notes=(*_answers(plan, powers), *filter(None, [plan.note]), *_assumptions(plan)),
    )


def _title(goal: Goal) -> str:
    if goal.within is None:
        return f"How often a true gain of {goal.gain:g} points is supported"
    return f"How often a difference of {goal.gain:g} points is shown to lie within {goal.within:g}"


def _answers(plan: Plan, powers: Mapping[tuple[int, int, float], float]) -> Iterator[str]:
    """Name the fewest seeds, and with these the fewest samples, that reach the usual power."""
    for spread, word in plan.spreads.items():
        enough = [design for design, share in powers.items() if design[2] == spread and share >= POWER]
        of = f"With a standard deviation over seeds of {spread:.3g} points{f' ({word})' if word else ''}"
        if enough:
            seeds, samples, _ = min(enough)
            share = powers[seeds, samples, spread]
            yield f"{of}, {seeds} seeds on {samples} samples have a power of {share:.0%}, the first with {POWER:.0%}."
        else:
            yield f"{of}, no design here has a power of {POWER:.0%}: ask for more --seeds or --samples."


def _assumptions(plan: Plan) -> Iterator[str]:
    assumed, goal = plan.assumed, plan.goal
    if goal.within is None:
        rule = f"its {100 * goal.level:.4g}% interval lies above 0"
    else:
        rule = f"its {100 * goal.level:.4g}% interval lies within {goal.within:g} points (two one-sided tests)"
    yield (
        f"Each power is the share of {SIMULATED} simulated comparisons that the test of the tables decides so: {rule}"
        + f", as Holm's first step needs for {goal.tests} tests" * (goal.tests > 1)
        + f", corrected for {goal.looks} looks" * (goal.looks > 1) + "."
    )  # fmt: skip
    base = "adapts, with the same seeds" if assumed.base_adapts else "does not adapt: it is one run"
    yield (
        f"{'Measured' if plan.pilots else 'Assumed'}: the base has {assumed.score:.1f}% and {base}. "
        f"Two runs of one method differ on {assumed.repeated:.0f}% of the samples, a run of each method on "
        f"{assumed.discordant:.0f}%."
        + f" Samples are in groups of {assumed.group}, whose gains share {assumed.alike:.0%}." * (assumed.group > 1)
    )  # fmt: skip
    if min(plan.seeds) < FEW_SEEDS:
        yield f"With fewer than {FEW_SEEDS} seeds a result is about these playbooks only, and no claim is supported."
    if plan.pilots and (spread := seed_spread(plan.pilots[0].points)) is not None:
        yield (
            f"The method's {len(plan.pilots[0].points)} seeds vary by {spread:.1f} points, luck within them included. "
            "Few seeds tell a spread badly: plan with its upper 80% limit."
        )
    yield (
        "Fix seeds and samples before the first look. Adding seeds until a star appears finds differences that are "
        "not there. If you look K times, plan and report with --looks K."
    )


def _unit(plan: Plan) -> str:
    """Return what costs are counted in: dollars where all are known, "" without runs and estimates."""
    if plan.pilots:
        known = all(dollars(run) is not None for cell in plan.pilots for run in cell.runs)
    else:
        known = all(cost.usage.usd is not None for cost in plan.costs.values())
    return ("dollars" if known else "tokens") if plan.pilots or plan.costs else ""


def _cost(plan: Plan, unit: str, seeds: int, samples: int) -> str:
    """Return what the runs of a design cost: as estimated, or as these did. Tests grow with the samples."""
    if plan.pilots is None:
        usage = plan.costs[seeds, samples].usage
        return number(usage.usd if unit == "dollars" else usage.tokens)
    total = 0.0
    for cell, count in zip(plan.pilots, (seeds, seeds if varies(plan.pilots[1]) else 1), strict=True):
        for stage in ("adapt", "evaluate"):
            amounts = [run.value(f"usd.{stage}") if unit == "dollars" else tokens(run, stage) for run in cell.runs]
            if (mean := mean_of(amounts)) is None:
                return number(None)
            total += count * mean * (samples / (cell.samples or samples) if stage == "evaluate" else 1)
    return number(total)
