"""The paper's numbers as data: complete, read with care, and contradicting themselves only where we say so."""

import shutil

import pytest

from ace_bench.core.errors import DataError
from ace_report.experiments import load_experiments
from ace_report.paper.claims import known_contradictions
from ace_report.paper.tables import DATA
from tests.packages.report.contradictions import contradictions, refs

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


def test_the_paper_contradicts_itself_exactly_where_we_say():
    assert contradictions(EXPERIMENTS) == known_contradictions()


@pytest.fixture
def edited(tmp_path):
    """Reads a copy of the data in which one file is edited."""

    def load(name, old, new):
        shutil.copytree(DATA, tmp_path / "data")
        (file,) = (tmp_path / "data").rglob(name)
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        return load_experiments(tmp_path / "data")

    return load


@pytest.mark.parametrize(
    ("name", "old", "new", "slip"),
    [
        ("table_01.yaml", "46.0, 30.2, 46.4", "46.0, 30.2, 46.6", ("1/gepa/average", "mean")),
        ("table_02.yaml", "[2.8, 4.0, 3.4]", "[2.8, 4.2, 3.4]", ("2/gepa/formula", "change")),
        ("table_12.yaml", "1455, 147]", "1456, 147]", ("12/gepa/calls", "sum")),
        ("table_11.yaml", "50.7, 56.6, 52.9", "50.7, 56.6, 53.2", ("11/ace/average", "mean")),
        ("table_14.yaml", "26960675", "26860675", ("15/gepa/input_per_query", "ratio")),
        ("table_16.yaml", "[78.3], changes: [7.6]", "[78.4], changes: [7.7]", ("16/deepseek_v3_1/finer", "repeated")),
        ("claims.yaml", "value: 10.9", "value: 11.1", ("claim/finance_gain_offline", "text")),
    ],
)
def test_a_slip_in_any_kind_of_number_is_noticed(name, old, new, slip, edited):
    found = contradictions(edited(name, old, new))
    assert slip in {(one.cell, one.rule) for one in found if one not in known_contradictions()}


@pytest.mark.parametrize(
    ("table", "old", "new", "message"),
    [
        ("01", "  gepa: {label", "  gaap: {label", "no cell gepa/average"),
        ("01", "evaluates: normal_tgc", "evaluates: normal", "names 'normal', which is not one of normal_tgc"),
        ("01", "starts_from: 1/ace_offline", "starts_from: 1/ace", "no measured cell ace/normal_tgc"),
        ("01", "starts_from: 1/ace_offline", "starts_from: 99/ace", "no experiment 99"),
        ("01", "adapts: offline", "adapts: never", "table_01.yaml is damaged: Invalid enum value 'never'"),
        ("01", "metric: sgc", "metrics: sgc", "table_01.yaml is damaged: Object contains unknown field `metrics`"),
        ("01", 'section: "4.3"\nmodel: deepseek_v3_1', "", "table_01.yaml: give the paper's section, or a model"),
        ("02", "[70.7, 67.5, 69.1]", "[70.7, 67.5]", "table_02.yaml: row base has 2 values for 3 columns"),
        ("02", "[1.6, -0.5, 0.5]", "[1.6]", "table_02.yaml: row icl has 1 changes for 3 columns"),
        ("02", "against: base", "against: bass", "table_02.yaml: against names 'bass', which is not one of base"),
        ("02", "mean_of: [finer, formula]", "mean_of: [finer, formulas]", "'formulas', which is not one of finer"),
        ("02", "label: ICL", "label: [", "table_02.yaml is damaged"),
        ("02", "mean_of: [finer, formula],", "mean_of: [finer], weights: [1, 2],", "has 2 weights for 1 parts"),
        ("12", "sum_of: [", "sum_of: [x, ", "row gepa names 'x', which is not one of"),
    ],
)
def test_a_mistake_in_a_table_is_named_with_its_file(table, old, new, message, edited):
    with pytest.raises(DataError, match=message):
        edited(f"table_{table}.yaml", old, new)
