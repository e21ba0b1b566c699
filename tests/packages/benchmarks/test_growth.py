"""The table of growth: a step by part."""

from pkgutil import resolve_name

import pytest

from ace_benchmarks import growth
from ace_benchmarks.measuring import Setting


def test_the_parts_of_a_step_are_functions():
    assert all(callable(resolve_name(name.replace(":", "."))) for names in growth.PARTS.values() for name in names)


@pytest.mark.slow
def test_a_row_for_each_kind_of_retrieval_view_and_size(monkeypatch, tmp_path):
    monkeypatch.setattr(growth, "RETRIEVAL", ("fused",))
    (table,) = growth.growth(Setting(scratch=tmp_path, data=None, bullets=(50, 300)))
    assert [row[:3] for row in table.rows] == [
        ("fused", sees, size) for sees in ("all", "nearest") for size in ("50", "300")
    ]
    numbers = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    assert all(float(row[part]) > 0 for row in numbers for part in (*growth.PARTS, "CPU ms/step", "memory MB"))
    sent = [float(row["prompts MB/step"]) for row in numbers]
    assert sent[0] < sent[1]
    assert sent[2] == sent[3]
