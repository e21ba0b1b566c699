"""What a table says of a cell that is expected to be near the base."""

import math

from ace_bench.core.statistics import Estimate, Source, t_quantile
from ace_bench.report.statistics import Comparison
from ace_bench.report.tables.cells import Measured, Place
from ace_bench.report.tables.grids import remarks
from ace_bench.report.tables.table import PaperShown


def test_a_cell_near_the_base_is_equivalent_only_where_its_interval_lies_within_the_margin():
    place = Place(row="ace", column="two_hop", unit="percent", within=5)
    for gain, verdict in ((0.0, "equivalent"), (0.01, "inconclusive"), (0.1, "contradicted")):
        reach = Source(variance=(0.045 / t_quantile(math.inf, 0.9)) ** 2, df=math.inf)  # 5.4 points at 95%
        estimate = Estimate(value=gain, samples=reach, units=9)
        tested = Comparison(n=9, difference=gain, interval=None, better=0, worse=0, p=1.0, test="t", estimate=estimate)
        cell = Measured(place=place, comparison=tested)
        assert f"within 5 points of the base (90%): {verdict}" in remarks(cell, PaperShown(numbers=False))
