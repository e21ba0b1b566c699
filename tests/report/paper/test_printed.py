"""What a paper's table prints in bold and in colour."""

from dataclasses import replace

from ace_bench.report.tables.cells import Measured, Place, compared_to
from ace_bench.report.tables.formats import printed_grid
from ace_bench.report.tables.table import Heading, Table


def cell(row, value, **fields):
    return Measured(place=Place(row=row, column="score", unit="percent"), value=value, state="", **fields)


def printed(*values):
    cells = {f"r{place}": {"score": cell(f"r{place}", value, change=1.0)} for place, value in enumerate(values)}
    rows = {row: Heading(texts=(row,), fields={}) for row in cells}
    table = Table(
        title="t", label="t", about={}, names=("method",), rows=rows,
        columns={"score": Heading(texts=("score",), fields={})}, cells=cells, base="r0", base_title="r0",
    )  # fmt: skip
    return [row[1] for row in printed_grid(table).rows]


def test_a_number_is_bold_only_where_it_alone_is_the_best():
    assert [word.best for word in printed(40.0, 70.0, 50.0)] == [False, True, False]
    assert [word.best for word in printed(70.0, 70.01, 50.0)] == [False, False, False], "they are printed alike"


def test_a_change_without_a_test_has_no_colour():
    assert [word.better for word in printed(40.0, 70.0)] == [None, None]


def test_cells_that_differ_from_the_plan_alike_are_compared():
    base, ours = cell("base", 40.0, differs=("x=1",)), cell("ace", 70.0, differs=("x=1",))
    assert compared_to(ours, base, 1).change == 30.0
    assert compared_to(ours, replace(base, differs=()), 1).change is None
    assert compared_to(replace(ours, differs=("x=2",)), base, 1).change is None
