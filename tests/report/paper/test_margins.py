"""What a table says of a cell that is expected to be near the base."""

from ace_bench.report.statistics import Comparison, Interval
from ace_bench.report.tables.cells import Measured, Place
from ace_bench.report.tables.grids import remarks
from ace_bench.report.tables.table import PaperShown


def test_a_cell_near_the_base_is_equivalent_only_where_its_interval_lies_within_the_margin():
    place = Place(row="ace", column="two_hop", unit="percent", within=5)
    for low, verdict in ((-4.0, "equivalent"), (-6.0, "inconclusive"), (5.5, "contradicted")):
        interval = Interval(low=low, high=max(low + 1, 4))
        tested = Comparison(n=9, difference=0.0, interval=interval, better=0, worse=0, p=1.0, test="t")
        cell = Measured(place=place, comparison=tested)
        assert f"within 5 points of the base: {verdict}" in remarks(cell, PaperShown(numbers=False))
