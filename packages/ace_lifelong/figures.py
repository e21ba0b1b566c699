"""Figures of lives: what remains of each stage, how contexts and costs grow, and learning against learning afresh."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import nan
from statistics import fmean
from typing import TYPE_CHECKING

from ace_bench.report.records import marks_of
from ace_lifelong.lives import STAGES_SHOWN, LifeTest, Lives, Stream
from ace_lifelong.measures import Measure, difference, score
from ace_report.figures.draw import Drawing, Panel, Series
from ace_report.figures.style import MAX_SERIES, Look, amount_axis, count_axis, looks, percent_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST, _ACROSS, _ORDERS = 9, 3, 2
"""Methods of a figure, in a line, and orders that have figures of their own."""
_LETTERS, _WITH_BARS = 12, 4
"""Letters of a stage in a figure, and the most stages with intervals."""
_STAGES = "stages learnt"
_DODGE = 0.04
"""The distance between series, so that their intervals stand beside each other."""


def drawings(stream: Stream) -> Iterator[tuple[str, Drawing]]:
    """Yield the figures of a stream by name: what happens along the first orders, and the end by order."""
    learning = [one for one in stream.lives if one.first.learns]
    about = "\n".join(filter(None, (stream.title, marks_of(simulated=stream.simulated, source=stream.source))))
    for number, order in enumerate(stream.orders[:_ORDERS], 1):
        some = [one for one in learning if one.order == order]
        suffix = f"_order{number}" if len(stream.orders) > 1 else ""
        yield f"retention{suffix}", _retention(some, f"Score of each stage, {_short(order)}\n{about}")
        yield f"growth{suffix}", _growth(some, f"Growth and plasticity, {_short(order)}\n{about}")
    if len(stream.orders) > 1:
        yield "orders", _by_order(learning, stream.orders, f"Score of all stages at the end, by order\n{about}")


def _short(order: Sequence[str]) -> str:
    """Write an order of stages, without the middle of a long one."""
    return " > ".join(order if len(order) <= STAGES_SHOWN else (order[0], f"{len(order) - 2} more", order[-1]))


def _by_order(lives: Sequence[Lives], orders: Sequence[tuple[str, ...]], title: str) -> Drawing:
    """Draw the score at the end of each order, a series a method."""
    names = [*dict.fromkeys(one.name for one in lives)][:MAX_SERIES]
    look, series = looks(names), []
    for at, name in enumerate(names):
        found = [
            (orders.index(one.order) + _DODGE * at, score(one.scores(one.end))) for one in lives if one.name == name
        ]
        made = _series(name, look[name], *zip(*sorted(found, key=lambda one: one[0]), strict=True))
        series.append(replace(made, kind="points"))
    labels = ["\n> ".join(stage[:_LETTERS] for stage in order) for order in orders]
    panel = Panel(series=series, x_label="order", y_label="score (%)", names=labels, scales=(percent_axis,))
    return Drawing(panels=[panel], title=title, height=3.0, wide=True)


def _retention(lives: Sequence[Lives], title: str) -> Drawing:
    """Draw the score of each stage after each number of learnt stages, a panel a method."""
    order = lives[0].order
    look = looks(order)
    panels = [
        Panel(
            series=[_curve(one, stage, look[stage], place) for place, stage in enumerate(order[:MAX_SERIES], 1)],
            title=one.name,
            x_label=_STAGES,
            y_label="score (%)",
            scales=(percent_axis, count_axis),
        )
        for one in lives[:_MOST]
    ]
    more = "; ".join(
        f"{left} more {what} are in the table"
        for left, what in ((len(lives) - _MOST, "methods"), (len(order) - MAX_SERIES, "stages"))
        if left > 0
    )
    rows = -(-len(panels) // _ACROSS)
    return Drawing(
        panels=panels,
        title=title,
        height=1.2 + 1.8 * rows,
        across=min(_ACROSS, len(panels)),
        sharey="row",
        more=more,
        wide=True,
    )


def _curve(one: Lives, stage: str, look: Look, place: int) -> Series:
    numbers = range(len(one.order) + 1)
    found = [score(one.scores({stage: one.at(number)})) for number in numbers]
    if len(one.order) > _WITH_BARS:
        found = [replace(measure, interval=None) if measure else None for measure in found]
    return _series(f"{place}: {stage}", look, [number + _DODGE * (place - 1) for number in numbers], found)


def _series(name: str, look: Look, x: Sequence[float], found: Sequence[Measure | None]) -> Series:
    y = [one.value if one else nan for one in found]
    bounds = [one.interval if one else None for one in found]
    low = [some.low if some else value for some, value in zip(bounds, y, strict=True)]
    high = [some.high if some else value for some, value in zip(bounds, y, strict=True)]
    return Series(name=name, look=look, kind="line", x=x, y=y, low=low, high=high)


def _growth(lives: Sequence[Lives], title: str) -> Drawing:
    """Draw the size of the context, of a prompt, and the cost of a stage; and learning against learning afresh."""
    lives = lives[:MAX_SERIES]
    look = looks([one.name for one in lives])
    amounts: Mapping[str, _Amount] = {
        "context tokens": lambda test, _: test.tokens if test else None,
        "prompt tokens an answer": lambda test, _: test.asked if test else None,
        "tokens to learn the stage": lambda _, spent: spent,
    }
    panels = [_amounts(lives, look, label, value) for label, value in amounts.items()]
    afresh = [_afresh(one, look[one.name], _DODGE * at) for at, one in enumerate(lives) if one.scores(one.fresh)]
    if afresh:
        stages = partial(_stages_axis, len(lives[0].order))
        panels.append(
            Panel(series=afresh, x_label="stage", y_label="own - fresh (points)", scales=(_zero, count_axis, stages))
        )
    return Drawing(panels=panels, title=title, height=4.6, across=2, wide=True)


_Amount = Callable[[LifeTest | None, float | None], float | None]
"""What is drawn of a test (``None``: it was not made) and of the tokens of learning the stage before it."""


def _amounts(lives: Sequence[Lives], look: Mapping[str, Look], label: str, value: _Amount) -> Panel:
    series, every = [], list[float]()
    for one in lives:
        x, y = list[float](), list[float]()
        for number in range(len(one.order) + 1):
            name, seeds = one.at(number), one.seeds.values()
            found = (value(life.tests.get(name), life.spent.get(name, 0) if number else None) for life in seeds)
            if some := [amount for amount in found if amount is not None]:
                x.append(float(number))
                y.append(fmean(some))
        every += y
        series.append(Series(name=one.name, look=look[one.name], kind="line", x=x, y=y))

    def scale(axis: Axes) -> None:
        amount_axis(axis, [y for y in every if y > 0] or [1.0])

    return Panel(series=series, x_label=_STAGES, y_label=label, scales=(count_axis, scale))


def _afresh(one: Lives, look: Look, shift: float) -> Series:
    places = [place + shift for place, stage in enumerate(one.order, 1) if stage in one.fresh]
    found = [difference(one.scores({s: one.own[s]}), one.scores({s: one.fresh[s]})) for s in one.order[1:]]
    return _series(one.name, look, places, found)


def _zero(axis: Axes) -> None:
    axis.axhline(0, color="#666666", linewidth=0.6, zorder=0)


def _stages_axis(count: int, axis: Axes) -> None:
    """Show all stages but the first, which is always learnt afresh."""
    axis.set_xlim(1.5, count + 0.5)
