"""The tables of lives: methods, stages, matrices and orders, as pages and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, pstdev

from ace_bench.report.escaping import csv_of
from ace_bench.report.records import marks_of
from ace_bench.report.statistics import Interval
from ace_lifelong.lives import BEFORE, Life, Lives, Stream
from ace_lifelong.measures import Measure, difference, forgetting, measures_of, score
from ace_report.tables.cells import FEW_SEEDS
from ace_report.tables.formats import Page
from ace_report.tables.grids import NOT_KNOWN, Grid, number

_REPEATED = ("start", "gain", "living gain")
"""Measures that the table of orders leaves out: the same for all orders, or another one less that."""
METHODS, ORDERS = "Methods: living and frozen memory, transfer, cost", "Orders"
_COSTS = {"tokens in": "tokens.total.in", "tokens out": "tokens.total.out", "dollars": "usd.total"}
_MADE = ("adapt", "evaluate")
_NOTES = (
    "Scores are means over samples in percent, differences in points; in brackets 95% intervals over samples and seeds "
    "of this order, paired by both. docs/lifelong.md says whose measure each is.",
    "Living: first attempts at the samples of learning, while the memory changes. Start, end: frozen memory, "
    "on the test samples of all stages. Forgetting takes the best of noisy scores, so it is too high.",
)


def page_of(stream: Stream) -> Page:
    """Return all tables of a stream."""
    mark = marks_of(simulated=stream.simulated, source=stream.source)
    grids = (_methods(stream), _stages(stream), *_matrices(stream), _orders(stream))
    few = any(one.first.learns and len(one.seeds) < FEW_SEEDS for one in stream.lives)
    return Page(
        title=" ".join(filter(None, ("A life of learning:", stream.title, mark))),
        label="lifelong",
        grids=tuple(grid for grid in grids if grid.rows),
        notes=(*_NOTES, *([f"Fewer than {FEW_SEEDS} seeds: about these contexts only."] if few else [])),
    )


def arrow(order: Sequence[str]) -> str:
    """Write an order of stages."""
    return " > ".join(order)


def _header(stream: Stream) -> tuple[str, ...]:
    return ("method", "order") if len(stream.orders) > 1 else ("method",)


def _row_names(stream: Stream, one: Lives) -> tuple[str, ...]:
    return (one.name, arrow(one.order) if one.first.learns else "-")[: len(_header(stream))]


def _text(measure: Measure | None) -> str:
    return "-" if measure is None else str(measure)


def _methods(stream: Stream) -> Grid:
    rows, names = [], dict[str, None]()
    for one in stream.lives:
        found = measures_of(one)
        names |= dict.fromkeys(found)
        costs = [number(value) if value is not None else NOT_KNOWN for value in _costs(one).values()]
        rows.append((*_row_names(stream, one), str(len(one.seeds)), *map(_text, found.values()), *costs))
    header = (*_header(stream), "seeds", *names, "context tokens", "calls", *_COSTS)
    return Grid(title=METHODS, header=header, rows=tuple(rows))


def _costs(one: Lives) -> Mapping[str, float | None]:
    """Return the size of the last context and the sums of the calls, means over seeds."""
    lives = one.seeds.values()
    last = one.at(len(one.order)) if one.first.learns else BEFORE
    found: dict[str, float | None] = {"context tokens": _mean([_tokens(life, last) for life in lives])}
    found["calls"] = _mean([sum(sum(life.run.metrics["calls"][stage].values()) for stage in _MADE) for life in lives])
    return found | {name: _mean([life.run.value(path) for life in lives]) for name, path in _COSTS.items()}


def _tokens(life: Life, test: str) -> float | None:
    return life.tests[test].tokens if test in life.tests else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _stages(stream: Stream) -> Grid:
    rows = []
    for one in stream.lives:
        for place, stage in enumerate(one.order if one.first.learns else ()):
            tests = (one.start, one.own, one.fresh, one.end)
            start, own, fresh, end = (one.scores({stage: some[stage]}) if stage in some else None for some in tests)
            last = place + 1 == len(one.order)
            lives, test = one.seeds.values(), one.at(place + 1)
            grown = [_mean([_tokens(life, test) for life in lives]), _mean([life.tests[test].asked for life in lives])]
            grown += [_mean([life.spent.get(test, 0) for life in lives])]
            rows.append(
                (
                    *_row_names(stream, one),
                    f"{place + 1} {stage}",
                    *map(_text, (score(start), score(own), difference(own, start, base_adapts=False), score(fresh))),
                    *map(_text, (difference(own, fresh), score(end), None if last else difference(end, own))),
                    _text(None if last else forgetting(one, stage)),
                    *map(number, grown),
                )
            )
    header = (*_header(stream), "stage", "start", "own", "own gain", "fresh", "own - fresh")
    more = ("end", "end - own", "forgetting", "context tokens", "prompt tokens an answer", "tokens to learn it")
    return Grid(title="Stages", header=(*header, *more), rows=tuple(rows))


def _matrices(stream: Stream) -> Iterator[Grid]:
    """Yield the score of each stage (column) after so many stages (row), means over seeds."""
    for one in stream.lives:
        if one.first.learns:
            columns = sorted(one.order) if len(stream.orders) > 1 else one.order
            rows = [
                (
                    f"{place} {stage}" if place else stage,
                    *(number(one.mean(one.at(place), each), "percent") for each in columns),
                )
                for place, stage in enumerate((BEFORE, *one.order))
                if one.at(place) in one.first.tests
            ]
            title = " · ".join(("Score after each stage", *_row_names(stream, one)))
            yield Grid(title=title, header=("after", *columns), rows=tuple(rows))


def _orders(stream: Stream) -> Grid:
    """Compare orders: the mean, standard deviation, lowest and highest of each measure over them."""
    rows = []
    for name in dict.fromkeys(one.name for one in stream.lives if one.first.learns):
        found = [(one, measures_of(one)) for one in stream.lives if one.name == name]
        if len(found) < 2:
            continue
        for measure in found[0][1]:
            values = [(made.value, arrow(one.order)) for one, all_ in found if (made := all_[measure])]
            if len(values) == len(found) and measure not in _REPEATED:
                some = [value for value, _ in values]
                low, high = min(values), max(values)
                cells = (f"{fmean(some):.1f}", f"{pstdev(some):.1f}")
                ends = (f"{low[0]:.1f} ({low[1]})", f"{high[0]:.1f} ({high[1]})")
                rows.append((name, measure, str(len(some)), *cells, *ends))
    header = ("method", "measure", "orders", "mean", "sd over orders", "lowest", "highest")
    return Grid(title=ORDERS, header=header, rows=tuple(rows))


def csv_of_measures(streams: Sequence[Stream]) -> str:
    """Write one line per method and order, with numbers in full precision."""
    lines = []
    for title, one in ((stream.title, one) for stream in streams for one in stream.lives):
        line: dict[str, object] = {"stream": title, "method": one.name, "order": arrow(one.order)}
        line["seeds"] = " ".join(map(str, one.seeds))
        for name, measure in measures_of(one).items():
            bounds: Interval | None = measure.interval if measure else None
            line |= {name: measure.value if measure else None}
            line |= {f"{name} low": bounds.low if bounds else None, f"{name} high": bounds.high if bounds else None}
        lines.append({**line, **_costs(one)})
    return csv_of(lines)


def csv_of_tests(streams: Sequence[Stream]) -> str:
    """Write one line per run, test and stage: the matrices of each seed."""
    return csv_of(
        [
            {
                "stream": stream.title,
                "method": one.name,
                "order": arrow(one.order),
                "seed": seed,
                "after": test,
                "stage": stage,
                "score": found.score(stage),
                "n": len(found.points[stage]),
                "context_tokens": found.tokens,
                "context_items": found.items,
                "prompt_tokens_an_answer": found.asked,
                "folder": str(life.run.folder),
            }
            for stream in streams
            for one in stream.lives
            for seed, life in one.seeds.items()
            for test, found in life.tests.items()
            for stage in found.points
        ]
    )
