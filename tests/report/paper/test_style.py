"""Axes, legends and looks of figures: what stands beside an axis for which values, and how much room names take."""

import json
from itertools import combinations

import pytest
from matplotlib.transforms import Bbox

from ace_bench.report.figures.axes import (
    amount_axis,
    cost_axis,
    count_axis,
    log_axis,
    number_axis,
    percent_axis,
    size_axis,
)
from ace_bench.report.figures.field import Point, pareto_front, place_names
from ace_bench.report.figures.style import Sheet, latex_input, looks, new_figure
from ace_bench.report.tables.cells import Measured, Place

SCALES = {
    "counts": (count_axis, "x"), "logarithm": (log_axis, "x"), "size": (size_axis, "y"), "percent": (percent_axis, "y"),
    "numbers": (number_axis, "x"),
    "costs": (lambda axis, values: cost_axis(axis, smallest=values[1]), "x"),
    "amounts": (amount_axis, "y"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("counts 1", "linear: 1"),
        ("counts 1 2 3", "linear: 1 2 3"),
        ("counts 1 100", "linear: 0 20 40 60 80 100"),
        ("numbers 1 30", "linear: 1 30"),
        ("numbers 1 31", "log: 1 31"),
        ("numbers 0 31", "linear: 0 31"),
        ("numbers 0 1 2 3 4 5 6 7", "linear: 0 1 2 3 4 5 6 7"),
        ("numbers 0 1 2 3 4 5 6 7 8", "linear: 0 2 4 6 8"),
        ("numbers 1000.5 2000000", "log: 1,000.5 2,000,000"),
        ("costs 0 10 250", "symlog: 0 10 100"),
        ("costs 0 10 20000", "symlog: 0 10 100 1k 10k"),
        ("costs 0 0.01 0.2", "symlog: 0 0.01 0.02 0.05 0.1 0.2"),
        ("logarithm 1 4", "log: 1 2 3 4"),
        ("logarithm 1 8", "log: 1 2 5"),
        ("logarithm 1 800", "log: 1 10 100 1,000"),
        ("logarithm 500 9000", "log: 500 1k 2k 5k 10k"),
        ("amounts 1 30", "linear: 0 5 10 15 20 25 30"),
        ("amounts 1 31", "log: 1 2 5 10 20"),
        ("amounts 0 9999", "linear: 0 2,000 4,000 6,000 8,000 10,000"),
        ("amounts 0 10000", "linear: 0 2k 4k 6k 8k 10k"),
        ("amounts 5000 1500000", "log: 5k 10k 20k 50k 100k 200k 500k 1M"),
        ("size 0 0", "linear: 0.0 0.2 0.4 0.6 0.8"),
        ("size 0 1000", "linear: 0 200 400 600 800 1000"),
        ("percent 50 50", "linear: 46 48 50 52 54"),
        ("percent 0 1", "linear: 0 2 4 6 8"),
        ("percent 20 70", "linear: 20 30 40 50 60 70"),
    ],
)
def test_an_axis_is_labelled_by_its_values(line, labels):
    name, *words = line.split()
    values, (apply, along) = [json.loads(word) for word in words], SCALES[name]
    _, (axes,) = new_figure("", Sheet(style="paper", width="column"), height=3.0)
    axes.plot(*((values, values) if along == "x" else (range(len(values)), values)))
    apply(axes, values) if apply.__code__.co_argcount == 2 else apply(axes)
    axis = axes.xaxis if along == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    places = [place for place in axis.get_majorticklocs() if low <= place <= high]
    assert f"{axis.get_scale()}: {' '.join(axis.get_major_formatter().format_ticks(places))}" == labels


def test_a_figure_for_a_paper_is_taken_by_a_file_with_its_caption():
    for width, kind in (("column", "figure"), ("page", "figure*")):
        figure, _ = new_figure("50% right", Sheet(style="paper", width=width), height=2.0)
        assert latex_input(figure, "score") == "\n".join([
            r"% needs \usepackage{pgf}", rf"\begin{{{kind}}}[tp]", r"\centering", r"\input{score.pgf}",
            r"\caption{50\% right}", r"\label{fig:score}", rf"\end{{{kind}}}", "",
        ])  # fmt: skip
    assert Sheet(style="paper").title("Scores\n[simulated]\nbars: 95%") == "[simulated]"
    assert Sheet().title("Scores\n[simulated]") == "Scores\n[simulated]"


def point(name, cost, score):
    cell = Measured(place=Place(row=name, column="", unit="percent"), value=score)
    return Point(name=name, kind="labels gold", cost=cost, cell=cell)


def test_the_front_holds_what_no_other_beats():
    def front(**points):
        return [one.name for one in pareto_front([point(name, *place) for name, place in points.items()])]

    assert front(dear=(9, 80), cheap=(1, 20), bad=(5, 10), good=(5, 70), worse=(6, 70)) == ["cheap", "good", "dear"]
    assert front(a=(1, 5), b=(1, 5)) == ["a", "b"], "equal ones both count"
    assert front(a=(1, 5), b=(1, 6)) == ["b"]


def test_names_cover_neither_each_other_nor_points_and_far_ones_have_a_line_to_theirs():
    figure, (axes,) = new_figure("", height=2.0)
    points = [point("alone", 1, 40), *(point(f"method {n}", 1.5 + n % 3 / 50, 10 + n // 3) for n in range(9))]
    axes.plot([one.cost for one in points], [one.score for one in points], ".")
    axes.set(xlim=(0, 2), ylim=(0, 50))
    figure.draw_without_rendering()
    boxes = place_names(axes, points, looks(["labels gold"]))
    common = [Bbox.intersection(*pair) for pair in combinations(boxes, 2)]
    assert all(one is None or one.width * one.height <= 1 for one in common)
    scale, frame = 72 / figure.dpi, axes.get_window_extent()
    assert all(scale * frame.x0 <= box.x0 and box.x1 <= scale * frame.x1 for box in boxes)
    places = [(text.get_text()[-1:], *(round(part) for part in text.get_position())) for text in axes.texts]
    assert " ".join(f"{name}{across:+}{up:+}" for name, across, up in places) == (
        "e+14+0 0-19+0 1+0-8 2+19+0 3+17+9 4-17+9 5+0-19 +0-16 6+21+14 +7+10 7-21+14 -7+10 8+0+26 +0+23"
    ), "right of its point if possible, else left, up or down"


def test_an_odd_number_of_panels_leaves_its_last_place_empty_and_few_labels_along_a_narrow_range():
    figure, axes = new_figure("t", panels=3, height=3, across=2)
    for axis in axes:
        axis.plot([4160, 4300], [1, 2])
        log_axis(axis)
    assert len(figure.axes) == 3
    figure.draw_without_rendering()
    assert 2 <= len([one for one in figure.axes[0].get_xticklabels() if one.get_text()]) <= 6
