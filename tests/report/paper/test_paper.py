"""The paper's numbers as data: complete, read with care, and contradicting themselves only where we say so."""

import shutil

import msgspec
import pytest

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import DataError
from ace_bench.report.experiments import load_experiments
from ace_bench.report.paper.claims import known_contradictions
from ace_bench.report.paper.tables import DATA
from tests.outcomes import outcomes
from tests.report.paper.conftest import refs

EXPERIMENTS = load_experiments()
TABLES = [*(str(number) for number in range(1, 22) if number != 4), "4a", "4b"]


def test_every_table_is_there_with_all_its_cells():
    assert set(EXPERIMENTS.tables) == {*TABLES, "figure_2", "figure_5"}
    rows = {f"{name}/{row}": line for name, table in EXPERIMENTS.tables.items() for row, line in table.rows.items()}
    empty = [name for name, line in rows.items() if None in line.values]
    assert empty == ["figure_2/baseline"], "a context of no tokens"
    assert len({ref for table in EXPERIMENTS.tables.values() for ref in refs(table)}) == 373


@pytest.mark.parametrize("ref", ["1/react", "1/react/accuracy", "22/react/average", "1/nobody/average", "claim/x", ""])
def test_a_reference_to_nothing_is_an_error(ref):
    with pytest.raises(DataError, match=r"(not a number of the paper|no (cell|table))"):
        EXPERIMENTS.cell(ref)


def test_the_numbers_are_those_that_were_recomputed_from_each_other():
    """Means, ratios, sums, repetitions, changes and claims were: where rounding explains no difference, we say so."""
    numbers = {ref: EXPERIMENTS.cell(ref) for table in EXPERIMENTS.tables.values() for ref in refs(table)}
    record = msgspec.to_builtins([numbers, EXPERIMENTS.claims, known_contradictions()])
    assert digest_of(record) == "d1e215975a9a767a32be2d2bd9d195b980a01530aea60fc0eb45901e9fbc3ad6"


DAMAGES = [
    "01 |   gepa: {label |   gaap: {label",
    "01 | evaluates: normal_tgc | evaluates: normal",
    "01 | starts_from: 1/ace_offline | starts_from: 1/ace",
    "01 | starts_from: 1/ace_offline | starts_from: 99/ace",
    "01 | adapts: offline | adapts: never",
    "01 | metric: sgc | metrics: sgc",
    '01 | section: "4.3"\\nmodel: deepseek_v3_1 | # nothing',
    "02 | [70.7, 67.5, 69.1] | [70.7, 67.5]",
    "02 | [1.6, -0.5, 0.5] | [1.6]",
    "02 | against: base | against: bass",
    "02 | mean_of: [finer, formula] | mean_of: [finer, formulas]",
    "02 | label: ICL | label: [",
    "02 | mean_of: [finer, formula], | mean_of: [finer], weights: [1, 2],",
    "12 | sum_of: [ | sum_of: [x,",
]
"""Table, what stands in its file, and what in its place."""


def test_a_mistake_in_a_table_is_named_with_its_file(snapshot, tmp_path):
    shutil.copytree(DATA, tmp_path / "data")

    def answer(line):
        table, old, new = line.replace("\\n", "\n").split(" | ")
        (file,) = (tmp_path / "data").rglob(f"table_{table}.yaml")
        before = file.read_text()
        assert old in before
        file.write_text(before.replace(old, new))
        with pytest.raises(DataError) as found:
            load_experiments(tmp_path / "data")
        file.write_text(before)
        return str(found.value).replace(f"{file.parent}/", "")

    assert outcomes(answer, DAMAGES) == snapshot
